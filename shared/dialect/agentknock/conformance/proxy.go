package conformance

import (
	"context"
	"net"
	"sync"
	"testing"
)

// proxy is a stretch of network between a peer and the relay. It can freeze, which
// neither end is told: nothing arrives any more, and nothing is closed, like a phone
// in a tunnel.
type proxy struct {
	target   string
	listener net.Listener
	pipes    sync.WaitGroup

	mu     sync.Mutex
	thawed *sync.Cond // not frozen any more, or closed
	frozen bool
	closed bool
	conns  []net.Conn
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
		x.mu.Lock()
		x.closed = true
		for _, c := range x.conns {
			_ = c.Close()
		}
		x.thawed.Broadcast()
		x.mu.Unlock()
		x.pipes.Wait()
	})
	return x
}

// dial connects through the proxy, whatever the address.
func (x *proxy) dial(ctx context.Context, network, _ string) (net.Conn, error) {
	var d net.Dialer
	return d.DialContext(ctx, network, x.listener.Addr().String())
}

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
			_, _ = near.Close(), far.Close()
			return
		}
		x.pipes.Go(func() { x.carry(far, near) })
		x.pipes.Go(func() { x.carry(near, far) })
	}
}

// carry takes bytes in one direction. While the proxy is frozen it takes none, so
// that the sender's window fills up as it would in a real network.
func (x *proxy) carry(to, from net.Conn) {
	buf := make([]byte, 32<<10)
	for {
		n, err := from.Read(buf)
		if !x.open() {
			return
		}
		if n > 0 {
			if _, werr := to.Write(buf[:n]); werr != nil {
				err = werr
			}
		}
		if err != nil {
			_, _ = to.Close(), from.Close()
			return
		}
	}
}

// open waits while the proxy is frozen and reports whether it still exists.
func (x *proxy) open() bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	for x.frozen && !x.closed {
		x.thawed.Wait()
	}
	return !x.closed
}

// freeze stops the network.
func (x *proxy) freeze() {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.frozen = true
}
