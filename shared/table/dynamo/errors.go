package dynamo

import (
	"errors"
	"net"
	"net/http"
	"strconv"
	"strings"

	awsclient "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/smithy-go"

	"blindpost/shared/table"
)

// ErrUncertain says that the answer to a write got lost: it may have been done or
// not. See the package documentation.
var ErrUncertain = errors.New("outcome of the write is not known")

// serviceError is an error of DynamoDB without its message, which may quote keys
// and values. Unwrap still leads to it.
type serviceError struct {
	code   string
	status int
	err    error
}

func (e *serviceError) Error() string {
	if e.status == 0 {
		return "dynamodb: " + e.code
	}
	return "dynamodb: " + e.code + " (HTTP " + strconv.Itoa(e.status) + ")"
}

func (e *serviceError) Unwrap() error { return e.err }

// plain takes the message out of an error of DynamoDB. Other errors, those of
// the network for example, stay as they are.
func plain(err error) error {
	var api smithy.APIError
	if !errors.As(err, &api) {
		return err
	}
	return &serviceError{code: api.ErrorCode(), status: status(err), err: err}
}

func status(err error) int {
	var response *awsclient.ResponseError
	if errors.As(err, &response) && response.HTTPResponse() != nil {
		return response.HTTPStatusCode()
	}
	return 0
}

// class is what an error says about the request.
type class uint8

const (
	// denied: nothing was done, and it would be no use to try again.
	denied class = iota
	// later: nothing was done, for a reason that passes.
	later
	// unclear: nobody knows whether it was done.
	unclear
)

// passing are the codes of refusals that pass.
var passing = map[string]bool{
	"ProvisionedThroughputExceededException": true,
	"ThrottlingException":                    true,
	"Throttling":                             true,
	"RequestLimitExceeded":                   true,
	"TooManyRequestsException":               true,
	"TransactionConflictException":           true,
	"ReplicatedWriteConflictException":       true,
}

// unknown are the codes that leave open what happened, whatever status they come
// with. TransactionInProgress: it has not happened yet.
var unknown = map[string]bool{
	"InternalServerError":            true,
	"InternalFailure":                true,
	"ServiceUnavailable":             true,
	"RequestTimeout":                 true,
	"RequestTimeoutException":        true,
	"TransactionInProgressException": true,
}

func classify(err error) class {
	var api smithy.APIError
	if errors.As(err, &api) {
		code := api.ErrorCode()
		switch {
		case passing[code]:
			return later
		case unknown[code], status(err) >= http.StatusInternalServerError:
			return unclear
		}
		return denied
	}
	var serialization *smithy.SerializationError
	if errors.As(err, &serialization) {
		return denied
	}
	if notSent(err) {
		return later
	}
	return unclear
}

// notSent says whether there is proof that a request never left.
func notSent(err error) bool {
	var op *net.OpError
	if errors.As(err, &op) && op.Op == "dial" {
		return true
	}
	var dns *net.DNSError
	return errors.As(err, &dns)
}

// refusal is what an error that is no matter of time means in the contract; other
// errors are only freed of their message.
func refusal(err error) error {
	var api smithy.APIError
	if errors.As(err, &api) && api.ErrorCode() == validationException {
		return invalid(api.ErrorMessage())
	}
	return plain(err)
}

const validationException = "ValidationException"

// invalid tells apart by its message what DynamoDB has only one code for: "Item
// size has exceeded the maximum allowed size", "Item size to update has exceeded
// the maximum allowed size", "Collective size of items in transaction cannot
// exceed 4MB".
func invalid(message string) error {
	m := strings.ToLower(message)
	if strings.Contains(m, "size") && strings.Contains(m, "exceed") && !strings.Contains(m, "key") && !strings.Contains(m, "expression") {
		return table.ErrTooLarge
	}
	return &refusedError{}
}

// refusedError is ErrInvalid as DynamoDB says it.
type refusedError struct{}

func (*refusedError) Error() string {
	return table.ErrInvalid.Error() + ": refused by DynamoDB's validation"
}

func (*refusedError) Is(target error) bool { return target == table.ErrInvalid }
