package apigw

import (
	"context"
	"log/slog"
	"time"

	"blindpost/shared/gateway"
	"blindpost/shared/gateway/apigw/record"
	"blindpost/shared/queue"
)

// Options are the settings of an Adapter. All methods except Job need Handler, Connect
// needs Queue, and the others need Front.
type Options struct {
	Handler gateway.Handler
	Front   gateway.Front
	// Queue takes the jobs of the adapter; see JobFirst.
	Queue queue.Queue
	Log   *slog.Logger
	// Now is the clock. Default is time.Now.
	Now func() time.Time

	// Fronts are the callback addresses of our own fronts; see CheckFront. An event with
	// another callback address is an error.
	Fronts []string

	// Callback is the address of @connections; see CheckEndpoint. If it is empty, the
	// adapter takes the address from each event, which is wrong with a custom domain in
	// front of the API. All functions must have the same value.
	Callback string
	// DefaultPath is the path of a request without PathParameter: API Gateway
	// itself has no paths. Defaults are "/v1/ws" and "p".
	DefaultPath   string
	PathParameter string

	// OriginHeader is the header with CloudFront's secret, and Origin checks its value.
	// Only for a request with the right secret does the adapter take the client's
	// address from X-Forwarded-For. Without Origin it never does.
	OriginHeader string
	Origin       func(ctx context.Context, value string) (bool, error)

	// MaxFrame is the largest message in bytes from a peer, 0 for none but API
	// Gateway's own; a larger one is an Oversize event.
	MaxFrame int64

	// FirstWanted reports whether the first messages are still needed: the handler
	// knows the connection, and the peer has not answered them yet. Nil means always.
	FirstWanted func(ctx context.Context, c gateway.Conn) (bool, error)
}

// Adapter turns events into calls of a handler. Its methods are safe for concurrent
// use, but the caller must handle the events of one connection one after another.
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

// conn makes the gateway.Conn of an event.
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

// at is the time of an event, or now if it has none.
func (a *Adapter) at(ms int64) time.Time {
	if ms <= 0 {
		return a.o.Now()
	}
	return time.UnixMilli(ms)
}
