package server

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gobwas/ws"

	"blindpost/shared/gateway"
	"blindpost/shared/proof/gatewaytest"
)

// What an idle connection costs, measured from outside: a server in a process of
// its own, and its resident memory before and after many connections. Each of
// them has said something and got a marked answer, as one does that
// authenticates.

const idleChildEnv = "BLINDPOST_TEST_IDLE_CHILD"

const (
	idleConns = 2000
	// idleMessage and idleAnswer are about the size of Auth and AuthOk.
	idleMessage, idleAnswer = 160, 100
)

// The bounds of the product, in bytes of resident memory per idle connection.
const (
	idlePlainMax = 10 << 10
	idleTLSMax   = 30 << 10
)

// silentHandler answers each frame with a marked message.
type silentHandler struct{ s *Server }

func (silentHandler) Connect(context.Context, gateway.ConnectEvent) (gateway.ConnectResult, error) {
	return gateway.ConnectResult{}, nil
}

func (h silentHandler) Frame(ctx context.Context, e gateway.FrameEvent) (gateway.FrameResult, error) {
	_, err := h.s.Post(ctx, e.Conn, gateway.Message{Data: make([]byte, idleAnswer+deep(20)), Mark: 1})
	return gateway.FrameResult{}, err
}

// deep uses 1 KiB of stack for each n, as signatures and a database do, and
// returns 0.
//
//go:noinline
func deep(n int) int {
	var b [1 << 10]byte
	if n == 0 {
		return int(b[0])
	}
	b[n] = byte(n)
	return deep(n-1) + int(b[n-1])
}

func (silentHandler) Confirmed(context.Context, gateway.ConfirmedEvent) error   { return nil }
func (silentHandler) Disconnect(context.Context, gateway.DisconnectEvent) error { return nil }

// idleChild is the server process. It prints its address, then one line of
// numbers for each line it reads.
func idleChild(mode string) {
	o := Options{NewConn: ids(), TrustedProxies: loopback, Logger: quiet()}
	if mode == "TLS" {
		o.TLS, _ = testCert()
	}
	s, err := New(o)
	if err != nil {
		panic(err)
	}
	s.Handle(silentHandler{s})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	go func() { panic(s.Serve(context.Background(), l)) }()
	fmt.Println(l.Addr())
	for in := bufio.NewScanner(os.Stdin); in.Scan(); {
		if in.Text() == "settle" {
			// What a quiet server does by itself within some minutes: each collection
			// halves a stack that has become too large.
			for range 5 {
				runtime.GC()
			}
			debug.FreeOSMemory()
		}
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		fmt.Println(resident(), m.HeapAlloc, m.StackInuse, runtime.NumGoroutine())
	}
}

// resident reads the resident memory of this process in bytes, 0 if it cannot.
func resident() int {
	b, _ := os.ReadFile("/proc/self/statm")
	var size, pages int
	_, _ = fmt.Sscan(string(b), &size, &pages)
	return pages * os.Getpagesize()
}

// footprint is what the child says about itself.
type footprint struct{ resident, heap, stack, goroutines int }

// measureIdle returns the cost of one idle connection: at once, and settled.
func measureIdle(t testing.TB, mode string) (atOnce, settled footprint) {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), idleChildEnv+"="+mode)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = in.Close() // ends it
		_ = cmd.Wait()
	}()
	lines := bufio.NewReader(out)
	line, err := lines.ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	addr, err := net.ResolveTCPAddr("tcp", strings.TrimSpace(line))
	if err != nil {
		t.Fatal(err)
	}
	ask := func(how string) (f footprint) {
		t.Helper()
		if _, err := fmt.Fprintln(in, how); err != nil {
			t.Fatal(err)
		}
		line, err := lines.ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		if _, err := fmt.Sscan(line, &f.resident, &f.heap, &f.stack, &f.goroutines); err != nil {
			t.Fatal(err)
		}
		return f
	}
	_, clientTLS := testCert()
	clientTLS = clientTLS.Clone()
	clientTLS.InsecureSkipVerify = true // the child has a certificate of its own
	open := func() net.Conn {
		var p *rawPeer
		if mode == "TLS" {
			p = upgraded(t, dialTLS(t, addr, clientTLS))
		} else {
			p = dialRaw(t, addr)
		}
		p.send(binaryMsg(repeat(idleMessage)))
		p.want(ws.OpBinary, string(make([]byte, idleAnswer)))
		p.send(clientPong(p.wantPing()))
		return p.Conn
	}
	for range 20 { // what comes with the first connections is not counted
		_ = open().Close()
	}
	before := ask("settle")
	conns := make([]net.Conn, idleConns)
	for i := range conns {
		conns[i] = open()
	}
	each := func(f footprint) footprint {
		return footprint{
			(f.resident - before.resident) / idleConns, (f.heap - before.heap) / idleConns,
			(f.stack - before.stack) / idleConns, (f.goroutines - before.goroutines),
		}
	}
	// The last writers end within moments; they are what a goroutine too many is.
	for start := time.Now(); ; runtime.Gosched() {
		atOnce = each(ask("now"))
		if atOnce.goroutines <= idleConns+3 {
			break
		}
		if time.Since(start) > 10*time.Second {
			t.Errorf("%s: %d connections have %d goroutines", mode, idleConns, atOnce.goroutines)
			break
		}
	}
	settled = each(ask("settle"))
	for _, c := range conns {
		_ = c.Close()
	}
	return atOnce, settled
}

