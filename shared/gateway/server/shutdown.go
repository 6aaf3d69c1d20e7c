package server

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"time"

	"blindpost/shared/base/backoff"
	"blindpost/shared/gateway"
)

// Shutdown ends the server: it stops accepting, makes /readyz fail, closes all
// connections with 1001 at random moments of spread, so that the peers do not
// all dial again at once, and returns when the last Disconnect has returned.
// When ctx ends before that, it cuts what is left, cancels the context of the
// handlers that still run, and returns the error of ctx.
func (s *Server) Shutdown(ctx context.Context, spread time.Duration) error {
	empty := s.gate.close()
	httpDone := make(chan error, 1)
	go func() { httpDone <- s.http.Shutdown(ctx) }()
	s.closeAll(ctx, spread)
	select {
	case <-empty:
	case <-ctx.Done():
	}
	err := <-httpDone
	for _, c := range s.conns.all() {
		c.cut()
	}
	s.cancel()
	if ctx.Err() != nil {
		_ = s.http.Close() // cut the requests that did not end in time
		return fmt.Errorf("failed to shut down in time: %w", ctx.Err())
	}
	// The end of the context of Serve may have closed the listener already.
	if err != nil && !errors.Is(err, net.ErrClosed) {
		return fmt.Errorf("failed to shut down: %w", err)
	}
	return nil
}

// closeAll closes the connections one by one over spread, in one goroutine.
func (s *Server) closeAll(ctx context.Context, spread time.Duration) {
	type due struct {
		c  *conn
		at time.Duration
	}
	var order []due
	for _, c := range s.conns.all() {
		order = append(order, due{c, time.Duration(s.o.Rand() * float64(spread))})
	}
	slices.SortFunc(order, func(a, b due) int { return int(a.at - b.at) })
	start := s.now()
	for _, d := range order {
		if wait := d.at - (s.now() - start); wait > 0 && backoff.Sleep(ctx, wait) != nil {
			return
		}
		_ = d.c.close(gateway.CloseGoingAway, "shutdown") // fails only for a closed connection
	}
}
