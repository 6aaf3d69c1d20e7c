package aelos

import (
	"sync"
	"time"

	"blindpost/shared/gateway"
)

// rates counts the frames of connections in windows of a minute, in the memory of
// the process: a write to the table for every snapshot would cost more than the
// snapshot. With several processes a peer may get several times its limit.
type rates struct {
	mu    sync.Mutex
	of    map[gateway.Conn]*window
	swept time.Time
}

type window struct {
	start time.Time
	n     int64
}

const rateWindow = time.Minute

func newRates() *rates { return &rates{of: make(map[gateway.Conn]*window)} }

// take counts a frame and reports whether it is within the limit; 0 is none.
func (r *rates) take(c gateway.Conn, now time.Time, limit int64) bool {
	if limit == 0 {
		return true
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.sweep(now)
	w := r.of[c]
	if w == nil {
		w = &window{start: now}
		r.of[c] = w
	}
	if since := now.Sub(w.start); since >= rateWindow || since < 0 {
		*w = window{start: now}
	}
	w.n++
	return w.n <= limit
}

func (r *rates) forget(c gateway.Conn) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.of, c)
}

// sweep forgets connections that have been silent: another process may have been
// told of their end.
func (r *rates) sweep(now time.Time) {
	if since := now.Sub(r.swept); since < rateWindow && since >= 0 {
		return
	}
	r.swept = now
	for c, w := range r.of {
		if now.Sub(w.start) >= 2*rateWindow {
			delete(r.of, c)
		}
	}
}
