package invoke

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"blindpost/shared/gateway"
	"blindpost/shared/gateway/remote/callback"
	"blindpost/shared/gateway/server"
)

// Front is the WebSocket server with the functions behind it.
type Front struct {
	Server *server.Server

	handler   *handler
	callbacks *http.Server
	unused    unused
}

// New makes a front. It starts nothing.
func New(o Options) (*Front, error) {
	o, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	h := newHandler(o)
	so := o.Server
	if so.NewConn == nil {
		so.NewConn = newConn
	}
	if so.HTTP == nil {
		so.HTTP = &httpHandler{h}
	}
	f := &Front{handler: h, unused: unused{conns: make(map[net.Conn]struct{})}}
	if f.Server, err = server.New(so); err != nil {
		return nil, err
	}
	h.open = func(ctx context.Context, c gateway.Conn) bool {
		_, err := f.Server.Stat(ctx, c)
		return err == nil
	}
	f.Server.Handle(h)
	f.callbacks = &http.Server{
		Handler:           callback.NewHandler(f.callbackOptions(o)),
		ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout:       30 * time.Second,
		WriteTimeout:      30 * time.Second,
		// Longer than clients keep a connection, so that they close it.
		IdleTimeout:    120 * time.Second,
		MaxHeaderBytes: 8 << 10,
		ErrorLog:       discard,
		ConnState:      f.unused.note,
	}
	return f, nil
}

func (f *Front) callbackOptions(o Options) callback.HandlerOptions {
	c := callback.HandlerOptions{
		Front: f.Server, Check: o.Check, Identity: f.handler.identity,
		OnRequest: o.Observer.Called, Log: o.Log,
		MaxMessage: int64(o.Server.MaxBuffered),
	}
	if u, err := url.Parse(o.Callback); err == nil {
		c.Prefix = strings.TrimSuffix(u.EscapedPath(), "/")
	}
	return c
}

func (h *handler) identity(c gateway.Conn) (sourceIP, userAgent string) {
	p := h.peer(c)
	return p.sourceIP, p.userAgent
}

// Serve accepts clients and the calls of the functions until Shutdown, the end of ctx,
// or an error of a listener. The end of ctx only stops accepting clients. Serve closes
// the listeners. callbacks must do its own TLS.
func (f *Front) Serve(ctx context.Context, clients, callbacks net.Listener) error {
	called := make(chan error, 1)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		err := f.callbacks.Serve(callbacks)
		if err != nil && !errors.Is(err, http.ErrServerClosed) {
			// Without callbacks the functions cannot answer any connection.
			called <- fmt.Errorf("failed to serve callbacks: %w", err)
			cancel()
			return
		}
		called <- nil
	}()
	err := f.Server.Serve(ctx, clients)
	select {
	case errCalled := <-called:
		return errors.Join(err, errCalled)
	default:
		return err
	}
}

// Shutdown ends the front: it closes the connections with 1001 over spread, tells the
// functions of each, and serves their calls until that is done. See server.Shutdown.
func (f *Front) Shutdown(ctx context.Context, spread time.Duration) error {
	err := f.Server.Shutdown(ctx, spread)
	f.unused.close() // a call over one of them could only learn that its connection is gone
	errCallbacks := f.callbacks.Shutdown(ctx)
	if errCallbacks != nil {
		_ = f.callbacks.Close() // cut the calls that did not end in time
		errCallbacks = fmt.Errorf("failed to shut down the callbacks: %w", errCallbacks)
	}
	return errors.Join(err, errCallbacks)
}
