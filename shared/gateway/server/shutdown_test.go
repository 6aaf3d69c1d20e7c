package server

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gobwas/ws"

	"blindpost/shared/gateway"
	"blindpost/shared/proof/gatewaytest"
)

func TestShutdownSpreadsItsCloses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rec := gatewaytest.NewRecorder()
		chance := []float64{0.9, 0.1, 0.5, 0, 0.3}
		var drawn int
		s, dial := bubble(t, rec, func(o *Options) {
			o.Rand = func() float64 { drawn++; return chance[(drawn-1)%len(chance)] }
		})
		start := time.Now()
		var mu sync.Mutex
		var closedAt []time.Duration
		for range chance {
			p := dial()
			go func() {
				if op, b, err := p.next(); err != nil || op != ws.OpBinary || string(b) != "last words" {
					t.Errorf("got frame %#x %q, %v, want the last words", op, b, err)
				}
				if err := p.leave(gateway.CloseGoingAway); err != nil {
					t.Error(err)
				}
				mu.Lock()
				defer mu.Unlock()
				closedAt = append(closedAt, time.Since(start))
			}()
		}
		for _, id := range rec.WaitConnects(t, len(chance)) {
			if _, err := s.Post(t.Context(), id, gateway.Message{Data: []byte("last words")}); err != nil {
				t.Fatal(err)
			}
		}
		synctest.Wait() // one that is still being accepted would be closed at once
		if err := s.Shutdown(t.Context(), 10*time.Second); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		want := []time.Duration{0, 1 * time.Second, 3 * time.Second, 5 * time.Second, 9 * time.Second}
		if !slices.Equal(closedAt, want) {
			t.Errorf("closed at %v, want %v", closedAt, want)
		}
		for _, id := range rec.WaitConnects(t, len(chance)) {
			if e := rec.WaitDisconnect(t, id); e.Code != gateway.CloseGoingAway || e.Reason != "shutdown" {
				t.Errorf("disconnect says %d %q", e.Code, e.Reason)
			}
		}
	})
}

// TestShutdownWaitsForHandlers, and gives up with its context.
func TestShutdownWaitsForHandlers(t *testing.T) {
	for _, patient := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			rec := gatewaytest.NewRecorder()
			var handlerErr error
			rec.OnFrame = func(ctx context.Context, _ gateway.FrameEvent) (gateway.FrameResult, error) {
				select {
				case <-time.After(30 * time.Second):
				case <-ctx.Done():
					handlerErr = ctx.Err()
				}
				return gateway.FrameResult{}, nil
			}
			s, dial := bubble(t, rec)
			p := dial()
			id := rec.WaitConnects(t, 1)[0]
			p.send(text("work"))
			synctest.Wait()
			start := time.Now()
			wait := 10 * time.Second
			if patient {
				wait = time.Minute
			}
			ctx, cancel := context.WithTimeout(t.Context(), wait)
			defer cancel()
			var left sync.WaitGroup
			defer left.Wait()
			left.Go(func() {
				if _, err := p.closed(gateway.CloseGoingAway); err != nil {
					t.Error(err)
				}
			})
			err := s.Shutdown(ctx, 0)
			switch {
			case patient && (err != nil || handlerErr != nil || time.Since(start) != 30*time.Second):
				t.Errorf("shutdown: %v after %v, handler: %v", err, time.Since(start), handlerErr)
			case !patient && (!errors.Is(err, context.DeadlineExceeded) || time.Since(start) != wait):
				t.Errorf("shutdown: %v after %v", err, time.Since(start))
			}
			synctest.Wait()
			if !patient && handlerErr == nil {
				t.Error("the handler was not told")
			}
			rec.WaitDisconnect(t, id)
			rec.Check(t)
		})
	}
}

// TestShutdownDuringConnect accepts a connection that the shutdown has not seen.
func TestShutdownDuringConnect(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rec := gatewaytest.NewRecorder()
		rec.OnConnect = func(context.Context, gateway.ConnectEvent) (gateway.ConnectResult, error) {
			time.Sleep(5 * time.Second)
			return gateway.ConnectResult{}, nil
		}
		s, dial := bubble(t, rec)
		shut := make(chan error, 1)
		go func() {
			time.Sleep(time.Second)
			shut <- s.Shutdown(t.Context(), 0)
		}()
		if err := dial().leave(gateway.CloseGoingAway); err != nil {
			t.Error(err)
		}
		if err := <-shut; err != nil {
			t.Fatal(err)
		}
		if e := rec.WaitDisconnect(t, rec.WaitConnects(t, 1)[0]); e.Code != gateway.CloseGoingAway {
			t.Errorf("disconnect says %d", e.Code)
		}
	})
}

// TestShutdownRefuses: a request on a connection that is still open is told to go.
func TestShutdownRefuses(t *testing.T) {
	rec := gatewaytest.NewRecorder()
	s := newServer(t, rec)
	addr := serve(t, s)
	s.gate.close() // as Shutdown does first
	if res, body := ask(t, addr, upgradeRequest); res.StatusCode != 503 || !strings.Contains(body, "shutting_down") {
		t.Errorf("answer is %d %q", res.StatusCode, body)
	}
	if res, _ := ask(t, addr, "GET /readyz HTTP/1.1\r\nHost: relay\r\n\r\n"); res.StatusCode != 503 {
		t.Errorf("readyz: %d", res.StatusCode)
	}
	if res, _ := ask(t, addr, "GET /healthz HTTP/1.1\r\nHost: relay\r\n\r\n"); res.StatusCode != 200 {
		t.Errorf("healthz: %d", res.StatusCode)
	}
}

// TestServeEndsWithContext: it stops accepting, what is open lives on.
func TestServeEndsWithContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s *Server
		rec := echo(&s)
		s = newServer(t, rec)
		ctx, cancel := context.WithCancel(t.Context())
		l := newPipeListener()
		done := make(chan error, 1)
		go func() { done <- s.Serve(ctx, l) }()
		p := upgraded(t, l.dial())
		cancel()
		if err := <-done; err != nil {
			t.Errorf("serve: %v", err)
		}
		p.send(text("still there?"))
		p.want(ws.OpText, "still there?")
		var left sync.WaitGroup
		defer left.Wait()
		left.Go(func() {
			if err := p.leave(gateway.CloseGoingAway); err != nil {
				t.Error(err)
			}
		})
		if err := s.Shutdown(t.Context(), 0); err != nil {
			t.Error(err)
		}
	})
}
