package conformance

import (
	"io"
	"net"
	"sync"
	"testing"
)

// proxy is a stretch of network between a peer and the relay. It can freeze,
// which neither end is told: nothing arrives any more, no connection is closed,
// like a phone in a tunnel. It can be cut, which both ends notice.
type proxy struct {
	target   string
	listener net.Listener

	mu     sync.Mutex
	thawed *sync.Cond // not frozen any more, or closed
	frozen bool
	closed bool
	conns  map[net.Conn]bool
	pipes  sync.WaitGroup
}

// proxy makes one in front of the relay.
func (r *relay) proxy(t *testing.T) *proxy {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatalf("failed to listen: %v", err)
	}
	x := &proxy{target: r.address(), listener: l, conns: make(map[net.Conn]bool)}
	x.thawed = sync.NewCond(&x.mu)
	x.pipes.Go(x.accept)
	t.Cleanup(func() {
		_ = l.Close()
		x.mu.Lock()
		x.closed = true
		x.mu.Unlock()
		x.cut()
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
		if !x.adopt(near, far) {
			return
		}
		x.pipes.Go(func() { x.pipe(far, near) })
		x.pipes.Go(func() { x.pipe(near, far) })
	}
}

// adopt registers both ends, or closes them if the proxy is closed.
func (x *proxy) adopt(conns ...net.Conn) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, c := range conns {
		if x.closed {
			_ = c.Close()
			continue
		}
		x.conns[c] = true
	}
	return !x.closed
}

// pipe carries one direction. While the proxy is frozen it reads nothing, so
// that the sender's window fills up as it would in a real network.
func (x *proxy) pipe(to, from net.Conn) {
	buf := make([]byte, 32<<10)
	for x.open(from) {
		n, err := from.Read(buf)
		if !x.open(from) {
			return
		}
		if n > 0 {
			if _, werr := to.Write(buf[:n]); werr != nil {
				err = werr
			}
		}
		if err == io.EOF {
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

// open waits while the proxy is frozen and reports whether c still exists.
func (x *proxy) open(c net.Conn) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	for x.frozen && x.conns[c] && !x.closed {
		x.thawed.Wait()
	}
	return x.conns[c] && !x.closed
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

// cut breaks all connections, with a reset.
func (x *proxy) cut() {
	x.mu.Lock()
	defer x.mu.Unlock()
	for c := range x.conns {
		if c, ok := c.(*net.TCPConn); ok {
			_ = c.SetLinger(0)
		}
		_ = c.Close()
	}
	clear(x.conns)
	x.thawed.Broadcast()
}
