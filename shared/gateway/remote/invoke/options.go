package invoke

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/lambda"
	awssqs "github.com/aws/aws-sdk-go-v2/service/sqs"

	"blindpost/shared/gateway/apigw"
	"blindpost/shared/gateway/server"
)

// Lambda is the part of *lambda.Client that this package uses.
type Lambda interface {
	Invoke(context.Context, *lambda.InvokeInput, ...func(*lambda.Options)) (*lambda.InvokeOutput, error)
}

// SQS is the part of *sqs.Client that this package uses.
type SQS interface {
	SendMessage(context.Context, *awssqs.SendMessageInput, ...func(*awssqs.Options)) (*awssqs.SendMessageOutput, error)
}

var (
	_ Lambda = (*lambda.Client)(nil)
	_ SQS    = (*awssqs.Client)(nil)
)

// Functions are the names (or ARNs) of the functions.
type Functions struct {
	Connect    string
	Message    string
	Disconnect string
}

// Options are the settings of a Front. Lambda, Functions, Callback and Check are
// required.
type Options struct {
	// Server are the settings of the WebSocket server. NewConn, HTTP, MaxBuffered and
	// ReadLimit have defaults that fit.
	Server server.Options

	Lambda    Lambda
	Functions Functions
	// Ingress, if set, takes the frames: the FIFO queue at IngressURL, instead of
	// Functions.Message.
	Ingress    SQS
	IngressURL string
	// PathParameter is the query parameter that carries the path; default "p".
	PathParameter string
	// Timeout bounds a call of a function, with its retries; default 29 s, as with API
	// Gateway.
	Timeout time.Duration

	// Callback is the address at which the functions reach this front. It must be one
	// that they allow; see apigw.CheckFront.
	Callback string
	// Check reports whether word is the secret of the callbacks.
	Check func(ctx context.Context, word string) (bool, error)

	// NewID makes the ids of frames and requests: unique, also across processes.
	// Default is random.
	NewID    func() string
	Log      *slog.Logger
	Observer Observer
}

// Observer receives the calls between this front and the functions, for metrics.
type Observer interface {
	// Invoked is a call of the function connect, message, disconnect or http, or of
	// the queue ("ingress"), with its result: "ok", "throttled", "function_error",
	// "bad_answer", "timeout" or "unreachable".
	Invoked(function, result string, took time.Duration)
	// Called is a call of the functions about a connection.
	Called(method string, status int, took time.Duration)
}

// NopObserver ignores everything.
type NopObserver struct{}

var _ Observer = NopObserver{}

func (NopObserver) Invoked(string, string, time.Duration) {}
func (NopObserver) Called(string, int, time.Duration)     {}

// MaxPayload is the largest event in bytes that Lambda accepts in a synchronous call.
const MaxPayload = 6 << 20

// MaxFrame is the largest frame in bytes that fits into such an event as base64, with
// the other fields.
const MaxFrame = (MaxPayload - 64<<10) / 4 * 3

func (o Options) withDefaults() (Options, error) {
	switch {
	case o.Lambda == nil || o.Check == nil:
		return o, errors.New("failed to set up the front: Lambda and Check are required")
	case o.Functions.Connect == "" || o.Functions.Disconnect == "" || (o.Functions.Message == "" && o.Ingress == nil):
		return o, errors.New("failed to set up the front: a function has no name")
	case o.Ingress != nil && o.IngressURL == "":
		return o, errors.New("failed to set up the front: the ingress queue has no URL")
	case o.Server.ReadLimit > MaxFrame:
		return o, errors.New("failed to set up the front: the read limit is more than fits into an event")
	}
	if err := apigw.CheckFront(o.Callback); err != nil {
		return o, err
	}
	if o.PathParameter == "" {
		o.PathParameter = "p"
	}
	if o.Timeout == 0 {
		o.Timeout = 29 * time.Second
	}
	if o.NewID == nil {
		o.NewID = newID
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Observer == nil {
		o.Observer = NopObserver{}
	}
	return o, nil
}
