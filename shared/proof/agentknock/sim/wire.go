package sim

import (
	peer "blindpost/shared/client/agentknock"
	"blindpost/shared/gateway"
	"blindpost/shared/proof/engine"
)

// Posted judges each frame at the moment at which it is posted.
func (w *world) Posted(t *engine.Task, k *engine.Socket, m gateway.Message, taken bool) {
	if k == nil {
		w.e.Violate(propFrames, "%v posts to a connection that was never there", t)
		return
	}
	if !m.Text {
		w.e.Violate(propFrames, "%v posts a binary message", t)
		return
	}
	l := lineOf(k)
	role := peer.ClientRole
	if l.client == nil {
		role = peer.DeviceRole
	}
	f, err := peer.Decode(m.Data, role)
	if err != nil {
		w.e.Violate(propFrames, "%v posts %s to %v: %v", t, m.Data, k, err)
		return
	}
	if !taken {
		return
	}
	if l.client == nil {
		w.postedToDevice(t, l, f)
	} else {
		w.postedToClient(t, l, f)
	}
	if f.Type == peer.Message {
		l.posted[identity(f)] = true
	}
}

func (w *world) postedToClient(t *engine.Task, l *line, f peer.Frame) {
	w.checkRevoked(t, l, f)
	x := w.store.exchanges[f.RequestID]
	switch f.Type {
	case peer.Ack:
		if f.Kind == peer.Request && (x == nil || x.client != f.ClientID || x.phase == 0) {
			w.e.Violate(propStored, "%v acks a request of %v that is not stored: %s", t, l.client, f)
		}
		if f.Kind == peer.Completion && x != nil && x.client == f.ClientID && x.phase == open && w.e.Now().Before(x.deadline) &&
			w.store.states[x.client] != "revoked" {
			w.e.Violate(propStored, "%v acks a completion of an exchange that is open: %v", t, x)
		}
		l.acked[identity(f)] = true
	case peer.Receipt:
		if x == nil || x.client != f.ClientID || x.of[f.Kind] != delivered {
			w.e.Violate(propStates, "%v posts a receipt of what was not delivered: %s of %v", t, f, x)
		}
		// Of a message that was sent on several connections another one may have the ack.
		once := len(w.deals[f.RequestID].sentOn[f.Kind]) == 1
		if id := identity(f); once && l.sent[id] && !l.acked[id] && !l.resumed[f.RequestID] {
			w.e.Violate(propOrder, "%v posts a receipt to %v before the ack: %s", t, l.sock, f)
		}
	case peer.Message:
		if x == nil || x.client != f.ClientID || x.of[peer.Response] == absent {
			w.e.Violate(propStates, "%v posts a response that was not accepted: %s", t, f)
		}
	}
	w.checkSnapshot(t, l, f, x)
}

func (w *world) postedToDevice(t *engine.Task, l *line, f peer.Frame) {
	x := w.store.exchanges[f.RequestID]
	switch f.Type {
	case peer.Message:
		w.checkRevoked(t, l, f)
	case peer.Receipt:
		if t.Socket != l.sock { // otherwise it answers what the device has just said again
			w.checkRevoked(t, l, f)
		}
	case peer.Ack:
		if x == nil || x.of[peer.Response] == absent {
			w.e.Violate(propStored, "%v acks a response that is not stored: %s", t, f)
		}
	case peer.ClientState:
		if f.State == "revoked" && w.store.states[f.ClientID] == "revoked" {
			if _, known := w.store.told[f.ClientID]; !known {
				w.store.told[f.ClientID] = w.e.Step
			}
		}
		if now := w.store.states[f.ClientID]; now != f.State && w.e.Plan.Mode == engine.OneProcess {
			w.e.Violate(propStates, "%v says that a client is %s, which is %s", t, f.State, now)
		}
	case peer.CaughtUp:
		w.checkCaughtUp(t, l)
	}
	if f.Type == peer.Message && (x == nil || x.of[f.Kind] == absent) {
		w.e.Violate(propStates, "%v posts a message that was not accepted: %s", t, f)
	}
	w.checkSnapshot(t, l, f, x)
}

// checkRevoked: once the device has been told that a client is revoked, nothing of its
// exchanges reaches either side. In functions that is so for handlers which begin after
// that: nothing can call back one that has looked before.
func (w *world) checkRevoked(t *engine.Task, l *line, f peer.Frame) {
	at, revoked := w.store.told[f.ClientID]
	if !revoked || f.Type == peer.Error || f.Type == peer.Inactive {
		return
	}
	if w.e.Plan.Mode == engine.Functions && t.Start <= at {
		return
	}
	w.e.Violate(propRevoked, "%v posts %s to %v", t, f, l.sock)
}

var phases = map[string]int64{"open": open, "closing": closing, "settled": settled, "expired": expired}

var deliveries = map[string]int64{"absent": absent, "accepted": accepted, "delivered": delivered, "discarded": discarded}

// checkSnapshot: what one connection is told about an exchange goes forward only, and
// is not ahead of what is stored.
func (w *world) checkSnapshot(t *engine.Task, l *line, f peer.Frame, x *stored) {
	id := f.RequestID
	switch f.Type {
	case peer.Inactive:
		if f.Kind == "" && x != nil && x.client == f.ClientID {
			l.ended[id] = true
			if now := w.e.Now(); x.live() && now.Before(x.deadline) && w.store.states[x.client] != "revoked" && x.since[peer.Request] < t.Start {
				w.e.Violate(propStates, "%v calls an exchange inactive that is not: %v", t, x)
			}
		}
	case peer.State:
		if x == nil || x.client != f.ClientID {
			w.e.Violate(propStates, "%v tells the state of an exchange that there is not: %s", t, f)
			return
		}
		now := [4]int64{phases[f.Exchange], deliveries[f.Request], deliveries[f.Response], deliveries[f.Completion]}
		if !isValid(now[0], now[1], now[2], now[3]) {
			w.e.Violate(propStates, "%v posts a combination that there is not: %s", t, f)
		}
		if l.ended[id] && (now[0] == open || now[0] == closing) {
			w.e.Violate(propStates, "%v: an exchange that was inactive has a state again: %s", t, f)
		}
		if b, again := l.snaps[id]; again {
			before := [4]int64{phases[b.Exchange], deliveries[b.Request], deliveries[b.Response], deliveries[b.Completion]}
			for i := range now {
				if now[i] < before[i] || i > 0 && before[i] == delivered && now[i] != delivered {
					w.e.Violate(propStates, "%v: the state of %s goes back: %v, then %v", t, id, b, f.Snapshot)
				}
			}
		}
		l.snaps[id] = f.Snapshot
	}
}

// checkCaughtUp: everything that was waiting when the device connected has been posted,
// or waits no more.
func (w *world) checkCaughtUp(t *engine.Task, l *line) {
	now := w.e.Now()
	for _, x := range w.store.exchanges {
		c := w.store.client(x.client)
		if c == nil || c.device != l.device || w.store.states[x.client] == "revoked" {
			continue
		}
		for _, kind := range []string{peer.Request, peer.Completion} {
			if x.waits(kind, now) && x.since[kind] < l.sock.Dialed && !l.posted[x.id+"/"+kind] {
				w.e.Violate(propCaughtUp, "%v has not posted the %s of %v", t, kind, x)
			}
		}
	}
}
