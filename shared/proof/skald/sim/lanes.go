package sim

import (
	"bytes"
	"slices"

	"blindpost/shared/gateway"
	"blindpost/shared/table"
)

// entryPut judges a frame that is put into a mailbox.
func (s *sim) entryPut(t *task, l *lane, o *table.Op) {
	seq := laneSeq(o.Key)
	m := s.ghost.members[l.owner]
	if l.peer == nil || m == nil || m.lane != l.id {
		s.violate(propRevoked, "%v has put a frame into a mailbox that belongs to nobody (%s)", t, l.dead)
		return
	}
	if l.entries[seq] != nil || seq <= l.last {
		s.violate(propLoss, "%v has put a frame into place %d of %v's mailbox, which was taken (last %d)", t, seq, l.peer, l.last)
		return
	}
	if seq != l.last+1 {
		s.violate(propOrder, "%v leaves a hole before place %d of %v's mailbox (last %d)", t, seq, l.peer, l.last)
	}
	l.last = seq
	data := o.Set["f"].Raw()
	e := &entry{lane: l, seq: seq, put: s.steps, msg: s.findMessage(data), conn: gateway.Conn(o.Set["c"].Str()), expires: table.RoundExpires(o.Expires)}
	l.entries[seq] = e
	if e.conn != "" {
		if e.msg != nil && t.ev != nil && e.msg == t.ev.msg {
			e.msg.queued = true
		}
		if e.conn != m.conn {
			s.violate(propPresence, "%v has bound a frame to %s, but %v is connected by %q", t, e.conn, l.peer, m.conn)
		}
		if e.msg == nil {
			s.observeNotice(t, l.peer, data)
		}
		return
	}
	msg := e.msg
	if msg == nil || t.ev == nil || t.ev.msg != msg || msg.live || msg.to != l.peer || msg.from.space != l.peer.space {
		s.violate(propBytes, "%v has put a frame into %v's mailbox that nobody has sent there", t, l.peer)
		return
	}
	if !bytes.Contains(data, msg.ciphertext) || !bytes.Contains(data, msg.nonce) {
		s.violate(propBytes, "%v has stored %v changed", t, msg)
	}
	if from := s.ghost.lanes[t.sock.lane]; from != nil && from.dead == "revoked" && l.peer.agent {
		s.violate(propRevoked, "%v has stored %v for the agent, which has revoked its sender", t, msg)
	}
	t.stored = true
	msg.entries = append(msg.entries, e)
	if limit := s.plan.cap; limit > 0 && !s.setBack && l.depth() > limit {
		s.violate(propCap, "%v: %v's mailbox holds %d frames, the cap is %d", t, l.peer, l.depth(), limit)
	}
}

// checkDrained judges that a member is opened for others: everything in its
// mailbox has been handed to the connection, so that nothing can overtake it.
func (s *sim) checkDrained(t *task, l *lane, m *member) {
	for _, e := range l.entries {
		if !slices.Contains(e.handed, m.conn) && !e.expired() && (e.conn == "" || e.conn == m.conn) {
			s.violate(propOrder, "%v opens %v, but %s is still to be handed to %s", t, m.peer, e.describe(), m.conn)
			return
		}
	}
}

// entryDeleted judges a frame that leaves a mailbox.
func (s *sim) entryDeleted(t *task, l *lane, seq int64) {
	e := l.entries[seq]
	if e == nil {
		return
	}
	delete(l.entries, seq)
	switch {
	case l.dead != "":
		return
	case e.expired() && e.conn == "":
		l.lateStored++
		return
	case e.expired():
		l.lateTransient++
		return
	}
	got := e.read
	if s.plan.mode == functions {
		got = e.sent
	}
	switch {
	case got:
	case t.ev != nil && e.msg != nil && t.ev.msg == e.msg && !e.msg.accepted && s.mayRefuse(t):
		// A handler has stored it and failed; now it is refused, as if it had not been.
		e.msg.entries = slices.DeleteFunc(e.msg.entries, func(o *entry) bool { return o == e })
	case e.conn != "":
		// A frame that is bound to a connection goes with it.
		m := s.ghost.members[l.owner]
		if m != nil && m.conn == e.conn {
			if k := s.socks[e.conn]; k != nil && k.open && !k.closed {
				s.violate(propLoss, "%v has dropped %s for %v, which is still connected by %v", t, e.describe(), l.peer, k)
			}
		}
	default:
		s.violate(propLoss, "%v has deleted %v from the mailbox, which has not been delivered", t, e.msg)
	}
	if s.plan.mode == functions && e.msg != nil && e.sent && !e.read {
		// The limit of a front that cannot confirm: it may have been sent to a
		// peer that was no more.
		e.msg.lost = true
	}
}

// mayRefuse reports whether a task may refuse the message that it handles, because its
// sender is no more or has spoken from a newer connection.
func (s *sim) mayRefuse(t *task) bool {
	from := s.ghost.lanes[t.sock.lane]
	return t.stale || from != nil && from.dead != ""
}

func (e *entry) describe() string {
	if e.msg != nil {
		return e.msg.String()
	}
	return "a notice"
}

// checkCounters compares the counters of a member with what is in its lane.
// What has expired may be counted or not.
func (s *sim) checkCounters(t *task, l *lane) {
	m := s.ghost.members[l.owner]
	if l.peer == nil || m == nil || m.lane != l.id || s.setBack {
		return // a clock that is set back brings back to life what was not counted any more
	}
	var stored, transient int64
	expiredStored, expiredTransient := l.lateStored, l.lateTransient
	for _, e := range l.entries {
		switch {
		case e.conn == "" && e.expired():
			expiredStored++
		case e.conn == "":
			stored++
		case e.expired():
			expiredTransient++
		default:
			transient++
		}
	}
	if m.n < stored || m.n > stored+expiredStored {
		s.violate(propCap, "%v: %v counts %d stored frames, there are %d (and %d expired)", t, l.peer, m.n, stored, expiredStored)
	}
	if m.tn < transient || m.tn > transient+expiredTransient {
		s.violate(propCap, "%v: %v counts %d transient frames, there are %d (and %d expired)", t, l.peer, m.tn, transient, expiredTransient)
	}
}
