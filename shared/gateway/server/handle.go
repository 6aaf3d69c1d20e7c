package server

import (
	"context"
	"errors"

	"blindpost/shared/base/panics"
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

func (s *Server) logPanic(event string, id gateway.Conn, v any) {
	s.o.Observer.Panicked()
	panics.Log(s.ctx, s.o.Logger, "handler panicked", v, "event", event, "conn", string(id))
}
