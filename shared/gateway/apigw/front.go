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
	Client func(ctx context.Context, endpoint string) (API, error)
	// RetryFor is how long an action goes on trying while API Gateway is
	// throttling, failing, or says that the peer reads too slowly. It is short,
	// because the sender of the frame waits for it, and ends with the context.
	// Default is 3 s.
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

// Front acts on the connections of API Gateway.
type Front struct {
	o FrontOptions

	mu      sync.Mutex
	clients map[string]API
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

// Post implements gateway.Front. The outcome is always gateway.Sent.
func (f *Front) Post(ctx context.Context, c gateway.Conn, m gateway.Message) (gateway.Outcome, error) {
	if encodedLen(m) > MaxMessage {
		return 0, gateway.ErrTooLarge
	}
	data, err := encode(m)
	if err != nil {
		return 0, fmt.Errorf("failed to post: %w", err)
	}
	err = f.call(ctx, c, func(a API, id *string) error {
		_, err := a.PostToConnection(ctx, &api.PostToConnectionInput{ConnectionId: id, Data: data}, once)
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("failed to post: %w", err)
	}
	return gateway.Sent, nil
}

// Close implements gateway.Front. API Gateway has no close codes.
func (f *Front) Close(ctx context.Context, c gateway.Conn, _ gateway.CloseCode, _ string) error {
	err := f.call(ctx, c, func(a API, id *string) error {
		_, err := a.DeleteConnection(ctx, &api.DeleteConnectionInput{ConnectionId: id}, once)
		return err
	})
	if err != nil {
		return fmt.Errorf("failed to close: %w", err)
	}
	return nil
}

// Stat implements gateway.Front.
func (f *Front) Stat(ctx context.Context, c gateway.Conn) (gateway.Stat, error) {
	var out *api.GetConnectionOutput
	err := f.call(ctx, c, func(a API, id *string) (err error) {
		out, err = a.GetConnection(ctx, &api.GetConnectionInput{ConnectionId: id}, once)
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

// once turns the client's own retries off: ours know the errors of this API.
func once(o *api.Options) { o.Retryer = aws.NopRetryer{} }

// call does one action, again and again while there is hope.
func (f *Front) call(ctx context.Context, c gateway.Conn, do func(a API, id *string) error) error {
	id, endpoint, ok := split(c)
	if !ok {
		return gateway.ErrGone // never was a connection of this front
	}
	client, err := f.client(ctx, endpoint)
	if err != nil {
		return err
	}
	end := time.Now().Add(f.o.RetryFor)
	if d, ok := ctx.Deadline(); ok && d.Before(end) {
		end = d
	}
	for pause := firstPause; ; pause = min(2*pause, maxPause) {
		err := do(client, &id)
		if err == nil {
			return nil
		}
		again, err := classify(err)
		d := pause - time.Duration(f.o.Random()*float64(pause/2))
		if !again || time.Now().Add(d).After(end) {
			return err
		}
		if ctxErr := sleep(ctx, d); ctxErr != nil {
			return errors.Join(ctxErr, err)
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
	a, err := f.o.Client(ctx, endpoint)
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
