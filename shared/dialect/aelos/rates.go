package aelos

import (
	"sync"
	"time"

	"blindpost/shared/gateway"
)

// rates counts what comes in windows of a minute, in the memory of the process: a write
// to the table for every snapshot would cost more than the snapshot. With several
// processes a peer may get several times its limit.
type rates struct {
	mu    sync.Mutex
	of    map[rate]*rateCount
	swept time.Time
}

// rate names what is counted: what comes over a connection, from one user to one boat,
// or from all viewers to one boat.
type rate struct {
	what rateKind
	of   string
}

type rateKind byte

const (
	rateFrames   rateKind = iota // frames of a connection
	rateHs2                      // handshakes that a boat answers, by connection
	rateCommands                 // commands of a connection, those refused too
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

// take counts n if that is within the limit, and reports whether it is; a limit of 0 is
// none.
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

// sweep forgets connections that have been silent: another process may have been
// told of their end.
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

// hs2PerHs1 is how many answers there is room for with each handshake that reaches a
// boat: the minutes of the two do not begin together, and a process may see more of the
// one than of the other.
const hs2PerHs1 = 4

// mayShakeHands reports whether one more hs1 of a user may reach the boat of a group. A
// user alone gets a quarter of what there is, so that a guest leaves something to the
// others.
func (d *Dialect) mayShakeHands(p private) bool {
	all := d.lim().Handshakes
	own := all
	if all > 0 {
		own = max(1, all/4)
	}
	return d.within(rateHs1OfSub, p.group+p.sub, own) && d.within(rateHs1, p.group, all)
}
