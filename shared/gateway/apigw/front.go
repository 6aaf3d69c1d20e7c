package apigw

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"blindpost/shared/base/backoff"
	"blindpost/shared/gateway"
)

// FrontOptions are the settings of a Front. NewClient is required.
type FrontOptions struct {
	// NewClient makes the client for a callback address, when it is first needed.
	NewClient func(ctx context.Context, endpoint string) (API, error)
	// Allowed reports whether an address may be called; see AllowEndpoints. A
	// connection with any other address is gone. Nil allows every address.
	Allowed func(endpoint string) bool
	// Fronts are the callback addresses of our own fronts; see CheckFront. NewRemote
	// makes the client for one of them, when it is first needed.
	Fronts    []string
	NewRemote func(ctx context.Context, address string) (RemoteFront, error)
	// RetryFor is how long an action is retried while API Gateway throttles, fails, or
	// answers that the peer reads too slowly. It is short, because the sender of the
	// frame waits, and ends with the context. One attempt may take half of it. Default
	// is 3 s.
	RetryFor time.Duration
	// Random spreads the pauses, in [0, 1). Default is math/rand/v2.
	Random func() float64
}

// Pauses between attempts double from firstPause to maxPause, less a random part of up
// to a half.
const (
	firstPause = 50 * time.Millisecond
	maxPause   = time.Second
)

// Front acts on the connections of API Gateway, and on those of our own fronts that
// invoke the same functions.
type Front struct {
	o FrontOptions

	mu      sync.Mutex
	targets map[string]target // by address; few: API Gateway, and each front of our own
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
	return &Front{o: o, targets: make(map[string]target)}
}

// target acts on the connections of one address.
type target interface {
	RemoteFront
	// classify returns the meaning of an error of an action, and whether a retry may
	// help.
	classify(ctx context.Context, err error) (again bool, _ error)
}

// Post implements gateway.Front. For a connection of API Gateway the outcome is
// gateway.Sent, or gateway.Dropped for a droppable message that it did not take at once.
func (f *Front) Post(ctx context.Context, c gateway.Conn, m gateway.Message) (outcome gateway.Outcome, _ error) {
	retryFor := f.o.RetryFor
	if m.Droppable {
		retryFor = 0
	}
	again, err := f.call(ctx, c, retryFor, func(ctx context.Context, t target, id string) (err error) {
		outcome, err = t.Post(ctx, id, m)
		return err
	})
	switch {
	case err == nil:
		return outcome, nil
	case again && m.Droppable:
		return gateway.Dropped, nil
	}
	return 0, fmt.Errorf("failed to post: %w", err)
}

// Close implements gateway.Front. API Gateway has no close codes.
func (f *Front) Close(ctx context.Context, c gateway.Conn, code gateway.CloseCode, reason string) error {
	if _, err := f.call(ctx, c, f.o.RetryFor, func(ctx context.Context, t target, id string) error {
		return t.Close(ctx, id, code, reason)
	}); err != nil {
		return fmt.Errorf("failed to close: %w", err)
	}
	return nil
}

// Stat implements gateway.Front.
func (f *Front) Stat(ctx context.Context, c gateway.Conn) (s gateway.Stat, _ error) {
	if _, err := f.call(ctx, c, f.o.RetryFor, func(ctx context.Context, t target, id string) (err error) {
		s, err = t.Stat(ctx, id)
		return err
	}); err != nil {
		return gateway.Stat{}, fmt.Errorf("failed to get the status of a connection: %w", err)
	}
	return s, nil
}

// Gone implements gateway.Front: this front knows nothing without a network call.
func (f *Front) Gone(gateway.Conn) bool { return false }

// call does one action and retries it for at most retryFor. It reports whether one more
// retry might have helped.
func (f *Front) call(ctx context.Context, c gateway.Conn, retryFor time.Duration, do func(ctx context.Context, t target, id string) error) (again bool, _ error) {
	t, id, err := f.target(ctx, c)
	if err != nil {
		return false, err
	}
	end := time.Now().Add(retryFor)
	if d, ok := ctx.Deadline(); ok && d.Before(end) {
		end = d
	}
	for failures := 1; ; failures++ {
		err := f.attempt(ctx, func(ctx context.Context) error { return do(ctx, t, id) })
		if err == nil {
			return false, nil
		}
		again, err := t.classify(ctx, err)
		d := backoff.After(failures, firstPause, maxPause)
		d -= time.Duration(f.o.Random() * float64(d/2))
		switch late := time.Now().Add(d).After(end); {
		case again && late && refusedToConnect(err) && isRemote(t):
			// A front listens at its callback address until the last of its connections is
			// closed. It has ended, and so have they.
			return false, gateway.ErrGone
		case !again || late:
			return again, err
		}
		if ctxErr := backoff.Sleep(ctx, d); ctxErr != nil {
			return false, errors.Join(ctxErr, err)
		}
	}
}

// target returns the target of a connection and the connection's id there. A connection
// at an address that may not be called is gone.
func (f *Front) target(ctx context.Context, c gateway.Conn) (t target, id string, err error) {
	id, endpoint, ok := split(c)
	remoteID, front, remote := splitRemote(c)
	switch {
	case remote && f.o.NewRemote != nil && slices.Contains(f.o.Fronts, front):
		id = remoteID
	case ok && (f.o.Allowed == nil || f.o.Allowed(endpoint)):
	default:
		return nil, "", gateway.ErrGone
	}
	address := string(c)[len(id)+1:]
	f.mu.Lock()
	defer f.mu.Unlock()
	if t := f.targets[address]; t != nil {
		return t, id, nil
	}
	if remote {
		var r RemoteFront
		r, err = f.o.NewRemote(ctx, front)
		t = remoteTarget{r}
	} else {
		var a API
		a, err = f.o.NewClient(ctx, endpoint)
		t = apiTarget{a}
	}
	if err != nil {
		return nil, "", fmt.Errorf("failed to make a client: %w", err)
	}
	f.targets[address] = t
	return t, id, nil
}
