package sim

import (
	"time"

	"blindpost/shared/table"
)

// setUp pairs the phones, so that a schedule begins with the usual state. Nothing
// goes wrong meanwhile and nothing is interleaved.
func (s *sim) setUp() {
	if !s.plan.paired {
		return
	}
	s.quick, s.calm = true, true
	for _, ns := range s.spaces {
		ns.agent.connect(asAgent)
		s.settle()
		for _, p := range ns.phones {
			if ns.agent.sock == nil {
				s.violate(propStuck, "the agent could not connect in a calm world")
				return
			}
			ns.agent.sock.sendPairingStart(0)
			s.settle()
			p.pair()
			s.settle()
			ns.agent.list[p] = true
			ns.agent.sock.sendAuthorize(ns.agent.list)
			s.settle()
		}
	}
	s.quick, s.calm = false, false
	s.tracef("the phones are paired; the schedule begins")
}

// settle runs until nothing is left to do at this moment.
func (s *sim) settle() {
	for range maxSettle {
		if !s.turn() {
			if s.failure != nil || s.quick || len(s.tasks) == 0 {
				break
			}
		}
	}
	s.pause()
}

// maxSettle bounds how much a calm world may do before it is at rest.
const maxSettle = 20000

// rest runs until nothing is left to do, letting so much time pass that fronts
// notice dead peers and delayed jobs run.
func (s *sim) rest() {
	s.settle()
	for i := 0; i < 40 && s.failure == nil; i++ {
		more := s.sweepDue
		for _, k := range s.sockList {
			more = more || k.vanished && k.open && !k.closed || k.leaving()
		}
		for _, j := range s.jobs {
			more = more || j.at.Before(s.now().Add(2*time.Minute))
		}
		if !more {
			return
		}
		s.wait(s.idleLimit()/4 + time.Second)
		s.settle()
	}
	if s.failure == nil {
		s.violate(propStuck, "the relay does not come to rest")
	}
}

// finish brings the schedule to its end: the faults stop, everybody comes back,
// every mailbox is emptied.
func (s *sim) finish() {
	if s.failure != nil {
		return
	}
	s.calm = true
	s.tracef("the faults stop")
	s.settle()
	s.quick = true
	s.rest()
	if s.failure == nil && s.plan.mode == functions {
		// By then the sweeper looks for lost connections, and a job is due that was put
		// off before the clock was set back.
		s.wait(35*time.Minute + max(0, s.latest.Sub(s.now())))
		s.sweepDue = true
		s.rest()
	}
	if s.failure == nil {
		s.checkQuiet()
	}
	if s.failure == nil {
		s.tracef("everybody comes back")
		s.everybodyBack()
	}
	if s.failure == nil {
		s.checkDelivered()
	}
	if s.failure == nil {
		s.ghost.compare("at the end")
	}
	if s.failure == nil && s.plan.expiry {
		s.tracef("everybody leaves for good")
		s.everybodyLeaves()
	}
}

// checkReplaced: a peer that only listens is not left on a connection that was replaced.
func (s *sim) checkReplaced() {
	if s.plan.mode == functions && s.setBack {
		return // the sweeper comes later
	}
	for _, k := range s.sockList {
		m := s.ghost.memberOf(k.peer)
		if m != nil && k.joins > 0 && k.lane == m.lane && k.open && !k.closed && k.attached && k.id != m.conn {
			s.violate(propPresence, "%v is open, and the relay speaks to %q", k, m.conn)
			return
		}
	}
}

// checkQuiet looks at a world at rest in which nobody has come back yet.
func (s *sim) checkQuiet() {
	s.checkReplaced()
	for _, p := range s.peers {
		m := s.ghost.memberOf(p)
		if m == nil {
			continue
		}
		if !s.ghost.online(m) {
			s.checkWoken(p, m)
			continue
		}
		k := s.socks[m.conn]
		if k != nil && k.closed && s.plan.mode == functions && !s.setBack {
			s.violate(propPresence, "%v counts as connected by %v, which the front has closed", p, k)
			return
		}
		if k == nil || k.closed || !k.attached {
			continue
		}
		if m.cs != 2 {
			s.violate(propStuck, "%v is connected by %v and at rest, but its mailbox is not open and nobody empties it", p, k)
			return
		}
		for _, e := range s.ghost.lanes[m.lane].entries {
			if e.expired() || e.msg != nil && (e.msg.received || e.msg.lost) || s.plan.mode == functions && e.posted {
				continue
			}
			s.violate(propStuck, "%v is connected by %v and at rest, but %s waits in its mailbox", p, k, e.describe())
			return
		}
		for other, want := range k.want {
			was, told := k.view[other]
			if told && was == want {
				continue
			}
			if !want && s.plan.mode == functions && s.setBack {
				continue // the sweeper comes later
			}
			s.violate(propPresence, "%v by %v was last told %q about %v, which is %s", p, k, lastWord(was, told), other, onOff(want))
			return
		}
	}
}

