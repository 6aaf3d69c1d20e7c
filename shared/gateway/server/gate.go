package server

import "sync"

// gate counts the connections from before their Connect until after their
// Disconnect, and lets no more in than it may.
type gate struct {
	max int // 0 is no cap

	mu    sync.Mutex
	n     int
	shut  bool
	empty chan struct{} // closed when shut and empty
}

// entry is what the gate says to a newcomer.
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

// close lets nobody in any more. The channel is closed when everybody has left;
// first is true for the call that did it.
func (g *gate) close() (empty <-chan struct{}, first bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.shut {
		return g.empty, false
	}
	g.shut = true
	if g.n == 0 {
		close(g.empty)
	}
	return g.empty, true
}

func (g *gate) isShut() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.shut
}
