// Package tcpproxy is a stretch of network between a peer and a relay, for tests of
// what happens when it fails. It promises:
//
//   - While nothing is wrong, it carries all bytes in both directions, in order. Who
//     says goodbye in one direction (a FIN) may still be told the rest of the other.
//   - Frozen, it is a phone in a tunnel: neither end is told, nothing is closed, and
//     nothing arrives but what was being handed on at that moment. It soon reads no
//     more either, so that a sender's window fills up as it would in a real network. A
//     connection that is made in that time is frozen from the start.
//   - Thawed, what was under way arrives.
//   - Cut, all its connections break with a reset, which both ends notice, also when
//     it was frozen. New ones can be made.
//   - When the target cannot be reached, a connection is closed at once.
//   - It ends with the test, and leaves no connection and no goroutine.
package tcpproxy

import (
	"context"
	"errors"
	"io"
	"net"
	"sync"
	"testing"
)

// chunk is how much one direction holds when it is frozen, at most.
const chunk = 32 << 10

// Proxy carries TCP connections to one target.
type Proxy struct {
	target   string
	listener net.Listener
	pipes    sync.WaitGroup

	mu       sync.Mutex
	woken    *sync.Cond // something has changed for who waits
	up, down bool       // frozen towards the target, and from it
	closed   bool
	open     map[*link]bool
}

// link is one connection of a peer and the one that carries it on.
type link struct {
	near, far *net.TCPConn
	ended     int // directions
}

// New makes a proxy in front of the TCP address target.
func New(t testing.TB, target string) *Proxy {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatalf("failed to listen: %v", err)
	}
	x := &Proxy{target: target, listener: l, open: make(map[*link]bool)}
	x.woken = sync.NewCond(&x.mu)
	x.pipes.Go(x.accept)
	t.Cleanup(x.end)
	return x
}

// Address is where it listens.
func (x *Proxy) Address() string { return x.listener.Addr().String() }

// DialContext connects through the proxy, whatever the address: it can stand in for
// that of a [net.Dialer].
func (x *Proxy) DialContext(ctx context.Context, network, _ string) (net.Conn, error) {
	var d net.Dialer
	return d.DialContext(ctx, network, x.Address())
}

// Freeze stops the network.
func (x *Proxy) Freeze() { x.set(true, true) }

// FreezeUp stops what goes to the target; what comes from it still arrives.
func (x *Proxy) FreezeUp() { x.set(true, false) }

// Thaw lets the network run again.
func (x *Proxy) Thaw() { x.set(false, false) }

func (x *Proxy) set(up, down bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.up, x.down = up, down
	x.woken.Broadcast()
}

// Cut breaks all connections.
func (x *Proxy) Cut() {
	x.mu.Lock()
	defer x.mu.Unlock()
	for l := range x.open {
		_, _ = l.near.SetLinger(0), l.far.SetLinger(0)
	}
	x.closeAll()
}

// end closes everything, and waits until it is over.
func (x *Proxy) end() {
	_ = x.listener.Close()
	x.mu.Lock()
	x.closed = true
	x.closeAll()
	x.mu.Unlock()
	x.pipes.Wait()
}

// closeAll needs the lock.
func (x *Proxy) closeAll() {
	for l := range x.open {
		_, _ = l.near.Close(), l.far.Close()
	}
	clear(x.open)
	x.woken.Broadcast()
}

func (x *Proxy) accept() {
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
		x.adopt(&link{near: near.(*net.TCPConn), far: far.(*net.TCPConn)})
	}
}

// adopt begins to carry, unless the proxy has ended meanwhile.
func (x *Proxy) adopt(l *link) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.closed {
		_, _ = l.near.Close(), l.far.Close()
		return
	}
	x.open[l] = true
	x.pipes.Go(func() { x.pipe(l, l.far, l.near, &x.up) })
	x.pipes.Go(func() { x.pipe(l, l.near, l.far, &x.down) })
}

// pipe carries one direction of a link.
func (x *Proxy) pipe(l *link, to, from *net.TCPConn, frozen *bool) {
	buf := make([]byte, chunk)
	for {
		n, err := from.Read(buf)
		if !x.awaitThaw(l, frozen) {
			return
		}
		if n > 0 {
			if _, werr := to.Write(buf[:n]); werr != nil {
				err = werr
			}
		}
		switch {
		case errors.Is(err, io.EOF): // the other side may still have something to say
			_ = to.CloseWrite()
			x.over(l, 1)
			return
		case err != nil:
			x.over(l, 2)
			return
		}
	}
}

// awaitThaw waits while a direction is frozen, and reports whether the link still
// exists.
func (x *Proxy) awaitThaw(l *link, frozen *bool) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	for *frozen && x.open[l] {
		x.woken.Wait()
	}
	return x.open[l]
}

// over closes a link of which both directions have ended.
func (x *Proxy) over(l *link, directions int) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if l.ended += directions; l.ended < 2 || !x.open[l] {
		return
	}
	_, _ = l.near.Close(), l.far.Close()
	delete(x.open, l)
	x.woken.Broadcast()
}
