package sim

import (
	"bytes"
	"strings"
	"time"

	"blindpost/shared/gateway"
	"blindpost/shared/table"
)

// observeCommit shows the model what a task has written. Members come first,
// since what happens to a lane is judged by the member after the step.
func (s *sim) observeCommit(t *task, ops []table.Op) {
	for i := range ops {
		o := &ops[i]
		group, ok := strings.CutPrefix(o.Key.Partition, groupPrefix)
		if !ok || o.Action == table.Check {
			continue
		}
		switch {
		case strings.HasPrefix(o.Key.Sort, memberSort):
			s.memberWritten(t, o)
		case o.Key.Sort == windowSort:
			s.windowWritten(t, group, o)
		case o.Key.Sort == rootSort:
			s.ghost.group(group).hasRoot = o.Action != table.Delete
		}
	}
	touched := make(map[*lane]bool, 2)
	for i := range ops {
		o := &ops[i]
		id, ok := strings.CutPrefix(o.Key.Partition, lanePrefix)
		if !ok {
			continue
		}
		l := s.ghost.lane(id)
		touched[l] = true
		switch o.Action {
		case table.Put:
			s.entryPut(t, l, o)
		case table.Delete:
			s.entryDeleted(t, l, laneSeq(o.Key))
		}
	}
	for l := range touched {
		s.checkCounters(t, l)
	}
}

// memberWritten judges what a task has done to a member.
func (s *sim) memberWritten(t *task, o *table.Op) {
	g := &s.ghost
	old, now := g.members[o.Key], g.readMember(o.Key)
	if now == nil {
		delete(g.members, o.Key)
		if old != nil {
			s.memberGone(t, old)
		}
		return
	}
	g.members[o.Key] = now
	if now.peer == nil {
		s.violate(propPairing, "%v has made a member with a key that no peer has", t)
		return
	}
	if old == nil || old.lane != now.lane {
		if old != nil {
			s.memberGone(t, old)
		}
		s.memberMade(t, now)
		old = nil
	}
	l := g.lane(now.lane)
	if old != nil {
		s.memberChanged(t, l, old, now)
	}
	if now.role == "client" && now.st == "authorised" && (old == nil || old.st != "authorised") {
		s.authorised(t, now)
	}
	if now.role == "client" && now.conn != "" && now.st != "authorised" {
		s.violate(propRevoked, "%v: %v is connected but not authorised", t, now.peer)
	}
	for name, v := range o.Set {
		if strings.HasPrefix(name, "f.") && t.sock != nil {
			l.fences[t.sock.peer] = fenceMark{lane: t.sock.lane, epoch: v.Num()}
		}
	}
}

func (s *sim) memberMade(t *task, m *member) {
	l := s.ghost.lane(m.lane)
	if l.peer != nil {
		s.violate(propLoss, "%v: %v has got the mailbox of %v", t, m.peer, l.peer)
	}
	l.owner, l.peer = m.key, m.peer
	gr := s.ghost.group(m.group)
	if m.role == "agent" {
		gr.root, gr.gen, gr.idle = m.key, m.gen, s.now()
		return
	}
	if m.st == "authorised" {
		s.violate(propRevoked, "%v has made %v authorised without asking the agent", t, m.peer)
	}
	if t.ev == nil || t.ev.window == nil || t.sock.peer != m.peer {
		s.violate(propPairing, "%v has made %v a member, which had not asked for it", t, m.peer)
	}
}

// memberGone judges that a member is deleted, or replaced by a new incarnation.
func (s *sim) memberGone(t *task, m *member) {
	l := s.ghost.lane(m.lane)
	l.conn = m.conn
	gr := s.ghost.group(m.group)
	switch {
	case m.gen != gr.gen || gr.root == m.key && t.ev == nil || gr.root == m.key && t.sock.peer == m.peer:
		l.dead = "namespace deleted"
	case s.ghost.members[gr.root] == nil:
		l.dead = "namespace deleted"
	case t.ev != nil && t.ev.list && !t.ev.listed[m.peer] && t.sock.peer == m.peer.space.agent && m.st == "authorised":
		l.dead = "revoked"
	case m.st == "pending":
		l.dead = "paired again"
	default:
		s.violate(propLoss, "%v has deleted %v (%s), which nobody has asked for", t, m.peer, m.st)
		l.dead = "no reason"
	}
	if gr.root == m.key {
		s.namespaceGone(t, m, gr)
	}
	if m.conn != "" {
		m.peer.cutOff = true
		s.presenceChanged(t, m.peer, m, false)
	}
}

// namespaceGone judges that a namespace is deleted.
func (s *sim) namespaceGone(t *task, root *member, gr *group) {
	for _, m := range s.ghost.members {
		if m.gen != root.gen || m.group != root.group || m.conn == "" {
			continue
		}
		if k := s.socks[m.conn]; k != nil && k.open && !k.closed {
			s.violate(propExpiry, "%v has deleted the namespace although %v is connected", t, m.peer)
		}
	}
	if !s.setBack && s.now().Sub(gr.idle) < namespaceTTL {
		s.violate(propExpiry, "%v has deleted the namespace after %v without a connection", t, s.now().Sub(gr.idle))
	}
}

