package chaos

import (
	"errors"
	"io"
	"net"
	"sync"
	"testing"
)

// proxy is a stretch of network in front of the relay. It can fall silent,
// which neither end is told: nothing arrives any more, nothing is closed, as for
// a phone in a tunnel.
type proxy struct {
	target   string
	listener net.Listener

	mu     sync.Mutex
	up     bool // silent towards the relay
	down   bool // silent from the relay
	closed bool
	conns  map[net.Conn]bool
	pipes  sync.WaitGroup
	woken  *sync.Cond
}

// newProxy makes one that ends with the test.
func newProxy(t *testing.T, target string) *proxy {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatalf("failed to listen: %v", err)
	}
	x := &proxy{target: target, listener: l, conns: make(map[net.Conn]bool)}
	x.woken = sync.NewCond(&x.mu)
	x.pipes.Go(x.accept)
	t.Cleanup(x.end)
	return x
}

func (x *proxy) address() string { return x.listener.Addr().String() }

func (x *proxy) accept() {
	for {
		near, err := x.listener.Accept()
		if err != nil {
			return
		}
		far, err := net.Dial("tcp", x.target)
		if err != nil {
			_ = near.Close()
			continue
		}
		x.mu.Lock()
		if x.closed {
			_ = near.Close()
			_ = far.Close()
		} else {
			x.conns[near], x.conns[far] = true, true
			x.pipes.Go(func() { x.pipe(far, near, &x.up) })
			x.pipes.Go(func() { x.pipe(near, far, &x.down) })
		}
		x.mu.Unlock()
	}
}

// pipe carries one direction. In silence it reads nothing, and what it has read
// goes nowhere until the silence ends.
func (x *proxy) pipe(to, from net.Conn, silent *bool) {
	buf := make([]byte, 8<<10)
	for {
		n, err := from.Read(buf)
		if !x.awaitSound(silent) {
			return
		}
		if n > 0 {
			if _, werr := to.Write(buf[:n]); werr != nil {
				err = werr
			}
		}
		if errors.Is(err, io.EOF) {
			// One side has said goodbye; the other may still have something to say.
			if c, ok := to.(*net.TCPConn); ok {
				_ = c.CloseWrite()
			}
			return
		}
		if err != nil {
			_ = to.Close()
			_ = from.Close()
			return
		}
	}
}

// awaitSound waits while a direction is silent. It reports false at the end.
func (x *proxy) awaitSound(silent *bool) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	for *silent && !x.closed {
		x.woken.Wait()
	}
	return !x.closed
}

// fallSilent drops from now on what goes to the relay, and what comes from it if
// all is set.
func (x *proxy) fallSilent(all bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.up, x.down = true, all
}

// end closes everything.
func (x *proxy) end() {
	_ = x.listener.Close()
	x.mu.Lock()
	x.closed = true
	for c := range x.conns {
		_ = c.Close()
	}
	x.woken.Broadcast()
	x.mu.Unlock()
	x.pipes.Wait()
}
