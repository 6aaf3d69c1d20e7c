package server

import (
	"sync"
	"time"

	"github.com/gobwas/ws"
)

const (
	tick  = time.Second
	slots = 256
)

// wheel is a timing wheel: it visits every connection when a ping or the idle check
// is due, to the second. One goroutine serves all connections, and exists only while
// there are any. A connection that is due later than the wheel reaches is visited
// once in between.
type wheel struct {
	srv *Server

	mu      sync.Mutex
	stop    chan struct{} // ends the goroutine that runs; nil if none does
	n       int
	current int64 // the tick that was visited last
	heads   [slots]*conn
}

func newWheel(s *Server) *wheel {
	return &wheel{srv: s}
}

// add starts the pings and idle checks of a connection.
func (w *wheel) add(c *conn) {
	now := w.srv.now()
	c.nextPing = now + w.srv.o.PingEvery
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.stop == nil {
		w.stop = make(chan struct{})
		w.current = int64(now / tick)
		go w.run(w.stop)
	}
	c.wheeled = true
	w.n++
	w.insertLocked(c, min(c.nextPing, now+w.srv.o.IdleAfter))
}

// remove stops them. It ignores a connection that was never added.
func (w *wheel) remove(c *conn) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !c.wheeled {
		return
	}
	c.wheeled = false
	w.n--
	w.unlinkLocked(c)
	if w.n == 0 {
		close(w.stop)
		w.stop = nil
	}
}

// insertLocked puts c into the slot of the first tick that is not before due.
func (w *wheel) insertLocked(c *conn, due time.Duration) {
	at := int64((due + tick - 1) / tick)
	at = min(max(at, w.current+1), w.current+slots-1)
	c.slot = int32(at % slots)
	head := &w.heads[c.slot]
	c.prev, c.next = nil, *head
	if c.next != nil {
		c.next.prev = c
	}
	*head = c
}

// unlinkLocked takes c out of its slot; slot -1 is none.
func (w *wheel) unlinkLocked(c *conn) {
	if c.slot < 0 {
		return
	}
	if c.prev != nil {
		c.prev.next = c.next
	} else {
		w.heads[c.slot] = c.next
	}
	if c.next != nil {
		c.next.prev = c.prev
	}
	c.next, c.prev, c.slot = nil, nil, -1
}

func (w *wheel) run(stop chan struct{}) {
	t := time.NewTicker(tick)
	defer t.Stop()
	for {
		select {
		case <-t.C:
			w.advance(stop)
		case <-stop:
			return
		}
	}
}

// advance visits the slots of all ticks that have passed; after a pause of the
// machine there are many. It does nothing for a goroutine that was stopped, as
// another one may already run.
func (w *wheel) advance(stop chan struct{}) {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := w.srv.now()
	target := int64(now / tick)
	w.current = max(w.current, target-slots)
	for w.stop == stop && w.current < target {
		w.current++
		for head := &w.heads[w.current%slots]; w.stop == stop && *head != nil; {
			c := *head
			w.unlinkLocked(c)
			w.mu.Unlock()
			due := c.keepAlive(now)
			w.mu.Lock()
			if c.wheeled {
				w.insertLocked(c, due)
			}
		}
	}
}

// keepAlive pings the peer or closes the idle connection if that is due, and returns
// when it is next due.
func (c *conn) keepAlive(now time.Duration) time.Duration {
	o := &c.srv.o
	silentSince := now // the peer is not silent while the read goroutine handles its input
	if since := time.Duration(c.waiting.Load()); since != 0 {
		silentSince = since
	}
	if now-silentSince >= o.IdleAfter {
		c.closeSilent()
	}
	if now >= c.nextPing {
		c.control(ws.OpPing, nil)
		c.nextPing = now + o.PingEvery
	}
	return min(c.nextPing, silentSince+o.IdleAfter)
}
