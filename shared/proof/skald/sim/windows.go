package sim

import (
	"time"

	"blindpost/shared/table"
)

// windowWritten judges what happens to a pairing window.
func (s *sim) windowWritten(t *task, group string, o *table.Op) {
	ns := s.spaceOf(group)
	if ns == nil {
		s.violate(propPairing, "%v: a window in no namespace", t)
		return
	}
	switch o.Action {
	case table.Put, table.Delete:
		for _, w := range ns.windows {
			w.open = false
		}
		if o.Action == table.Put && t.ev != nil && t.ev.window != nil {
			w := t.ev.window
			ttl := time.Duration(w.ttl) * time.Second
			if ttl == 0 {
				ttl = 300 * time.Second
			}
			// A handler may have looked at the clock some time ago.
			w.open, w.used = true, false
			w.soonest, w.expires = t.startedAt.Add(ttl), s.now().Add(ttl)
			if w.expires.Before(w.soonest) {
				w.soonest, w.expires = w.expires, w.soonest
			}
		}
	case table.Update:
		w := s.openWindow(ns)
		switch {
		case w == nil:
			s.violate(propPairing, "%v is let in although no window is open", t)
		case w.used:
			s.violate(propPairing, "%v is let in with a token that is used", t)
		case !s.now().Before(w.expires):
			s.violate(propPairing, "%v is let in with a token that has expired", t)
		case t.ev == nil || t.ev.window != w:
			s.violate(propPairing, "%v is let in with another token than that of the window", t)
		default:
			w.used = true
			w.admitted[t.sock] = true
		}
	}
}

// openWindow is the window of a namespace that is open as far as the relay
// knows, used or not.
func (s *sim) openWindow(ns *namespace) *pairingWindow {
	for _, w := range ns.windows {
		if w.open {
			return w
		}
	}
	return nil
}
