package relay

import (
	"sync"
	"time"

	"blindpost/shared/gateway"
)

// In a relay of many processes the record of a connection is in a table that has a
// price, and to write it for each frame, only because the frame was counted, would
// be the dearest part of a frame. So a process counts on by itself while the limit
// is far, and writes with every eighth. The count of one process is exact; should
// others take over in the middle of a minute, each may let up to seven more pass.
const (
	saveEvery  = 8
	seldomFrom = 4 * saveEvery // smaller limits are counted exactly
	maxUnsaved = 1 << 16       // bounds the memory
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

// get returns what has been counted and not written, the zero window for nothing.
func (u *unsaved) get(name windowName) rateWindow {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.windows[name]
}

// add puts more events into a window. Windows that overlap are one: of several
// processes each sees a beginning of its own.
func (w *rateWindow) add(more rateWindow) {
	switch d := more.start.Sub(w.start); {
	case more.n == 0 || d <= -limitWindow: // over
	case d >= limitWindow:
		*w = more
	default:
		if d < 0 {
			w.start = more.start
		}
		w.n += more.n
	}
}

// count counts one event of a window that begins at start, and returns how many
// there are that have not been written. Unless it goes on, what was there is over.
func (u *unsaved) count(name windowName, start time.Time, goesOn bool) int64 {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.windows == nil || len(u.windows) >= maxUnsaved {
		u.windows = make(map[windowName]rateWindow)
	}
	w := u.windows[name]
	if !goesOn {
		w.n = 0
	}
	w = rateWindow{start: start, n: w.n + 1}
	u.windows[name] = w
	return w.n
}

// complete puts what has not been written into a connection that was read.
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
