package sim

import (
	"bytes"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"

	"blindpost/shared/dialect/skald/skaldpb"
	"blindpost/shared/push"
	"blindpost/shared/table"
)

const transientMark = 1 << 62 // as the core marks frames that are bound to a connection

// watch notes what a task could have seen at this moment, so that its answer can
// be judged later.
func (s *sim) watch(t *task) {
	k := t.sock
	if k == nil || t.ev == nil {
		return
	}
	ns := k.peer.space
	if m := t.ev.msg; m != nil {
		r := s.ghost.memberOf(m.to)
		if m.to.space != ns {
			t.sawUnfit = true
			return
		}
		if r == nil || r.role == "client" && r.st != "authorised" {
			t.sawUnfit = true
		} else if l := s.ghost.lanes[r.lane]; l != nil {
			if s.plan.cap > 0 && l.mayDepth() >= s.plan.cap {
				t.sawFull = true
			}
			if l.fences[k.lane] > k.epoch {
				t.stale = true
			}
			rk := s.socks[r.conn]
			if rk == nil || rk.closed || r.cs == 1 && (r.tn >= 64 || len(m.ciphertext) > 60<<10) {
				t.sawOffline = true
			}
		}
		if r == nil {
			t.sawOffline = true
		}
		return
	}
	if t.ev.window != nil {
		w := t.ev.window
		if !w.open || w.used || !s.latest.Before(w.soonest) {
			t.sawClosedWindow = true
		}
	}
	gr := s.ghost.groups[ns.group]
	if gr == nil || s.ghost.members[gr.root] == nil || s.longIdle(ns) {
		t.sawNoGroup = true
	}
	if m := s.ghost.memberOf(k.peer); m == nil || m.st != "authorised" || gr == nil || m.gen != gr.gen {
		t.sawUnauthorised = true
	}
}

// longIdle reports whether a namespace may count as expired.
func (s *sim) longIdle(ns *namespace) bool {
	gr := s.ghost.groups[ns.group]
	return gr != nil && !s.latest.Before(gr.idle.Add(namespaceTTL))
}

func (s *sim) observeGet(t *task, k table.Key, it table.Item, err error) {
	if t.sock != nil && k.Partition == connPrefix+string(t.sock.id) {
		t.joined = err == nil && it.Attrs["m"].Str() != ""
	}
	if err == nil && t.what == "job" && strings.HasPrefix(k.Sort, memberSort) {
		if t.pushRead == nil {
			t.pushRead = make(map[table.Key]time.Time)
		}
		t.pushRead[k] = s.now()
		if m := s.ghost.members[k]; m != nil {
			t.pushToken = m.tok
		}
	}
}

func (s *sim) observeQuery(t *task, q table.Query) {
	if id, ok := strings.CutPrefix(q.Partition, lanePrefix); ok {
		if t.laneRead == nil {
			t.laneRead = make(map[string]time.Time)
		}
		t.laneRead[id] = s.now()
	}
}

// observePost judges a frame that a task hands to a connection. The frame is
// taken or the connection is gone.
func (s *sim) observePost(t *task, k *socket, d *downFrame, taken bool) {
	var f skaldpb.RelayFrame
	if err := proto.Unmarshal(d.data, &f); err != nil {
		s.violate("frames", "%v posts a frame that cannot be decoded: %v", t, err)
		return
	}
	if d.mark != 0 && k != nil {
		s.findEntry(t, k, d, taken)
	}
	own := k != nil && k == t.sock
	switch f := f.GetFrame().(type) {
	case *skaldpb.RelayFrame_Message:
		s.messagePosted(t, k, d, f.Message, taken)
	case *skaldpb.RelayFrame_PresenceEvent:
		if d.mark == 0 { // otherwise it was judged when it was put into the lane
			s.presencePosted(t, k, f.PresenceEvent)
		}
	case *skaldpb.RelayFrame_PeerOffline:
		if own && d.mark == 0 && t.ev != nil && t.ev.msg != nil {
			t.offline = true
			if !t.sawOffline {
				s.violate(propAnswer, "%v answers PeerOffline, but the recipient was connected all the time", t)
			}
		}
	case *skaldpb.RelayFrame_Error:
		if own {
			t.refused = true
			if taken {
				s.checkError(t, f.Error.GetCode())
			}
		}
	case *skaldpb.RelayFrame_AuthError:
		if own {
			t.refused = true
			if taken {
				s.checkAuthError(t, f.AuthError.GetCode())
			}
		}
	case *skaldpb.RelayFrame_AuthOk:
		s.authOkPosted(t, k)
	case *skaldpb.RelayFrame_AuthorizeOk:
		s.authorizeOkPosted(t, f.AuthorizeOk)
	case *skaldpb.RelayFrame_PresenceList:
		s.presenceListPosted(t, k, f.PresenceList)
	case *skaldpb.RelayFrame_PairingStopOk:
		s.pairingStopped(t)
	}
	if d.mark == 0 && !own && k != nil {
		s.checkTurn(t, k, &f)
	}
	if !taken || k == nil || k.lane == "" {
		return
	}
	if l := s.ghost.lanes[k.lane]; l != nil && l.silent {
		if f.GetError() == nil && f.GetAuthError() == nil {
			s.violate(propRevoked, "%v posts %s to %v after AuthorizeOk has confirmed the revocation", t, s.describe(&f), k)
		}
	}
}

