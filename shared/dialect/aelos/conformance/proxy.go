package conformance

import (
	"net"
	"sync"
	"testing"
)

// proxy is a stretch of network between a peer and the relay. It can freeze,
// which neither end is told: nothing arrives any more, no connection is closed.
type proxy struct {
	target   string
	listener net.Listener

	mu     sync.Mutex
	thawed *sync.Cond // not frozen any more, or closed
	frozen bool
	closed bool
	conns  []net.Conn
	pipes  sync.WaitGroup
}

// proxy makes one in front of the relay.
func (r *relay) proxy(t *testing.T) *proxy {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatalf("failed to listen: %v", err)
	}
	x := &proxy{target: r.address(), listener: l}
	x.thawed = sync.NewCond(&x.mu)
	x.pipes.Go(x.accept)
	t.Cleanup(func() {
		_ = l.Close()
		x.end()
		x.pipes.Wait()
	})
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
		x.conns = append(x.conns, near, far)
		closed := x.closed
		x.mu.Unlock()
		if closed {
			x.end()
			return
		}
		x.pipes.Go(func() { x.pipe(far, near) })
		x.pipes.Go(func() { x.pipe(near, far) })
	}
}

// pipe carries one direction. While the proxy is frozen it reads nothing, so that
// the sender's window fills up as it would in a real network.
func (x *proxy) pipe(to, from net.Conn) {
	buf := make([]byte, 32<<10)
	for {
		n, err := from.Read(buf)
		x.wait()
		if n > 0 {
			if _, werr := to.Write(buf[:n]); werr != nil {
				err = werr
			}
		}
		if err != nil {
			_ = to.Close()
			_ = from.Close()
			return
		}
		x.wait()
	}
}

func (x *proxy) wait() {
	x.mu.Lock()
	defer x.mu.Unlock()
	for x.frozen && !x.closed {
		x.thawed.Wait()
	}
}

// freeze stops the network.
func (x *proxy) freeze() {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.frozen = true
}

// thaw lets it run again, and what was under way arrives.
func (x *proxy) thaw() {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.frozen = false
	x.thawed.Broadcast()
}

// end closes everything.
func (x *proxy) end() {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.closed = true
	for _, c := range x.conns {
		_ = c.Close()
	}
	x.thawed.Broadcast()
}
