package server

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"blindpost/shared/gateway"
)

// Server is a WebSocket front. Make one with [New], give it its handler with
// Handle, then Serve (or mount it as an http.Handler), and end it with Shutdown.
type Server struct {
	// set once, before serving
	o       Options
	handler gateway.Handler
	http    *http.Server
	base    time.Time // times of connections are kept as durations since base, and are never 0

	// ctx is the context of handlers: it outlives the connections and ends only when
	// a shutdown runs out of time.
	ctx    context.Context
	cancel context.CancelFunc

	// safe for concurrent use
	conns *registry
	gate  *gate
	wheel *wheel
}

var (
	_ gateway.Front = (*Server)(nil)
	_ http.Handler  = (*Server)(nil)
)

// maxHeaderBytes bounds a request header, to which net/http adds 4 KiB of grace.
const maxHeaderBytes = 16 << 10

// New makes a server. It starts nothing.
func New(o Options) (*Server, error) {
	o, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	s := &Server{o: o, base: time.Now().Add(-time.Second), conns: newRegistry(), gate: newGate(o.MaxConns)}
	s.wheel = newWheel(s)
	s.ctx, s.cancel = context.WithCancel(context.Background())
	s.http = &http.Server{
		Handler:           s,
		ReadHeaderTimeout: o.HandshakeTimeout, // also bounds the TLS handshake
		ReadTimeout:       3 * o.HandshakeTimeout,
		WriteTimeout:      3 * o.HandshakeTimeout,
		IdleTimeout:       60 * time.Second,
		MaxHeaderBytes:    maxHeaderBytes,
		ErrorLog:          newHTTPLog(o.Logger),
		Protocols:         new(http.Protocols),
	}
	// HTTP/2 has no upgrade, and the other requests here do not need it.
	s.http.Protocols.SetHTTP1(true)
	if o.TLS != nil {
		s.http.TLSConfig = o.TLS.Clone()
		s.http.TLSConfig.NextProtos = protocols(o.TLS.NextProtos)
		newHandshakes(o.HandshakeTimeout).limit(s.http.TLSConfig)
	}
	return s, nil
}

// protocols are those to offer in a TLS handshake: HTTP/1.1, and the configured
// ones except HTTP/2 (a certificate authority needs one of its own).
func protocols(configured []string) []string {
	offered := []string{"http/1.1"}
	for _, p := range configured {
		if p != "http/1.1" && p != "h2" {
			offered = append(offered, p)
		}
	}
	return offered
}

// Handle sets the handler. The caller must call it once, before the first request.
// It is separate from New because a handler usually needs the front first. While a
// handler of a connection runs, the server neither reads that connection nor answers
// its pings; clients in the field give up after 10 s.
func (s *Server) Handle(h gateway.Handler) {
	s.handler = h
}

// Serve accepts connections from l, with TLS if it is set, until Shutdown, the
// end of ctx, or an error of the listener; only the last is returned. The end of
// ctx only stops accepting: open connections live until Shutdown. Serve closes l.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	stop := context.AfterFunc(ctx, func() { _ = l.Close() })
	defer stop()
	defer l.Close()
	var err error
	if s.o.TLS != nil {
		err = s.http.ServeTLS(corkListener{l}, "", "")
	} else {
		err = s.http.Serve(l)
	}
	if errors.Is(err, http.ErrServerClosed) || ctx.Err() != nil {
		return nil
	}
	return fmt.Errorf("failed to serve: %w", err)
}

// now is the time since base.
func (s *Server) now() time.Duration {
	return time.Since(s.base)
}

// at turns a duration since base into a time.
func (s *Server) at(d time.Duration) time.Time {
	return s.base.Add(d)
}
