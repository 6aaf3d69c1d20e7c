package apigw

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	awsclient "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/smithy-go"

	"blindpost/shared/gateway"
)

// apiError is an unexpected answer of @connections. It repeats no text of the answer.
type apiError struct {
	status int
	code   string
}

func (e *apiError) Error() string {
	if e.code == "" {
		return fmt.Sprintf("API Gateway answered with status %d", e.status)
	}
	return fmt.Sprintf("API Gateway answered with status %d, %s", e.status, e.code)
}

// classify implements target.
func (apiTarget) classify(_ context.Context, err error) (again bool, _ error) {
	for _, final := range []error{context.Canceled, context.DeadlineExceeded, gateway.ErrTooLarge, errNotUTF8} {
		if errors.Is(err, final) {
			return false, err
		}
	}
	var code string
	var api smithy.APIError
	if errors.As(err, &api) {
		code = api.ErrorCode()
	}
	var response *awsclient.ResponseError
	status := 0
	if errors.As(err, &response) {
		status = response.HTTPStatusCode()
	}
	switch {
	case status == http.StatusGone || code == "GoneException":
		return false, gateway.ErrGone
	case status == http.StatusRequestEntityTooLarge || code == "PayloadTooLargeException":
		return false, gateway.ErrTooLarge
	case status == http.StatusBadRequest && code == "BadRequestException":
		// The id is malformed. Other errors with this status are about the signature and
		// credentials, not about the connection.
		return false, gateway.ErrGone
	case status == http.StatusTooManyRequests || code == "LimitExceededException" || status >= 500:
		return true, &apiError{status, code}
	case status != 0:
		return false, &apiError{status, code}
	case code != "":
		return false, fmt.Errorf("API Gateway answered with %s", code)
	default:
		return true, err // no answer at all
	}
}
