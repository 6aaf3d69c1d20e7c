package apigw

import (
	"context"
	"log/slog"
	"time"

	"blindpost/shared/gateway"
	"blindpost/shared/gateway/apigw/record"
	"blindpost/shared/queue"
)

// Options are what an Adapter is made of. Handler, Front and Queue are required
// for whoever calls the methods that need them: Handler all but Job, Queue
// Connect, Front the rest.
type Options struct {
	Handler gateway.Handler
	Front   gateway.Front
	// Queue takes the jobs of the adapter; see JobFirst.
	Queue queue.Queue
	Log   *slog.Logger
	// Now is the clock. Default is time.Now.
	Now func() time.Time

	// Fronts are the callback addresses of our own fronts; see CheckFront. Events of
	// any other are errors.
	Fronts []string

	// Callback is the address that takes calls about connections, see
	// CheckEndpoint. Empty takes it from each event; with a custom domain in
	// front of the API that would be wrong. All functions must agree.
	Callback string
	// DefaultPath is the path of a request without PathParameter: API Gateway
	// itself has no paths. Defaults are "/v1/ws" and "p".
	DefaultPath   string
	PathParameter string

	// OriginHeader is the header by which CloudFront proves itself, and Origin
	// compares its value. Only what comes with it has its client in
	// X-Forwarded-For. Origin nil believes nobody.
	OriginHeader string
	Origin       func(ctx context.Context, value string) (bool, error)

	// MaxFrame is the largest message in bytes from a peer, 0 for none but API
	// Gateway's own; a larger one is an Oversize event.
	MaxFrame int64

	// FirstWanted reports whether the first words are still of use: the
	// connection exists as far as the handler knows, and has not been answered
	// yet. Nil means always.
	FirstWanted func(ctx context.Context, c gateway.Conn) (bool, error)
}

// Adapter turns events into calls of a handler. Its methods are safe for
// concurrent use; but those for one connection have to come one after another.
type Adapter struct{ o Options }

// New makes an adapter.
func New(o Options) *Adapter {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.DefaultPath == "" {
		o.DefaultPath = "/v1/ws"
	}
	if o.PathParameter == "" {
		o.PathParameter = "p"
	}
	return &Adapter{o: o}
}

// conn names the connection of an event.
func (a *Adapter) conn(r *record.Record) (gateway.Conn, error) {
	if r.Callback != "" {
		return remoteConn(r.ConnectionID, r.Callback, a.o.Fronts)
	}
	endpoint := a.o.Callback
	if endpoint == "" {
		var err error
		if endpoint, err = endpointOf(r.DomainName, r.Stage); err != nil {
			return "", err
		}
	}
	return newConn(r.ConnectionID, endpoint)
}

// at is a time of an event; now, if it has none.
func (a *Adapter) at(ms int64) time.Time {
	if ms <= 0 {
		return a.o.Now()
	}
	return time.UnixMilli(ms)
}