// memberChanged judges an update.
func (s *sim) memberChanged(t *task, l *lane, old, now *member) {
	if now.ep < old.ep || now.tail < old.tail {
		s.violate(propOrder, "%v: numbers of %v go back: epoch %d to %d, tail %d to %d", t, now.peer, old.ep, now.ep, old.tail, now.tail)
	}
	if old.st == "authorised" && now.st != old.st {
		s.violate(propRevoked, "%v has taken the authorisation of %v away without revoking it", t, now.peer)
	}
	if old.conn == now.conn {
		if k := s.socks[now.conn]; k != nil && old.cs == 2 && now.cs == 1 {
			k.reopened = true
		}
		return
	}
	if now.conn == "" {
		k := s.socks[old.conn]
		if k != nil && k.open && !k.closed {
			s.violate(propPresence, "%v has taken %v offline, whose connection %v is open", t, now.peer, k)
		}
		s.presenceChanged(t, now.peer, now, false)
		return
	}
	k := t.sock
	switch {
	case k == nil || k.id != now.conn || k.peer != now.peer || k.role == asPairing:
		s.violate(propPresence, "%v has made %s the connection of %v", t, now.conn, now.peer)
		return
	case now.ep <= old.ep:
		s.violate(propOrder, "%v: %v joins with epoch %d after %d", t, now.peer, now.ep, old.ep)
	}
	if gr := s.ghost.group(now.group); now.gen != gr.gen || s.ghost.members[gr.root] == nil {
		s.violate(propExpiry, "%v lets %v into a namespace that is no more", t, now.peer)
	}
	k.lane, k.epoch = now.lane, now.ep
	k.joins++
	if old.conn == "" {
		s.checkAlive(t, now)
	}
	if old.conn == "" || (stepFront{s}).Gone(old.conn) {
		s.presenceChanged(t, now.peer, now, true)
	}
}

// checkAlive judges an admission by the age of the namespace.
func (s *sim) checkAlive(t *task, m *member) {
	last := s.ghost.group(m.group).idle
	for _, o := range s.ghost.members {
		if o.group != m.group || o.gen != m.gen {
			continue
		}
		if o.conn != "" && o != m {
			return
		}
		if o.seen.After(last) {
			last = o.seen
		}
	}
	if !s.setBack && !t.startedAt.Before(last.Add(namespaceTTL)) && last.Before(t.startedAt) {
		s.violate(propExpiry, "%v is admitted to a namespace that nobody has been connected to since %v", t, last)
	}
}

// authorised judges that a client is put on the list.
func (s *sim) authorised(t *task, m *member) {
	if t.ev == nil || !t.ev.list || !t.ev.listed[m.peer] || t.sock.peer != m.peer.space.agent {
		s.violate(propRevoked, "%v has authorised %v, which the agent has not asked for", t, m.peer)
	}
}

// presenceChanged notes what the others must be told, sooner or later.
func (s *sim) presenceChanged(t *task, p *peer, m *member, online bool) {
	t.touched = append(t.touched, p)
	for _, o := range s.ghost.members {
		if o.group != m.group || o.gen != m.gen || o.peer == p || o.conn == "" {
			continue
		}
		if k := s.socks[o.conn]; k != nil && !k.closed {
			k.want[p] = online
		}
	}
}

// blame notes that a task has met a fault: what it was about to tell others may
// never be told.
func (s *sim) blame(t *task) {
	s.mishaps++
	for _, p := range t.touched {
		for _, k := range s.sockList {
			delete(k.want, p)
		}
	}
}

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
func (s *sim) openWindow(ns *namespace) *window {
	for _, w := range ns.windows {
		if w.open {
			return w
		}
	}
	return nil
}

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
		t.queued = t.queued || (t.ev != nil && e.msg == t.ev.msg)
		if e.conn != m.conn {
			s.violate(propPresence, "%v has bound a frame to %s, but %v is connected by %q", t, e.conn, l.peer, m.conn)
		}
		if e.msg == nil {
			s.observeNotice(t, l.peer, data)
		}
		return
	}
	msg := e.msg
	if msg == nil || t.ev == nil || t.ev.msg != msg || msg.live || msg.to != l.peer {
		s.violate(propBytes, "%v has put a frame into %v's mailbox that nobody has sent there", t, l.peer)
		return
	}
	if !bytes.Contains(data, msg.ciphertext) || !bytes.Contains(data, msg.nonce) {
		s.violate(propBytes, "%v has stored %v changed", t, msg)
	}
	t.stored = true
	msg.entries = append(msg.entries, e)
	if limit := s.plan.cap; limit > 0 && !s.setBack && l.depth() > limit {
		s.violate(propCap, "%v: %v's mailbox holds %d frames, the cap is %d", t, l.peer, l.depth(), limit)
	}
}

// entryDeleted judges a frame that leaves a mailbox.
func (s *sim) entryDeleted(t *task, l *lane, seq int64) {
	e := l.entries[seq]
	if e == nil {
		return
	}
	delete(l.entries, seq)
	if l.dead != "" || e.expired() {
		return
	}
	got := e.read
	if s.plan.mode == functions {
		got = e.sent
	}
	switch {
	case got:
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
	var stored, transient, expiredStored, expiredTransient int64
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
