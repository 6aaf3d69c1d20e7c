package invoke

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"time"

	awsclient "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	"github.com/aws/smithy-go"

	"blindpost/shared/gateway/apigw"
)

// Results of a call, for the Observer.
const (
	succeeded     = "ok"
	throttled     = "throttled"
	functionError = "function_error"
	timedOut      = "timeout"
	badAnswer     = "bad_answer"
	unreachable   = "unreachable"
)

// callError is a failed call of a function or of the queue. It repeats no text of the
// answer: a function may have put anything there.
type callError struct {
	target string
	result string
	code   string // AWS's name of the error
	cause  error  // nil where there was an answer
}

func (e *callError) Error() string {
	text := "failed to call " + e.target + ": " + e.result
	if e.code != "" {
		text += " (" + e.code + ")"
	}
	if e.cause != nil {
		text += ": " + e.cause.Error()
	}
	return text
}

func (e *callError) Unwrap() error { return e.cause }

// statusOf is the HTTP status for a client if the call of functions/connect failed.
func statusOf(err error) int {
	var e *callError
	switch {
	case !errors.As(err, &e):
		return http.StatusInternalServerError
	case e.result == throttled:
		return http.StatusServiceUnavailable
	case e.result == timedOut:
		return http.StatusGatewayTimeout
	}
	return http.StatusBadGateway
}

// call invokes a function and waits for its answer. The Lambda client retries a call
// that was throttled or did not get through. The functions recognise a repeated frame
// by its id.
func (h *handler) call(ctx context.Context, function, name string, payload []byte) (out []byte, err error) {
	start := time.Now()
	defer func() { h.o.Observer.Invoked(function, resultOf(err), time.Since(start)) }()
	try, cancel := context.WithTimeout(ctx, h.o.Timeout)
	defer cancel()
	res, err := h.o.Lambda.Invoke(try, &lambda.InvokeInput{FunctionName: &name, Payload: payload})
	if err != nil {
		return nil, h.classify(ctx, try, "the function "+function, err)
	}
	switch {
	case res.FunctionError != nil:
		return nil, &callError{target: "the function " + function, result: functionError, code: kindOf(*res.FunctionError)}
	case res.StatusCode != http.StatusOK:
		return nil, &callError{target: "the function " + function, result: badAnswer, code: fmt.Sprint(res.StatusCode)}
	}
	return res.Payload, nil
}

// kindOf returns s if it is one of Lambda's two kinds of function errors.
func kindOf(s string) string {
	if s == "Handled" || s == "Unhandled" {
		return s
	}
	return ""
}

func resultOf(err error) string {
	var e *callError
	switch {
	case err == nil:
		return succeeded
	case errors.As(err, &e):
		return e.result
	}
	return unreachable
}

// classify returns the meaning of an error of an AWS client. ctx is the context of the
// caller, try the one of the call with its timeout.
func (h *handler) classify(ctx, try context.Context, target string, err error) *callError {
	e := &callError{target: target, result: unreachable}
	var api smithy.APIError
	var response *awsclient.ResponseError
	if errors.As(err, &api) {
		e.code = api.ErrorCode()
	}
	status := 0
	if errors.As(err, &response) {
		status = response.HTTPStatusCode()
	}
	switch {
	case ctx.Err() != nil:
		e.cause = ctx.Err()
	case try.Err() != nil:
		e.result, e.code = timedOut, ""
	case status == http.StatusTooManyRequests || e.code == "TooManyRequestsException" || e.code == "RequestThrottled":
		e.result = throttled
	case status == 0 && e.code == "":
		e.cause = err // there was no response, so err has no text of one
	}
	return e
}

func bodyOf(body string, isBase64 bool) ([]byte, error) {
	if body == "" {
		return nil, nil
	}
	if !isBase64 {
		return []byte(body), nil
	}
	b, err := base64.StdEncoding.DecodeString(body)
	if err != nil {
		return nil, errors.New("body of an answer is not base64")
	}
	return b, nil
}

// hopHeaders are the headers of one HTTP hop. This front sets its own for the client.
var hopHeaders = []string{
	"Connection", "Content-Length", "Keep-Alive", "Proxy-Connection", "Te", "Trailer", "Transfer-Encoding", "Upgrade",
}

// headerOf is the header of an answer, without those of the hop.
func headerOf(single map[string]string, multi map[string][]string) http.Header {
	h := apigw.Headers(single, multi)
	for _, name := range hopHeaders {
		delete(h, name)
	}
	return h
}
