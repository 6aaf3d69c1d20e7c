package invoke

import (
	"net"
	"net/http"
	"sync"
)

// unused are the connections of the functions without a call so far. Clients open spare
// connections, and http.Server.Shutdown waits five seconds for each of them.
type unused struct {
	mu    sync.Mutex
	conns map[net.Conn]struct{}
}

// note is the ConnState of an http.Server.
func (u *unused) note(c net.Conn, state http.ConnState) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if state == http.StateNew {
		u.conns[c] = struct{}{}
	} else {
		delete(u.conns, c)
	}
}

// close closes the unused connections.
func (u *unused) close() {
	u.mu.Lock()
	defer u.mu.Unlock()
	for c := range u.conns {
		_ = c.Close()
	}
}
