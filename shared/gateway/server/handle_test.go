package server

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"blindpost/shared/gateway"
	"blindpost/shared/proof/gatewaytest"
)

// lockedBuffer is a log that can be read while it is written.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// counting counts what an Observer hears.
type counting struct {
	NopObserver
	mu                           sync.Mutex
	panics, slow, opened, closed int
	in, out, inBytes, outBytes   int
	buffered, confirmed          int
	refused                      []int
	failed                       []string
	codes                        []gateway.CloseCode
	latency                      time.Duration
	ended                        chan struct{} // if not nil, gets something for each connection that has ended
}

// waitClosed waits until so many connections have ended.
func (c *counting) waitClosed(t *testing.T, n int) {
	t.Helper()
	for range n {
		select {
		case <-c.ended:
		case <-time.After(20 * time.Second):
			t.Fatal("a connection does not end")
		}
	}
}

func (c *counting) do(f func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	f()
}

func (c *counting) Failed(event string) { c.do(func() { c.failed = append(c.failed, event) }) }
func (c *counting) Panicked()           { c.do(func() { c.panics++ }) }
func (c *counting) SlowReader()         { c.do(func() { c.slow++ }) }
func (c *counting) Opened()             { c.do(func() { c.opened++ }) }
func (c *counting) Refused(s int)       { c.do(func() { c.refused = append(c.refused, s) }) }
func (c *counting) FrameIn(n int)       { c.do(func() { c.in++; c.inBytes += n }) }
func (c *counting) FrameOut(n int)      { c.do(func() { c.out++; c.outBytes += n }) }
func (c *counting) Buffered(n int)      { c.do(func() { c.buffered += n }) }
func (c *counting) Closed(code gateway.CloseCode) {
	c.do(func() { c.closed++; c.codes = append(c.codes, code) })
	if c.ended != nil {
		c.ended <- struct{}{}
	}
}
func (c *counting) Confirmed(n int, d time.Duration) {
	c.do(func() { c.confirmed += n; c.latency = d })
}

func TestPanics(t *testing.T) {
	const secret = "the content of a message"
	var log lockedBuffer
	obs := &counting{ended: make(chan struct{}, 10)}
	rec := gatewaytest.NewRecorder()
	var at atomic.Value // where to panic
	at.Store("")
	explode := func(where string) {
		if at.Load() == where {
			panic(secret)
		}
	}
	rec.OnConnect = func(context.Context, gateway.ConnectEvent) (gateway.ConnectResult, error) {
		explode("connect")
		return gateway.ConnectResult{}, nil
	}
	rec.OnFrame = func(_ context.Context, e gateway.FrameEvent) (gateway.FrameResult, error) {
		explode("frame")
		if at.Load() == "index" {
			_ = []int{}[len(e.Data)]
		}
		return gateway.FrameResult{}, nil
	}
	rec.OnConfirmed = func(context.Context, gateway.ConfirmedEvent) error { explode("confirmed"); return nil }
	rec.OnDisconnect = func(context.Context, gateway.DisconnectEvent) error { explode("disconnect"); return nil }
	s := newServer(t, rec, func(o *Options) {
		o.Logger, o.Observer = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug})), obs
		o.HTTP = http.HandlerFunc(func(http.ResponseWriter, *http.Request) { explode("http") })
	})
	addr := serve(t, s)

	at.Store("connect")
	if res, body := ask(t, addr, upgradeRequest); res.StatusCode != 500 || strings.Contains(body, secret) {
		t.Errorf("connect: %d %q", res.StatusCode, body)
	}
	n := 0
	for _, where := range []string{"frame", "index", "confirmed", "disconnect"} {
		at.Store(where)
		p := dialRaw(t, addr)
		id := rec.WaitConnects(t, n+1)[n]
		n++
		switch where {
		case "frame", "index":
			p.send(text(secret))
			if err := p.leave(gateway.CloseInternal); err != nil {
				t.Error(err)
			}
		case "confirmed":
			if _, err := s.Post(t.Context(), id, gateway.Message{Data: []byte("x"), Mark: 1}); err != nil {
				t.Fatal(err)
			}
			if _, _, err := p.next(); err != nil {
				t.Fatal(err)
			}
			p.send(clientPong(p.wantPing()))
			if err := p.leave(gateway.CloseInternal); err != nil {
				t.Error(err)
			}
		case "disconnect":
			p.goAway(1000)
		}
		rec.WaitDisconnect(t, id)
	}
	at.Store("http")
	nc, err := net.Dial("tcp", addr.String())
	if err != nil {
		t.Fatal(err)
	}
	_, _ = io.WriteString(nc, "GET /x HTTP/1.1\r\nHost: relay\r\nX-Forwarded-Proto: https\r\n\r\n")
	_, _ = io.Copy(io.Discard, nc)
	_ = nc.Close()

	at.Store("")
	p := dialRaw(t, addr) // the server lives
	p.send(text("hello"))
	rec.WaitFrames(t, rec.WaitConnects(t, n+1)[n], 1)
	_ = p.Close()
	obs.waitClosed(t, n+1) // an event is counted when its handler has ended
	obs.do(func() {
		if obs.panics != 6 {
			t.Errorf("%d panics were counted", obs.panics)
		}
		if want := []string{"connect", "frame", "frame", "confirmed", "disconnect"}; !slices.Equal(obs.failed, want) {
			t.Errorf("failed events %v, want %v", obs.failed, want)
		}
	})
	out := log.String()
	if strings.Contains(out, secret) {
		t.Errorf("the log holds what a peer has sent:\n%s", out)
	}
	if !strings.Contains(out, "handle_test.go") || !strings.Contains(out, "index out of range") {
		t.Errorf("the log does not say where it was:\n%s", out)
	}
}
