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

// ErrUncertain says that the answer to a write was lost: the write may have been done or
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

// withoutMessage removes the message from an error of DynamoDB. It returns other errors,
// such as those of the network, unchanged.
func withoutMessage(err error) error {
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

// class is the meaning of an error for its request.
type class uint8

const (
	// permanentError: nothing was done, and a retry would not help.
	permanentError class = iota
	// transientError: nothing was done, and a retry may succeed.
	transientError
	// uncertainOutcome: the request may have been done.
	uncertainOutcome
)

// transientCodes are the codes of refusals that a retry may overcome.
var transientCodes = map[string]bool{
	"ProvisionedThroughputExceededException": true,
	"ThrottlingException":                    true,
	"Throttling":                             true,
	"RequestLimitExceeded":                   true,
	"TooManyRequestsException":               true,
	"TransactionConflictException":           true,
	"ReplicatedWriteConflictException":       true,
}

// uncertainCodes are the codes after which the outcome is uncertain, with any status.
// TransactionInProgress: the transaction is still running.
var uncertainCodes = map[string]bool{
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
		case transientCodes[code]:
			return transientError
		case uncertainCodes[code], status(err) >= http.StatusInternalServerError:
			return uncertainOutcome
		}
		return permanentError
	}
	var serialization *smithy.SerializationError
	if errors.As(err, &serialization) {
		return permanentError
	}
	if notSent(err) {
		return transientError
	}
	return uncertainOutcome
}

// notSent reports whether a request certainly was not sent.
func notSent(err error) bool {
	var op *net.OpError
	if errors.As(err, &op) && op.Op == "dial" {
		return true
	}
	var dns *net.DNSError
	return errors.As(err, &dns)
}

// refusal maps a permanent error to an error of the contract. From any other error it
// only removes the message.
func refusal(err error) error {
	var api smithy.APIError
	if errors.As(err, &api) && api.ErrorCode() == validationException {
		return invalid(api.ErrorMessage())
	}
	return withoutMessage(err)
}

const validationException = "ValidationException"

// invalid distinguishes validation errors by their message, because DynamoDB has one code
// for all. Those about the size are "Item size has exceeded the maximum allowed size",
// "Item size to update has exceeded the maximum allowed size", "Collective size of items
// in transaction cannot exceed 4MB".
func invalid(message string) error {
	m := strings.ToLower(message)
	if strings.Contains(m, "size") && strings.Contains(m, "exceed") && !strings.Contains(m, "key") && !strings.Contains(m, "expression") {
		return table.ErrTooLarge
	}
	return &refusedError{}
}

// refusedError is an ErrInvalid that DynamoDB reported.
type refusedError struct{}

func (*refusedError) Error() string {
	return table.ErrInvalid.Error() + ": refused by DynamoDB's validation"
}

func (*refusedError) Is(target error) bool { return target == table.ErrInvalid }
