package bench

import (
	"net"
	"sync"
	"testing"
	"time"
)

// gatedProxy forwards TCP to addr, unless the gate is locked.
func gatedProxy(t *testing.T, addr string) (proxy string, gate *sync.RWMutex) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	gate = &sync.RWMutex{}
	var wg sync.WaitGroup
	t.Cleanup(func() { _ = l.Close(); wg.Wait() })
	forward := func(to, from net.Conn) {
		defer to.Close()
		defer from.Close()
		b := make([]byte, 32<<10)
		for {
			n, err := from.Read(b)
			gate.RLock()
			if n > 0 {
				_, _ = to.Write(b[:n])
			}
			gate.RUnlock()
			if err != nil {
				return
			}
		}
	}
	wg.Go(func() {
		for {
			in, err := l.Accept()
			if err != nil {
				return
			}
			out, err := net.Dial("tcp", addr)
			if err != nil {
				_ = in.Close()
				continue
			}
			wg.Go(func() { forward(in, out) })
			wg.Go(func() { forward(out, in) })
		}
	})
	return l.Addr().String(), gate
}

// Whatever the relay does, all that was due is sent and counted, with the time
// that it has waited: a stall shows in as many messages as were due meanwhile.
func TestLatencyTellsOfAStall(t *testing.T) {
	h := &house{t: t}
	relay, err := h.launch(t.Context(), true)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := relay.Stop(); err != nil {
			t.Error(err)
		}
	}()
	target := relay.Target()
	var gate *sync.RWMutex
	target.Addr, gate = gatedProxy(t, target.Addr)
	f := newFleet(t.Context(), target)
	defer f.end()
	r, err := openLive(f, 4, 64)
	if err != nil {
		t.Fatal(err)
	}
	const rate, burst, measure, stall = 1000, 2, 600 * time.Millisecond, 300 * time.Millisecond
	timer := time.AfterFunc(measure/4, func() {
		gate.Lock()
		time.AfterFunc(stall, gate.Unlock)
	})
	defer timer.Stop()
	got, err := r.latency(relay, "", rate, burst, 0, measure)
	if err != nil {
		t.Fatal(err)
	}
	// A Poisson process of 300 bursts: 5 standard deviations.
	if n := int(got.n); n%burst != 0 || n < 600-2*87 || n > 600+2*87 {
		t.Errorf("%d messages were counted, want about 600", n)
	}
	// Half of the messages were due during the stall, and waited for half of it
	// on average.
	if q := got.quantile(0.8); q < stall/5 {
		t.Errorf("a fifth of the messages took more than %v, want %v at least", q, stall/5)
	}
	if got.most < stall*8/10 {
		t.Errorf("the longest took %v, want about %v", got.most, stall)
	}
	if sent := r.sent(); sent != got.n {
		t.Errorf("%d messages were sent and %d counted", sent, got.n)
	}
}

// What was due in the warm-up is sent, not counted.
func TestLatencyLeavesTheWarmUpOut(t *testing.T) {
	h := &house{t: t}
	relay, err := h.launch(t.Context(), true)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := relay.Stop(); err != nil {
			t.Error(err)
		}
	}()
	f := newFleet(t.Context(), relay.Target())
	defer f.end()
	r, err := openLive(f, 1, 64)
	if err != nil {
		t.Fatal(err)
	}
	got, err := r.latency(relay, "", 1000, 1, 200*time.Millisecond, 200*time.Millisecond)
	if err != nil {
		t.Fatal(err)
	}
	if sent := r.sent(); got.n == 0 || got.n >= sent*3/4 {
		t.Errorf("%d of %d messages were counted, want about half", got.n, sent)
	}
}
