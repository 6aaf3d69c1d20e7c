package relay

import (
	"sync"
	"time"

	"blindpost/shared/gateway"
)

// In a relay of many processes each write of a connection's record costs money. A
// write for every counted frame would be the most expensive part of handling the frame.
// So a process counts in memory while the limit is far, and writes with every eighth
// frame. The count of one process is exact; if another process takes over within a
// minute, it may let up to seven frames more pass.
const (
	saveEvery  = 8
	batchFrom  = 4 * saveEvery // smaller limits are counted exactly
	maxUnsaved = 1 << 16       // windows; bounds the memory
)

// unsaved holds what this process has counted since it last wrote the record of a
// connection.
type unsaved struct {
	mu      sync.Mutex
	windows map[windowName]rateWindow
}

type windowName struct {
	conn    gateway.Conn
	control bool
}

// get returns the events that were counted and not written; the zero window if none.
func (u *unsaved) get(name windowName) rateWindow {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.windows[name]
}

// add puts more events into a window. Windows that overlap become one: several
// processes that count the same connection begin at different times.
func (w *rateWindow) add(more rateWindow) {
	switch d := more.start.Sub(w.start); {
	case more.n == 0 || d <= -limitWindow: // more has ended
	case d >= limitWindow:
		*w = more
	default:
		if d < 0 {
			w.start = more.start
		}
		w.n += more.n
	}
}

// count counts one event of the window that begins at start, and returns how many
// events of it are not written. continues says that it is the window of the event before.
func (u *unsaved) count(name windowName, start time.Time, continues bool) int64 {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.windows == nil || len(u.windows) >= maxUnsaved {
		u.windows = make(map[windowName]rateWindow)
	}
	w := u.windows[name]
	if !continues {
		w.n = 0
	}
	w = rateWindow{start: start, n: w.n + 1}
	u.windows[name] = w
	return w.n
}

// complete adds the events that are not written to a connection that was read.
func (u *unsaved) complete(c *Conn) {
	c.messages.add(u.get(windowName{c.ID, false}))
	c.control.add(u.get(windowName{c.ID, true}))
}

// forget is called when the record of a connection has been written or deleted.
func (u *unsaved) forget(id gateway.Conn) {
	u.mu.Lock()
	defer u.mu.Unlock()
	delete(u.windows, windowName{id, false})
	delete(u.windows, windowName{id, true})
}
