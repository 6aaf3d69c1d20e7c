package apigw

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	api "github.com/aws/aws-sdk-go-v2/service/apigatewaymanagementapi"

	"blindpost/shared/awsclient"
	"blindpost/shared/gateway"
)

// MaxMessage is the longest message in bytes that API Gateway carries, after
// base64.
const MaxMessage = 128 << 10

// API is what the front uses of @connections; *apigatewaymanagementapi.Client
// has it.
type API interface {
	PostToConnection(context.Context, *api.PostToConnectionInput, ...func(*api.Options)) (*api.PostToConnectionOutput, error)
	GetConnection(context.Context, *api.GetConnectionInput, ...func(*api.Options)) (*api.GetConnectionOutput, error)
	DeleteConnection(context.Context, *api.DeleteConnectionInput, ...func(*api.Options)) (*api.DeleteConnectionOutput, error)
}

var _ API = (*api.Client)(nil)

// FrontOptions are the settings of a Front. Client is required.
type FrontOptions struct {
	// Client makes the client for a callback address. It is called when the
	// address is first needed.
	NewClient func(ctx context.Context, endpoint string) (API, error)
	// Allowed reports whether an address may be called at all; see Allow. A
	// connection with another one is gone. Nil allows every address.
	Allowed func(endpoint string) bool
	// Fronts are the callback addresses of our own fronts; see CheckFront. Own makes
	// the client for one of them, when it is first needed.
	Fronts []string
	NewRemote func(ctx context.Context, address string) (RemoteFront, error)
	// RetryFor is how long an action goes on trying while API Gateway is
	// throttling, failing, or says that the peer reads too slowly. It is short,
	// because the sender of the frame waits for it, and ends with the context. One
	// attempt may take half of it. Default is 3 s.
	RetryFor time.Duration
	// Random spreads the pauses, in [0, 1). Default is math/rand/v2.
	Random func() float64
}

// Pauses between tries double from firstPause to maxPause; a random part of up to
// a half is taken off.
const (
	firstPause = 50 * time.Millisecond
	maxPause   = time.Second
)

// Front acts on the connections of API Gateway, and on those of our own fronts that
// invoke the same functions.
type Front struct {
	o FrontOptions

	mu      sync.Mutex
	clients map[string]API
	remotes map[string]RemoteFront
}

var _ gateway.Front = (*Front)(nil)

// NewFront makes a front. It does not connect to anything yet.
func NewFront(o FrontOptions) *Front {
	if o.RetryFor == 0 {
		o.RetryFor = 3 * time.Second
	}
	if o.Random == nil {
		o.Random = rand.Float64
	}
	return &Front{o: o, clients: make(map[string]API)}
}

// Post implements gateway.Front. The outcome is gateway.Sent, or gateway.Dropped for
// a droppable message that API Gateway did not take at once.
func (f *Front) Post(ctx context.Context, c gateway.Conn, m gateway.Message) (gateway.Outcome, error) {
	if own, id, err := f.remoteFront(ctx, c); err != nil {
		return 0, fmt.Errorf("failed to post: %w", err)
	} else if own != nil {
		return f.postRemote(ctx, own, id, m)
	}
	if encodedLen(m) > MaxMessage {
		return 0, gateway.ErrTooLarge
	}
	data, err := encode(m)
	if err != nil {
		return 0, fmt.Errorf("failed to post: %w", err)
	}
	patience := f.o.RetryFor
	if m.Droppable {
		patience = 0
	}
	again, err := f.callFor(ctx, c, patience, func(ctx context.Context, a API, id *string) error {
		_, err := a.PostToConnection(ctx, &api.PostToConnectionInput{ConnectionId: id, Data: data}, withoutRetries)
		return err
	})
	if err != nil && again && m.Droppable {
		return gateway.Dropped, nil
	}
	if err != nil {
		return 0, fmt.Errorf("failed to post: %w", err)
	}
	return gateway.Sent, nil
}