func TestIdleMemory(t *testing.T) {
	if testing.Short() || raceEnabled || resident() == 0 {
		t.Skip("needs /proc and a build as it runs in production")
	}
	for mode, limit := range map[string]int{"plain": idlePlainMax, "TLS": idleTLSMax} {
		t.Run(mode, func(t *testing.T) {
			atOnce, settled := measureIdle(t, mode)
			t.Logf("bytes per idle connection: resident %d (heap %d, stack %d); before the garbage is collected %d",
				settled.resident, settled.heap, settled.stack, atOnce.resident)
			if settled.resident > limit {
				t.Errorf("an idle connection takes %d bytes, want at most %d", settled.resident, limit)
			}
		})
	}
}

// BenchmarkIdleMemory reports the same numbers.
func BenchmarkIdleMemory(b *testing.B) {
	for _, mode := range []string{"plain", "TLS"} {
		b.Run(mode, func(b *testing.B) {
			for range b.N {
				atOnce, settled := measureIdle(b, mode)
				b.ReportMetric(float64(settled.resident), "resident-B/conn")
				b.ReportMetric(float64(settled.heap), "heap-B/conn")
				b.ReportMetric(float64(settled.stack), "stack-B/conn")
				b.ReportMetric(float64(atOnce.resident), "uncollected-B/conn")
			}
		})
	}
}

// TestIdleConnectionHoldsNothing looks inside, after traffic of all sizes.
func TestIdleConnectionHoldsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s *Server
		rec := echo(&s)
		sv, dial := bubble(t, rec, func(o *Options) { o.ReadLimit = 1 << 20 })
		s = sv
		p := dial()
		c := s.conns.get(rec.WaitConnects(t, 1)[0])
		wantNothing := func(after string) {
			t.Helper()
			synctest.Wait()
			c.mu.Lock()
			defer c.mu.Unlock()
			if c.writing || c.out != nil || c.queued != 0 || c.cutTimer != nil || c.drained != nil || c.marks.unpinged != nil || c.marks.unanswered != nil {
				t.Errorf("after %s the write side holds something", after)
			}
			if c.in.pool != nil || c.in.message != nil || &c.in.buf[0] != &c.in.inline[0] {
				t.Errorf("after %s the read side holds something", after)
			}
		}
		wantNothing("the upgrade")
		for _, n := range []int{0, 10, 100, 16 << 10, 100 << 10, 1 << 20} {
			p.sendAside(binaryMsg(repeat(n)))
			p.want(ws.OpBinary, repeat(n))
			if n > longQueue {
				p.send(clientPong(p.wantPing())) // a long queue asks whether the peer lives
			}
			wantNothing(fmt.Sprintf("%d bytes", n))
		}
		p.send(masked(0x01, []byte("a")), masked(0x80, []byte("b")))
		p.want(ws.OpText, "ab")
		wantNothing("fragments")
		if _, err := s.Post(t.Context(), c.id, gateway.Message{Data: []byte("x"), Mark: 9}); err != nil {
			t.Fatal(err)
		}
		p.want(ws.OpBinary, "x")
		p.send(clientPong(p.wantPing()))
		wantNothing("a confirmation")
		time.Sleep(31 * time.Second)
		p.want(ws.OpPing, "")
		p.send(clientPong(nil))
		wantNothing("a keep-alive ping")
	})
}

// TestThousandIdleConnections is a crowd: pinged, posted to, and sent home.
func TestThousandIdleConnections(t *testing.T) {
	const n = 1000
	rec := gatewaytest.NewRecorder()
	s := newServer(t, rec, func(o *Options) { o.PingEvery = time.Second })
	addr := serve(t, s)
	before := runtime.NumGoroutine()
	peers := make([]*rawPeer, n)
	for i := range peers {
		peers[i] = dialRaw(t, addr)
	}
	ids := rec.WaitConnects(t, n)
	for _, p := range peers {
		p.want(ws.OpPing, "")
		p.send(clientPong(nil))
	}
	// The writers of a round of pings end within moments.
	for start := time.Now(); ; runtime.Gosched() {
		got := runtime.NumGoroutine() - before
		if got <= n+20 {
			break
		}
		if time.Since(start) > 20*time.Second {
			t.Fatalf("%d connections have %d goroutines", n, got)
		}
	}
	for i, id := range ids {
		if _, err := s.Post(t.Context(), id, gateway.Message{Data: fmt.Append(nil, id), Mark: uint64(i + 1)}); err != nil {
			t.Fatal(err)
		}
	}
	got := make(map[string]bool)
	for _, p := range peers {
		for {
			op, b, err := p.next()
			if err != nil {
				t.Fatal(err)
			}
			if op == ws.OpBinary {
				got[string(b)] = true
			}
			if op == ws.OpPing && len(b) == 8 {
				p.send(clientPong(b))
				break
			}
		}
	}
	if len(got) != n {
		t.Errorf("%d of %d messages came", len(got), n)
	}
	for _, id := range ids {
		rec.WaitMarks(t, id, 1)
	}
	var wg sync.WaitGroup
	for _, p := range peers {
		wg.Go(func() {
			if _, err := p.closed(gateway.CloseGoingAway); err != nil {
				t.Error(err)
			}
			if _, err := p.Write(clientClose(gateway.CloseGoingAway, "")); err != nil {
				t.Errorf("failed to answer a close: %v", err)
			}
		})
	}
	if err := s.Shutdown(t.Context(), 100*time.Millisecond); err != nil {
		t.Error(err)
	}
	wg.Wait()
	rec.Check(t)
}
