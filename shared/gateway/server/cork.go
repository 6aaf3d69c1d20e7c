package server

import (
	"net"
	"sync"
)

// corkConn is the transport below TLS. crypto/tls writes each record separately, and
// the first records of a connection are small. corkConn collects the records of one
// batch and writes them together.
type corkConn struct {
	net.Conn
	turn turn // until the first write

	// mu keeps the records in the order in which they were encrypted: TLS also
	// writes from the read side (a key update), while a batch is being flushed.
	mu     sync.Mutex
	corked bool
	held   *block
}

// corkListener puts a corkConn under each TLS connection.
type corkListener struct {
	net.Listener
}

func (l corkListener) Accept() (net.Conn, error) {
	nc, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &corkConn{Conn: nc}, nil
}

// Write implements net.Conn.
func (k *corkConn) Write(p []byte) (int, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if !k.corked {
		k.turn.end()
		return k.Conn.Write(p)
	}
	k.held = k.held.withRoom(len(p))
	k.held.b = append(k.held.b, p...)
	return len(p), nil
}

// Close implements net.Conn.
func (k *corkConn) Close() error {
	k.turn.end()
	return k.Conn.Close()
}

// cork makes Write collect.
func (k *corkConn) cork() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.corked = true
}

// flush writes what was collected and ends the collecting.
func (k *corkConn) flush() error {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.corked = false
	if k.held == nil {
		return nil
	}
	_, err := k.Conn.Write(k.held.b)
	k.held.release()
	k.held = nil
	return err
}

// drop discards what was collected. The connection cannot be used afterwards.
func (k *corkConn) drop() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.corked = false
	k.held.release()
	k.held = nil
}
