package server

import "sync"

// gate counts the connections from before their Connect until after their Disconnect,
// and refuses those over the limit.
type gate struct {
	max int // 0 is no cap

	mu    sync.Mutex
	n     int
	shut  bool
	empty chan struct{} // closed when shut and empty
}

// entry is the answer to a new connection.
type entry int

const (
	entered entry = iota
	full
	shut
)

func newGate(limit int) *gate {
	return &gate{max: limit, empty: make(chan struct{})}
}

func (g *gate) enter() entry {
	g.mu.Lock()
	defer g.mu.Unlock()
	switch {
	case g.shut:
		return shut
	case g.max > 0 && g.n >= g.max:
		return full
	}
	g.n++
	return entered
}

func (g *gate) leave() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.n--
	if g.shut && g.n == 0 {
		close(g.empty)
	}
}

// close refuses all new connections. empty is closed when the last one has left.
func (g *gate) close() (empty <-chan struct{}) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.shut && g.n == 0 {
		close(g.empty)
	}
	g.shut = true
	return g.empty
}

func (g *gate) isShut() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.shut
}
