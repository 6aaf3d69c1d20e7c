package aelos

import (
	"sync"
	"time"

	"blindpost/shared/gateway"
)

// rates counts frames and bytes in windows of a minute, in the memory of the process: a
// write to the table for every snapshot would cost more than the snapshot. With several
// processes a peer may use its limit once in each.
type rates struct {
	mu    sync.Mutex
	of    map[rate]*rateCount
	swept time.Time
}

// rate names a counter: a kind, and the connection, the group and user, or the group that
// it is of.
type rate struct {
	what rateKind
	of   string
}

type rateKind byte

const (
	rateFrames   rateKind = iota // frames of a connection
	rateHs2                      // hs2 of a boat, by connection
	rateCommands                 // commands of a connection, refused ones included
	rateBytes                    // bytes of commands, by user and boat
	rateHs1OfSub                 // handshakes of a user with a boat
	rateHs1                      // handshakes of all with a boat
)

type rateCount struct {
	start time.Time
	n     int64
}

const rateWindow = time.Minute

func newRates() *rates { return &rates{of: make(map[rate]*rateCount)} }

// take counts n if that is within the limit, and reports whether it is. The limit 0 lets
// everything pass.
func (r *rates) take(what rate, n int64, now time.Time, limit int64) bool {
	if limit == 0 {
		return true
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.sweep(now)
	w := r.of[what]
	if w == nil {
		w = &rateCount{start: now}
		r.of[what] = w
	}
	if since := now.Sub(w.start); since >= rateWindow || since < 0 {
		*w = rateCount{start: now}
	}
	if n > limit-w.n {
		return false
	}
	w.n += n
	return true
}

func (r *rates) forget(c gateway.Conn) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, what := range []rateKind{rateFrames, rateHs2, rateCommands} {
		delete(r.of, rate{what, string(c)})
	}
}

// sweep deletes the counters of the past: another process may have handled the end of
// their connections.
func (r *rates) sweep(now time.Time) {
	if since := now.Sub(r.swept); since < rateWindow && since >= 0 {
		return
	}
	r.swept = now
	for what, w := range r.of {
		if now.Sub(w.start) >= 2*rateWindow {
			delete(r.of, what)
		}
	}
}

// within counts one frame.
func (d *Dialect) within(what rateKind, of string, limit int64) bool {
	return d.rates.take(rate{what, of}, 1, d.core.Now(), limit)
}

// hs2PerHs1 is how many hs2 a boat may send for each hs1 that may reach it. It is more
// than one because the windows of the two do not begin together, and because a process
// may see more of the one than of the other.
const hs2PerHs1 = 4

// takeHandshake counts an hs1 and reports whether it may reach the boat. One user gets a
// quarter of the limit, so that a guest cannot use up the handshakes of the others.
func (d *Dialect) takeHandshake(p private) bool {
	all := d.lim().Handshakes
	own := all
	if all > 0 {
		own = max(1, all/4)
	}
	return d.within(rateHs1OfSub, p.group+p.sub, own) && d.within(rateHs1, p.group, all)
}
