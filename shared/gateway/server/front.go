package server

import (
	"context"
	"time"

	"blindpost/shared/gateway"
)

// Post implements [gateway.Front]. It never waits, so it ignores ctx. It answers
// gateway.ErrTooLarge for a message over Options.MaxBuffered.
func (s *Server) Post(_ context.Context, id gateway.Conn, m gateway.Message) (gateway.Outcome, error) {
	c := s.conns.get(id)
	if c == nil {
		return 0, gateway.ErrGone
	}
	return c.post(m)
}

// Close implements [gateway.Front]. For a code that must not be sent (1005, 1006, or
// one that RFC 6455 does not define) it sends a close frame without a code.
func (s *Server) Close(_ context.Context, id gateway.Conn, code gateway.CloseCode, reason string) error {
	c := s.conns.get(id)
	if c == nil {
		return gateway.ErrGone
	}
	return c.close(code, reason)
}

// Stat implements [gateway.Front].
func (s *Server) Stat(_ context.Context, id gateway.Conn) (gateway.Stat, error) {
	c := s.conns.get(id)
	if c == nil || c.state() != stateOpen {
		return gateway.Stat{}, gateway.ErrGone
	}
	return gateway.Stat{
		ConnectedAt:  s.at(time.Duration(c.openedAt.Load())),
		LastActiveAt: s.at(time.Duration(c.lastRead.Load())),
	}, nil
}

// Gone implements [gateway.Front]. The server knows all its connections until
// their Disconnect has returned, so an unknown id is gone.
func (s *Server) Gone(id gateway.Conn) bool {
	return s.conns.get(id) == nil
}