// checkWoken looks at a phone that is offline: if something waits for it, it has
// been woken since.
func (s *sim) checkWoken(p *peer, m *member) {
	f := s.plan.faults
	if p.agent || m.tok == "" || f.queue > 0 || f.ambiguous > 0 || f.refuse > 0 || s.setBack {
		return
	}
	for _, e := range s.ghost.lanes[m.lane].entries {
		if e.conn == "" && !e.expired() && p.pushed < e.put && (e.msg == nil || e.msg.accepted) {
			s.violate(propWake, "%v is offline, %s waits for it, and nobody has woken it", p, e.describe())
			return
		}
	}
}

func lastWord(online, told bool) string {
	if !told {
		return "nothing"
	}
	return onOff(online)
}

// everybodyBack connects all peers that are members, and has each of them send
// one more message to each other.
func (s *sim) everybodyBack() {
	s.plan.perIP, s.plan.perMinute = 0, 0
	if s.plan.mode == functions {
		// What a crash has left behind between handing over and deleting takes its
		// place until the next connection; with a tiny cap that is all there is.
		s.plan.cap = 200
	}
	s.applyLimits()
	for _, p := range s.peers {
		// Only a new connection gets what a handler that has crashed left behind.
		if p.sock != nil && (s.plan.mode == functions || s.chance(500)) {
			p.sock.peerCloses()
		}
	}
	s.rest()
	for range 3 {
		for _, p := range s.peers {
			m := s.ghost.memberOf(p)
			if p.sock == nil && (p.agent || m != nil && m.st == "authorised") {
				if p.agent {
					p.connect(asAgent)
				} else {
					p.connect(asClient)
				}
				s.settle()
			}
		}
		s.rest()
		if s.failure != nil {
			return
		}
	}
	before := len(s.messages)
	for _, p := range s.peers {
		for _, q := range p.space.members() {
			if p.sock == nil || !p.sock.authed {
				break
			}
			m := s.ghost.memberOf(q)
			if q != p && m != nil && (q.agent || m.st == "authorised") {
				p.sock.sendMessage(q, false)
				s.settle()
			}
		}
	}
	s.rest()
	for _, m := range s.messages[before:] {
		if !m.received && s.failure == nil {
			s.violate(propStuck, "in a calm world with everybody connected, %v has not arrived", m)
		}
	}
}

func (s *sim) applyLimits() {
	if s.proc != nil {
		s.proc.inst.serve(s)
	}
	for _, in := range s.idle {
		in.serve(s)
	}
}

// checkDelivered looks at a world in which everybody is connected and at rest.
func (s *sim) checkDelivered() {
	for _, p := range s.peers {
		m := s.ghost.memberOf(p)
		if m == nil || !p.agent && m.st != "authorised" {
			continue
		}
		k := s.socks[m.conn]
		if k == nil || k.closed || m.cs != 2 {
			s.violate(propStuck, "%v cannot connect in a calm world (connection %q, state %d)", p, m.conn, m.cs)
			return
		}
		for _, e := range s.ghost.lanes[m.lane].entries {
			if e.expired() || s.plan.mode == functions && (e.posted || e.msg != nil && (e.msg.received || e.msg.lost)) {
				continue
			}
			s.violate(propStuck, "%v is connected, but %s is still in its mailbox", p, e.describe())
			return
		}
	}
	for _, m := range s.messages {
		if m.live || m.received || m.lost || len(m.entries) == 0 {
			continue
		}
		gone := false
		for _, e := range m.entries {
			gone = gone || e.lane.dead != "" || e.expired()
		}
		if !gone {
			s.violate(propLoss, "%v was accepted and has never arrived", m)
			return
		}
	}
}

// everybodyLeaves ends all connections and lets the namespaces expire: nothing
// may remain of them.
func (s *sim) everybodyLeaves() {
	for _, p := range s.peers {
		for _, k := range []*socket{p.sock, p.pairing} {
			if k != nil {
				k.peerCloses()
			}
		}
	}
	s.rest()
	weeks := 3
	if s.setBack {
		weeks = 12 // what was due by the clock that was ahead comes later
	}
	for range weeks {
		if s.failure != nil {
			return
		}
		s.wait(namespaceTTL + time.Hour)
		s.sweepDue = true
		s.rest()
	}
	for _, ns := range s.spaces {
		if s.failure != nil {
			return
		}
		items, err := table.QueryAll(background, s.durable, table.Query{Partition: groupPrefix + ns.group})
		if err != nil {
			s.violate("storage", "failed to read a namespace: %v", err)
		}
		if len(items) > 0 {
			s.violate(propExpiry, "weeks after the last connection, %s of namespace %d is still there", items[0].Key.Sort, ns.index)
		}
	}
}
