package sim

import (
	"time"

	peer "blindpost/shared/client/agentknock"
	"blindpost/shared/table"
)

// Finish lets the world come to rest, brings everybody back, and judges.
func (w *world) Finish() {
	w.e.Rest(45 * time.Minute) // the sweeper has been by
	if w.e.Failed() {
		return
	}
	w.checkNewest()
	w.checkSleeping()
	for _, k := range w.e.Sockets() {
		if k.Attached() && w.e.Chance(700) {
			k.HangUp()
		}
	}
	for _, d := range w.devices {
		d.dial()
	}
	w.e.Rest(time.Minute)
	w.diligent = true
	for _, d := range w.devices {
		d.call("pairing", `{"enabled":true}`)
	}
	for range 8 {
		w.comeBack()
		w.e.Rest(70 * time.Second)
		if w.e.Failed() {
			return
		}
	}
	w.checkConnections()
	w.checkDeals()
	if !w.e.Failed() {
		w.checkLimits()
	}
	if w.e.Plan.Long && !w.e.Failed() {
		w.checkNothingLeft()
	}
}

// comeBack connects whoever is not, and has everybody go on.
func (w *world) comeBack() {
	for _, d := range w.devices {
		if d.line() == nil {
			d.dial()
		} else {
			d.recover()
		}
	}
	for _, c := range w.clients {
		open := c.open()
		if c.enrolled {
			for _, l := range open {
				if l.pairing {
					l.sock.HangUp()
				}
			}
			open = c.open()
		}
		if len(open) > 0 {
			c.recover(open[0])
		} else if w.mayConnect(c) {
			c.dial()
		}
	}
}

func (w *world) mayConnect(c *client) bool {
	state := w.store.clientState(c)
	return state == "" || state == "active" || state == "pending"
}

// checkSleeping: a device that is not connected and for which something waits has been
// pushed since.
func (w *world) checkSleeping() {
	for _, d := range w.devices {
		if d.isThere() || !d.push {
			continue
		}
		it, _ := w.e.Peek(memberKey(d))
		if it.Attrs["tok"].Str() == "" {
			continue // the provider has refused it
		}
		for _, x := range w.waiting(d) {
			if w.e.Excused() {
				return
			}
			for _, kind := range []string{peer.Request, peer.Completion} {
				if x.waits(kind, w.e.Now()) && d.pushed < x.since[kind] {
					w.e.Violate(propWake, "%v sleeps since step %d, and the %s of %v waits since step %d", d, d.pushed, kind, x, x.since[kind])
				}
			}
		}
	}
}

// waiting are the exchanges in which something waits for a device.
func (w *world) waiting(d *device) []*stored {
	var all []*stored
	for _, x := range w.order {
		s := w.store.exchanges[x.id]
		if s == nil || x.client.device != d || w.store.states[s.client] == "revoked" {
			continue
		}
		if s.waits(peer.Request, w.e.Now()) || s.waits(peer.Completion, w.e.Now()) {
			all = append(all, s)
		}
	}
	return all
}

// checkNewest: of the connections of a device that it still reads, only the one that the
// relay knows is open. One that could not be closed at once, because the front failed or
// whoever had replaced it died, is closed later, though it says nothing.
func (w *world) checkNewest() {
	for _, k := range w.e.Sockets() {
		l := lineOf(k)
		if it, _ := w.e.Peek(memberKey(l.device)); l.client == nil && k.Open() && k.Attached() && string(k.ID) != it.Attrs["conn"].Str() {
			w.e.Violate(propNewest, "%v is open, and the relay speaks to %q", k, it.Attrs["conn"].Str())
		}
	}
}

// checkConnections: a device that has just connected is the one that the relay knows.
func (w *world) checkConnections() {
	for _, d := range w.devices {
		it, _ := w.e.Peek(memberKey(d))
		if l := d.line(); l == nil || string(l.sock.ID) != it.Attrs["conn"].Str() {
			w.e.Violate(propNewest, "the relay does not speak to %v, but to %q", d, it.Attrs["conn"].Str())
		}
	}
}

func memberKey(d *device) table.Key {
	return table.Key{Partition: "g/agentknock/" + d.id, Sort: memberSort}
}

// checkDeals: what was acked has arrived, unless a rule with a name has ended it, and
// what could be brought to its end was.
func (w *world) checkDeals() {
	for _, x := range w.order {
		s := w.store.exchanges[x.id]
		state := w.store.states[x.clientID]
		if s == nil || s.client != x.clientID {
			if x.acked && !x.phantom {
				w.e.Violate(propLost, "%v was acked and is not stored", x)
			}
			continue
		}
		gone := state == "revoked" || s.phase == expired || s.phase == 0 || !w.e.Now().Before(s.deadline)
		if s.of[peer.Request] != absent && x.taken[peer.Request] == nil && !gone {
			w.e.Violate(propLost, "the request of %v has not reached %v: %v", x, x.client.device, s)
		}
		if gone || x.clientID != x.client.id || !w.mayConnect(x.client) || x.over || x.phantom {
			continue
		}
		if !x.completed {
			w.e.Violate(propLost, "the client of %v waits for ever: %+v, stored: %v", x, x, s)
		}
		if s.live() {
			w.e.Violate(propLost, "%v is still open: %+v, stored: %v", x, x, s)
		}
		if s.of[peer.Response] == delivered && x.response == nil {
			w.e.Violate(propLost, "%v: the response counts as delivered and is not", x)
		}
	}
}

// checkLimits: whoever has nothing open can open as many exchanges as the limit says,
// and no more.
func (w *world) checkLimits() {
	l := w.limits
	l.ClientOpenExchanges, l.DeviceOpenExchanges = 3, 256
	l.ClientExchangesPerMinute, l.DeviceExchangesPerMinute = 0, 0
	l.ClientStoredBytes, l.DeviceStoredBytes = 8<<20, 32<<20
	for _, d := range w.made {
		d.SetLimits(l)
	}
	w.diligent = false
	for _, c := range w.clients {
		open := c.open()
		if w.store.clientState(c) != "active" || len(open) == 0 || !c.enrolled {
			continue
		}
		have := 0
		for _, x := range w.store.exchanges {
			if x.client == c.id && x.live() && w.e.Now().Before(x.deadline) {
				have++
			}
		}
		before := len(w.order)
		for range 4 {
			x := w.newDeal(c, w.newID(w.e.Now()))
			x.abort = false
			c.send(open[0], x.frame(peer.Message, peer.Request))
			w.e.Rest(time.Second)
		}
		acked := 0
		for _, x := range w.order[before:] {
			if x.acked {
				acked++
			}
		}
		if acked != max(0, 3-have) && !w.e.Failed() {
			w.e.Violate(propCounters, "%v has %d exchanges open, may have 3, and could open %d more", c, have, acked)
		}
	}
}

// checkNothingLeft: days later nothing is stored of any exchange.
func (w *world) checkNothingLeft() {
	for _, k := range w.e.Sockets() {
		if k.Attached() {
			k.HangUp()
		}
	}
	w.e.Rest(time.Minute)
	w.e.Pass(4 * 24 * time.Hour)
	w.e.Rest(time.Minute)
	for _, d := range w.devices {
		for _, prefix := range []string{exchangeSort, openSort, payloadSort} {
			if left := w.e.PeekAll(w.store.partitionOf(d), prefix); len(left) > 0 && !w.e.Failed() {
				w.e.Violate(propEnd, "%v: %d items of %q are left", d, len(left), prefix)
			}
		}
	}
}
