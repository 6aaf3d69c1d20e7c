package bubble

import (
	"net"
	"sync"
)

// Pipes is a listener whose connections are pipes.
type Pipes struct {
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
}

func newPipes() *Pipes { return &Pipes{conns: make(chan net.Conn), closed: make(chan struct{})} }

// Accept implements net.Listener.
func (l *Pipes) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

// Close implements net.Listener.
func (l *Pipes) Close() error {
	l.once.Do(func() { close(l.closed) })
	return nil
}

// Addr implements net.Listener.
func (l *Pipes) Addr() net.Addr { return tcpFrom("127.0.0.1") }

// Dial connects as the address from; false if nobody listens.
func (l *Pipes) Dial(from string) (net.Conn, bool) {
	client, server := net.Pipe()
	select {
	case l.conns <- pipeFrom{server, tcpFrom(from)}:
		return client, true
	case <-l.closed:
		return nil, false
	}
}

// pipeFrom is a pipe with the address of a TCP connection.
type pipeFrom struct {
	net.Conn
	addr net.Addr
}

// RemoteAddr implements net.Conn.
func (c pipeFrom) RemoteAddr() net.Addr { return c.addr }

func tcpFrom(ip string) net.Addr { return &net.TCPAddr{IP: net.ParseIP(ip), Port: 40000} }