// checkTurn judges a frame that somebody else than the connection's own handler
// posts past the mailbox: AuthOk comes first, then the mailbox, then new traffic.
func (s *sim) checkTurn(t *task, k *socket, f *skaldpb.RelayFrame) {
	m := s.ghost.memberOf(k.peer)
	if m == nil || m.conn != k.id || m.cs != 1 || k.joins > 1 || k.reopened {
		return
	}
	if f.GetMessage() != nil || f.GetPresenceEvent() != nil || f.GetPeerOffline() != nil {
		s.violate(propOrder, "%v posts %s to %v before its mailbox", t, s.describe(f), k)
	}
}

// findEntry finds the place in the mailbox that a mark speaks of.
func (s *sim) findEntry(t *task, k *socket, d *downFrame, taken bool) {
	l := s.ghost.lanes[k.lane]
	if l == nil {
		s.violate(propLoss, "%v posts a marked frame to %v, which no member stands behind", t, k)
		return
	}
	e := l.entries[int64(d.mark&^uint64(transientMark))]
	if e == nil {
		return // confirmed meanwhile, or removed with the lane
	}
	d.entry = e
	e.posted = true
	e.handed = append(e.handed, k.id)
	e.sent = e.sent || taken
	if e.msg != nil && !bytes.Contains(d.data, e.msg.ciphertext) {
		s.violate(propBytes, "%v posts other bytes than those of %v", t, e.msg)
	}
	at, read := t.laneRead[l.id]
	if !read {
		at = t.startedAt
	}
	// What a handler was given to send it need not read from the mailbox again.
	own := t.ev != nil && t.ev.msg == e.msg
	if e.conn == "" && !own && !s.setBack && !at.Before(e.expires) {
		s.violate(propExpiry, "%v posts %v, which has expired at %v", t, e.describe(), e.expires)
	}
}

// messagePosted judges a message on its way to a peer.
func (s *sim) messagePosted(t *task, k *socket, d *downFrame, f *skaldpb.Message, taken bool) {
	m := s.findMessage(f.GetCiphertext())
	if m == nil || k == nil || m.to != k.peer || m.from.space != k.peer.space {
		s.violate(propBytes, "%v posts a message to %v that nobody has sent there", t, k)
		return
	}
	if t.ev != nil && t.ev.msg == m {
		t.posted = t.posted || taken
	}
	if !taken {
		return
	}
	k.posts[m]++
	if k.posts[m] > 1 && m.attempts <= 1 && s.mishaps == 0 && s.faults == 0 {
		s.violate(propTwice, "%v posts %v to %v for the second time", t, m, k)
	}
	if s.plan.mode == functions && m.live && (k.vanished || !k.attached) {
		m.lost = true
	}
}

// observeNotice judges a frame of the relay itself that waits in a mailbox.
func (s *sim) observeNotice(t *task, to *peer, data []byte) {
	var f skaldpb.RelayFrame
	if proto.Unmarshal(data, &f) != nil {
		s.violate("frames", "%v stores a notice for %v that cannot be decoded", t, to)
		return
	}
	if p := f.GetPresenceEvent(); p != nil {
		if m := s.ghost.memberOf(to); m != nil {
			s.presencePosted(t, s.socks[m.conn], p)
		}
	}
}

// presencePosted judges what a member is told about another one.
func (s *sim) presencePosted(t *task, k *socket, f *skaldpb.PresenceEvent) {
	p := s.peerOf(f.GetPubkey())
	if p == nil || k == nil || k.peer.space != p.space {
		s.violate(propPresence, "%v tells %v about somebody else's member", t, k)
		return
	}
	m := s.ghost.memberOf(p)
	if f.GetStatus() == skaldpb.Status_STATUS_OFFLINE && s.plan.mode == oneProcess && s.ghost.online(m) {
		s.violate(propPresence, "%v tells %v that %v is OFFLINE, which is connected by %s", t, k, p, m.conn)
	}
}

// observePush judges a push.
func (s *sim) observePush(t *task, n push.Notification) {
	for _, p := range s.peers {
		if !strings.HasPrefix(n.Token, p.device[:len(p.device)-1]) {
			continue
		}
		m := s.ghost.memberOf(p)
		if (m == nil || m.tok != n.Token) && t.pushToken != n.Token {
			s.violate(propRevoked, "%v pushes to %v, whose token is gone", t, p)
		}
		p.pushed = s.steps
		return
	}
	s.violate(propRevoked, "%v pushes to a token that no phone has", t)
}
