package sim

import (
	"blindpost/shared/dialect/skald/skaldpb"
)

// pairingStopped judges that PairingStopOk is true.
func (s *sim) pairingStopped(t *task) {
	for _, w := range t.sock.peer.space.windows {
		if w.open && (s.plan.mode == oneProcess || w.sock == t.sock) {
			s.violate(propPairing, "%v answers PairingStopOk, but the window is open", t)
		}
	}
}

// checkError judges the answer to a frame.
func (s *sim) checkError(t *task, code string) {
	switch {
	case code == "queue_full" && !t.sawFull:
		s.violate(propCap, "%v answers queue_full, but the mailbox was not full", t)
	case code == "not_found" && !t.sawUnfit:
		s.violate(propAnswer, "%v answers not_found, but the recipient was there all the time", t)
	case code == "rate_limited" && (s.plan.perMinute == 0 || t.sock.handled <= s.plan.perMinute):
		s.violate(propAnswer, "%v answers rate_limited to frame %d, the limit is %d", t, t.sock.handled, s.plan.perMinute)
	case code == "bad_request" && s.faults == 0 && t.sock.role != asPairing && !t.ev.nonsense:
		s.violate(propAnswer, "%v answers bad_request to a good frame", t)
	}
}

func (s *sim) checkAuthError(t *task, code string) {
	switch {
	case code == "unauthorized" && !t.sawUnauthorised && !t.sawNoGroup:
		s.violate(propAnswer, "%v answers unauthorized to a client that was authorised all the time", t)
	case code == "not_found" && !t.sawNoGroup:
		s.violate(propAnswer, "%v answers not_found although the namespace was there all the time", t)
	case code == "pairing_closed" && !t.sawClosedWindow && !t.sawNoGroup:
		s.violate(propPairing, "%v answers pairing_closed although the window was open for its token", t)
	case (code == "invalid_signature" && t.sock.role != asImpostor) || code == "bad_request":
		s.violate(propAnswer, "%v answers %s to a good Auth", t, code)
	}
}

// authOkPosted judges an admission.
func (s *sim) authOkPosted(t *task, k *socket) {
	if k == nil {
		return
	}
	switch k.role {
	case asPairing:
		w := k.token
		switch {
		case !w.admitted[k]:
			s.violate(propPairing, "%v lets %v in without having used its token", t, k)
		case len(w.admitted) > 1:
			s.violate(propPairing, "%v lets %v in with a token that has let somebody else in", t, k)
		}
	default:
		if k.lane == "" {
			s.violate(propRevoked, "%v says AuthOk to %v, which has not joined", t, k)
		}
	}
}

// authorizeOkPosted judges that what was revoked is gone, and has it stay so.
func (s *sim) authorizeOkPosted(t *task, f *skaldpb.AuthorizeOk) {
	if t.ev == nil || !t.ev.list {
		s.violate(propRevoked, "%v answers AuthorizeOk to another frame", t)
		return
	}
	ns := t.sock.peer.space
	var authorised uint32
	for _, p := range ns.phones {
		m := s.ghost.memberOf(p)
		if m != nil && m.gen == s.ghost.group(ns.group).gen && m.st == "authorised" {
			authorised++
			if !t.ev.listed[p] && s.plan.mode == oneProcess {
				s.violate(propRevoked, "%v confirms a list without %v, which is still authorised", t, p)
			}
		}
	}
	if s.plan.mode == oneProcess && s.ghost.members[s.ghost.group(ns.group).root] != nil && f.GetAuthorized() != authorised {
		s.violate(propAnswer, "%v answers that %d clients are authorised, there are %d", t, f.GetAuthorized(), authorised)
	}
	for _, l := range s.ghost.lanes {
		if l.dead != "revoked" || l.peer.space != ns || t.ev.listed[l.peer] {
			continue
		}
		l.silent = true
		for _, e := range l.entries {
			if !e.expired() {
				s.violate(propRevoked, "%v confirms the revocation of %v, but %s is still in its mailbox", t, l.peer, e.describe())
				return
			}
		}
		for _, k := range s.sockList {
			if k.id == l.conn && k.open && !k.closed {
				s.violate(propRevoked, "%v confirms the revocation of %v, but its connection %v is open", t, l.peer, k)
				return
			}
		}
	}
}

// presenceListPosted judges a snapshot: who was connected all the time while it
// was made has to be on it.
func (s *sim) presenceListPosted(t *task, k *socket, f *skaldpb.PresenceList) {
	self := false
	for _, pub := range f.GetOnline() {
		p := s.peerOf(pub)
		if p == nil || p.space != k.peer.space {
			s.violate(propPresence, "%v lists somebody else's member for %v", t, k)
			return
		}
		self = self || p == k.peer
	}
	if m := s.ghost.memberOf(k.peer); !self && m != nil && m.lane == k.lane {
		s.violate(propPresence, "%v leaves the one who has asked out of the list", t)
	}
}

// checkConfirmed judges that what was confirmed has left its mailbox, expired or not: an
// expired frame comes back when the clock is set back.
func (s *sim) checkConfirmed(t *task) {
	l := s.ghost.lanes[t.sock.lane]
	if t.killed || t.err != nil || !t.joined || l == nil || l.dead != "" {
		return
	}
	for _, mark := range t.ev.marks {
		if e := l.entries[int64(mark&^uint64(transientMark))]; e != nil {
			s.violate(propTwice, "%v leaves %s in the mailbox", t, e.describe())
			return
		}
	}
}

// checkEnd judges what has become of the frame of a task that has ended.
func (s *sim) checkEnd(t *task) {
	if t.what == "confirmed" {
		s.checkConfirmed(t)
	}
	if t.what != "frame" || t.killed || t.err != nil || t.ev.msg == nil {
		return
	}
	m := t.ev.msg
	if t.refused || t.closedOwn {
		return
	}
	if m.live && (t.posted || m.queued || t.offline) || !m.live && (t.stored || len(m.entries) > 0) {
		m.accepted = true
		return
	}
	if t.stale {
		return // a newer connection of the same sender has spoken
	}
	s.violate(propLoss, "%v has ended well, but %v is nowhere and nobody was told", t, m)
}
