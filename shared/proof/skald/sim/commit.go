package sim

import (
	"strings"
	"time"

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
	for _, name := range o.Remove {
		if id, ok := strings.CutPrefix(name, "f."); ok {
			if s.ghost.lane(id).dead == "" {
				s.violate(propOrder, "%v: %v forgets a sender that is still there", t, now.peer)
			}
			delete(l.fences, id)
		}
	}
	for name, v := range o.Set {
		if id, ok := strings.CutPrefix(name, "f."); ok {
			if was := l.fences[id]; was > v.Num() {
				s.violate(propOrder, "%v: the fence of %v for lane %s goes back from %d to %d", t, now.peer, id, was, v.Num())
			} else if was < v.Num() && t.sock != nil && id == t.sock.lane {
				s.checkTurnOfConn(t)
			}
			l.fences[id] = v.Num()
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
		if now.conn != "" && old.cs == 1 && now.cs == 2 {
			s.checkDrained(t, l, now)
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
	k.lane, k.epoch, k.joinedAt = now.lane, now.ep, time.Now()
	k.joins++
	if old.conn == "" {
		s.checkAlive(t, now)
	}
	if old.conn == "" || (stepFront{s}).Gone(old.conn) {
		s.presenceChanged(t, now.peer, now, true)
	}
}

// turnWait is how long the frames of a connection wait for those of the one before.
const turnWait = 3 * time.Second

// replacedAt is when the next connection of the same peer has joined. From then on its
// frames are waited for, by that one or by those that come after it.
func (s *sim) replacedAt(o *socket) time.Time {
	at := time.Now()
	for _, k := range s.sockList {
		if k.peer == o.peer && k.lane == o.lane && k.epoch > o.epoch && k.joinedAt.Before(at) {
			at = k.joinedAt
		}
	}
	return at
}

// checkTurnOfConn judges that a connection speaks for the first time to a member:
// what waits of an older connection of the same sender is refused from now on.
func (s *sim) checkTurnOfConn(t *task) {
	k := t.sock
	if s.plan.mode == oneProcess || s.plan.loose || time.Since(k.joinedAt) >= turnWait {
		return
	}
	for _, o := range s.sockList {
		if o.peer != k.peer || o.lane != k.lane || o.epoch >= k.epoch || time.Since(s.replacedAt(o)) >= turnWait {
			continue
		}
		for _, e := range o.up {
			if e.msg != nil {
				s.violate(propLoss, "%v: %v speaks before %v of %v is handled, which is refused now", t, k, e.msg, o)
				return
			}
		}
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
		s.excuse(p)
	}
}

// excuse demands nothing any more of what the others are told about a peer.
func (s *sim) excuse(p *peer) {
	for _, k := range s.sockList {
		delete(k.want, p)
	}
}
