package sim

import (
	"bytes"
	"slices"

	"google.golang.org/protobuf/proto"

	"blindpost/shared/dialect/skald/skaldpb"
)

// deliver lets the peer read the next frame, or find out that the connection is
// over.
func (k *socket) deliver() {
	s := k.sim
	if len(k.down) == 0 {
		s.tracef("%v: the peer finds the connection closed", k)
		k.detach()
		return
	}
	d := k.down[0]
	k.down = k.down[1:]
	if d.mark != 0 && s.plan.mode == oneProcess {
		k.read = append(k.read, d)
	}
	if d.entry != nil {
		d.entry.read = true
	}
	var f skaldpb.RelayFrame
	if err := proto.Unmarshal(d.data, &f); err != nil {
		s.violate("frames", "%v got a frame that cannot be decoded: %v", k, err)
		return
	}
	if s.trace != nil {
		s.tracef("%v reads %s", k, s.describe(&f))
	}
	k.peer.receive(k, &f)
}

// receive is a peer that reads a frame.
func (p *peer) receive(k *socket, f *skaldpb.RelayFrame) {
	s := p.sim
	switch f := f.GetFrame().(type) {
	case *skaldpb.RelayFrame_Challenge:
		k.nonce = f.Challenge.GetNonce()
		k.sendAuth()
	case *skaldpb.RelayFrame_AuthOk:
		p.admitted(k)
	case *skaldpb.RelayFrame_AuthError:
		p.refused++
		if k.role == asClient && f.AuthError.GetCode() == "unauthorized" && s.chance(300) {
			p.paired = false
		}
	case *skaldpb.RelayFrame_Message:
		p.gotMessage(k, f.Message)
	case *skaldpb.RelayFrame_PresenceEvent:
		p.gotPresence(k, f.PresenceEvent)
	case *skaldpb.RelayFrame_PairingReady:
		for _, w := range p.space.windows {
			w.ready = true
		}
	case *skaldpb.RelayFrame_PairingStopOk:
		for _, w := range p.space.windows {
			w.closed = w.closed || w.ready
		}
	case *skaldpb.RelayFrame_ClientPaired:
		client := s.peerOf(f.ClientPaired.GetClientEd25519Pub())
		if client == nil || !bytes.Equal(f.ClientPaired.GetClientX25519Pub(), client.ident.x25519) {
			s.violate("frames", "%v got a ClientPaired that no phone has asked for", k)
			return
		}
		if k.attached && s.chance(800) {
			p.list[client] = true
			k.sendAuthorize(p.list)
		}
	case *skaldpb.RelayFrame_Error, *skaldpb.RelayFrame_AuthorizeOk, *skaldpb.RelayFrame_PeerOffline,
		*skaldpb.RelayFrame_PresenceList:
	default:
		s.violate("frames", "%v got a frame that no peer expects: %T", k, f)
	}
}

// admitted is a peer that has read AuthOk.
func (p *peer) admitted(k *socket) {
	s := p.sim
	k.authed = true
	p.refused = 0
	switch k.role {
	case asAgent:
		if s.chance(500) {
			k.sendAuthorize(p.list)
		}
	case asPairing:
		p.paired = true
		if s.calm || s.chance(800) {
			k.peerCloses()
		}
	}
}

// gotMessage checks order, duplicates and bytes at the very end of the way.
func (p *peer) gotMessage(k *socket, f *skaldpb.Message) {
	s := p.sim
	m := s.findMessage(f.GetCiphertext())
	if m == nil || m.to != p {
		s.violate(propBytes, "%v got a message that nobody has sent to it", k)
		return
	}
	if !bytes.Equal(f.GetCiphertext(), m.ciphertext) || !bytes.Equal(f.GetNonce(), m.nonce) ||
		!bytes.Equal(f.GetPeer(), m.from.ident.pub) || f.GetLive() != m.live {
		s.violate(propBytes, "%v got %v changed", k, m)
		return
	}
	if m.received {
		return // whether it may come twice was decided when it was posted
	}
	m.received = true
	s.counts.Received++
	if m.seq <= p.seen[m.from] {
		if newer := s.overtaker(m); newer == nil || !s.mayOvertake(m, newer) {
			s.violate(propOrder, "%v reads %v after #%d of the same sender", k, m, p.seen[m.from])
		}
		return
	}
	p.seen[m.from] = m.seq
}

// overtaker is the message that was received although it was sent after m.
func (s *sim) overtaker(m *message) *message {
	for _, o := range s.messages {
		if o.from == m.from && o.to == m.to && o.seq > m.seq && o.received {
			return o
		}
	}
	return nil
}

// mayOvertake reports whether the order of two messages is one that was not
// promised. Functions cannot keep it when a sender uses two connections at once,
// whose handlers run at the same time in processes that know nothing of each
// other. In one process nothing overtakes.
func (s *sim) mayOvertake(old, young *message) bool {
	if s.setBack && slices.ContainsFunc(old.entries, (*entry).expired) {
		return true // it had expired, and the clock has brought it back
	}
	if l := s.ghost.lanes[old.sock.lane]; l == nil || l.dead != "" {
		return true // its sender was removed while it was under way
	}
	return s.plan.mode == functions && old.sock != young.sock &&
		(old.ended == 0 || young.begun <= old.ended) && (young.ended == 0 || old.begun <= young.ended)
}

// gotPresence notes what a connection is told about another member.
func (p *peer) gotPresence(k *socket, f *skaldpb.PresenceEvent) {
	s := p.sim
	other := s.peerOf(f.GetPubkey())
	if other == nil || other.space != p.space || other == p {
		s.violate(propPresence, "%v is told about the presence of somebody else's member", k)
		return
	}
	online := f.GetStatus() == skaldpb.Status_STATUS_ONLINE
	if was, told := k.view[other]; told && was == online && s.plan.mode == oneProcess && s.mishaps == 0 && !other.cutOff {
		s.violate(propPresence, "%v is told twice in a row that %v is %s", k, other, onOff(online))
	}
	k.view[other] = online
}

func onOff(online bool) string {
	if online {
		return "ONLINE"
	}
	return "OFFLINE"
}