// Close implements gateway.Front. API Gateway has no close codes.
func (f *Front) Close(ctx context.Context, c gateway.Conn, code gateway.CloseCode, reason string) error {
	if own, id, err := f.remoteFront(ctx, c); err != nil {
		return fmt.Errorf("failed to close: %w", err)
	} else if own != nil {
		return f.closeRemote(ctx, own, id, code, reason)
	}
	err := f.call(ctx, c, func(ctx context.Context, a API, id *string) error {
		_, err := a.DeleteConnection(ctx, &api.DeleteConnectionInput{ConnectionId: id}, withoutRetries)
		return err
	})
	if err != nil {
		return fmt.Errorf("failed to close: %w", err)
	}
	return nil
}

// Stat implements gateway.Front.
func (f *Front) Stat(ctx context.Context, c gateway.Conn) (gateway.Stat, error) {
	if own, id, err := f.remoteFront(ctx, c); err != nil {
		return gateway.Stat{}, fmt.Errorf("failed to look at a connection: %w", err)
	} else if own != nil {
		return f.statRemote(ctx, own, id)
	}
	var out *api.GetConnectionOutput
	err := f.call(ctx, c, func(ctx context.Context, a API, id *string) (err error) {
		out, err = a.GetConnection(ctx, &api.GetConnectionInput{ConnectionId: id}, withoutRetries)
		return err
	})
	if err != nil {
		return gateway.Stat{}, fmt.Errorf("failed to look at a connection: %w", err)
	}
	return gateway.Stat{
		ConnectedAt:  aws.ToTime(out.ConnectedAt),
		LastActiveAt: aws.ToTime(out.LastActiveAt),
	}, nil
}

// Gone implements gateway.Front: this front knows nothing without asking.
func (f *Front) Gone(gateway.Conn) bool { return false }

// withoutRetries has the client send a request once, because our own retries know the errors
// of this API, and hear the answer out: a message that was posted and looks as if
// it had failed would be posted again.
func withoutRetries(o *api.Options) {
	o.Retryer = aws.NopRetryer{}
	o.HTTPClient = awsclient.WithoutWriteTo(o.HTTPClient)
}

// call does one action, again and again while there is hope.
func (f *Front) call(ctx context.Context, c gateway.Conn, do func(ctx context.Context, a API, id *string) error) error {
	_, err := f.callFor(ctx, c, f.o.RetryFor, do)
	return err
}

// callFor is call with a time of its own for further tries. It reports whether one
// more might have helped.
func (f *Front) callFor(ctx context.Context, c gateway.Conn, patience time.Duration, do func(ctx context.Context, a API, id *string) error) (again bool, _ error) {
	id, endpoint, ok := split(c)
	if !ok || (f.o.Allowed != nil && !f.o.Allowed(endpoint)) {
		return false, gateway.ErrGone // never was a connection of this front
	}
	client, err := f.client(ctx, endpoint)
	if err != nil {
		return false, err
	}
	end := time.Now().Add(patience)
	if d, ok := ctx.Deadline(); ok && d.Before(end) {
		end = d
	}
	for pause := firstPause; ; pause = min(2*pause, maxPause) {
		err := f.attempt(ctx, func(ctx context.Context) error { return do(ctx, client, &id) })
		if err == nil {
			return false, nil
		}
		again, err := classify(err)
		d := pause - time.Duration(f.o.Random()*float64(pause/2))
		if !again || time.Now().Add(d).After(end) {
			return again, err
		}
		if ctxErr := sleep(ctx, d); ctxErr != nil {
			return false, errors.Join(ctxErr, err)
		}
	}
}

// client returns the client of an address. Addresses are few: one, or one for
// each front that shares the functions.
func (f *Front) client(ctx context.Context, endpoint string) (API, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if a, ok := f.clients[endpoint]; ok {
		return a, nil
	}
	a, err := f.o.NewClient(ctx, endpoint)
	if err != nil {
		return nil, fmt.Errorf("failed to make a client: %w", err)
	}
	f.clients[endpoint] = a
	return a, nil
}

func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
