package server

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"

	"blindpost/shared/gateway"
)

// Calls into the handler. A panic there is an error here.

var errPanic = errors.New("handler panicked")

func (s *Server) connect(ctx context.Context, e gateway.ConnectEvent) (res gateway.ConnectResult, err error) {
	if s.handler == nil {
		return res, errors.New("no handler is set")
	}
	defer s.recovered("connect", e.Conn, &err)
	return s.handler.Connect(ctx, e)
}

func (s *Server) frame(e gateway.FrameEvent) (res gateway.FrameResult, err error) {
	defer s.recovered("frame", e.Conn, &err)
	return s.handler.Frame(s.ctx, e)
}

func (s *Server) confirmed(e gateway.ConfirmedEvent) (err error) {
	defer s.recovered("confirmed", e.Conn, &err)
	return s.handler.Confirmed(s.ctx, e)
}

func (s *Server) disconnect(e gateway.DisconnectEvent) (err error) {
	defer s.recovered("disconnect", e.Conn, &err)
	return s.handler.Disconnect(s.ctx, e)
}

func (s *Server) recovered(event string, id gateway.Conn, err *error) {
	if v := recover(); v != nil {
		s.logPanic(event, id, v)
		*err = errPanic
	}
}

// failed counts and logs an event whose handler failed.
func (s *Server) failed(event string, c *conn, err error) {
	s.o.Observer.Failed(event)
	s.o.Logger.Warn("failed to handle an event", "event", event, "conn", string(c.id), "error", err)
}

// logPanic logs the stack. The value may hold bytes of a peer, so logPanic logs only
// its type, or its text if it is an error of the Go runtime.
func (s *Server) logPanic(event string, id gateway.Conn, v any) {
	s.o.Observer.Panicked()
	what := fmt.Sprintf("%T", v)
	if re, ok := v.(runtime.Error); ok {
		what = re.Error()
	}
	s.o.Logger.Error("handler panicked", "event", event, "conn", string(id), "panic", what, "stack", string(debug.Stack()))
}
