package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
)

// network is the network between a phone and the relay. It can vanish without a word
// to either end: nothing arrives any more and nothing is closed, as if the phone had
// gone into a lift. A connection that is dialled afterwards works.
type network struct {
	target   string
	listener net.Listener

	mu     sync.Mutex
	closed bool
	routes map[*route]bool
	tasks  sync.WaitGroup
}

// route is one connection through a network.
type route struct {
	near, far net.Conn
	vanished  atomic.Bool
}

// newNetwork opens a way to the target.
func newNetwork(target string) (*network, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("failed to open a network: %w", err)
	}
	n := &network{target: target, listener: l, routes: make(map[*route]bool)}
	n.tasks.Go(n.accept)
	return n, nil
}

// dial connects to the relay through the network, whatever the address.
func (n *network) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	var d net.Dialer
	return d.DialContext(ctx, "tcp", n.listener.Addr().String())
}

func (n *network) accept() {
	for {
		near, err := n.listener.Accept()
		if err != nil {
			return
		}
		far, err := net.Dial("tcp", n.target)
		if err != nil {
			_ = near.Close()
			continue
		}
		r := &route{near: near, far: far}
		if !n.add(r) {
			r.close()
			return
		}
		n.tasks.Go(func() { n.carry(r, far, near) })
		n.tasks.Go(func() { n.carry(r, near, far) })
	}
}

func (n *network) add(r *route) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	if !n.closed {
		n.routes[r] = true
	}
	return !n.closed
}

// carry takes bytes in one direction until either end closes or the route
// vanishes.
func (n *network) carry(r *route, to, from net.Conn) {
	buf := make([]byte, 32<<10)
	for {
		size, err := from.Read(buf)
		if r.vanished.Load() {
			return // and close nothing
		}
		if _, errWrite := to.Write(buf[:size]); err != nil || errWrite != nil {
			r.close()
			return
		}
	}
}

func (r *route) close() {
	_ = r.near.Close()
	_ = r.far.Close()
}

// vanish makes the present connections vanish.
func (n *network) vanish() {
	n.mu.Lock()
	defer n.mu.Unlock()
	for r := range n.routes {
		r.vanished.Store(true)
	}
}

// bury closes the connections that have vanished, as each end does when it has
// waited long enough.
func (n *network) bury() {
	n.mu.Lock()
	defer n.mu.Unlock()
	for r := range n.routes {
		if r.vanished.Load() {
			r.close()
			delete(n.routes, r)
		}
	}
}

// close ends everything.
func (n *network) close() error {
	err := n.listener.Close()
	n.mu.Lock()
	n.closed = true
	for r := range n.routes {
		r.close()
	}
	n.mu.Unlock()
	n.tasks.Wait()
	if errors.Is(err, net.ErrClosed) {
		return nil
	}
	return err
}
