package relay_test

import (
	"context"
	"strings"
	"testing"

	"blindpost/shared/dialect/skald/skaldpb"
	"blindpost/shared/gateway"
	"blindpost/shared/relay"
)

// The pump of a connection that has just been replaced leaves alone what waits for
// its successor.
func TestPumpOfAReplacedConnection(t *testing.T) {
	s := begin(t, scattered)
	agent, phone := s.home()
	s.disconnect(phone)
	var second *line
	s.onceBefore(func(step relay.Step) bool {
		// The pump has read the member and is about to read its lane.
		return step.Read && strings.HasPrefix(step.Key.Partition, "l/")
	}, func() error {
		// Meanwhile, in another process, the phone has a newer connection, for which
		// a live message waits.
		second = s.connect()
		m := s.member(t, 1)
		c := &relay.Conn{ID: second.id, Dialect: "skald", At: s.now, Admitted: true}
		if _, err := s.r.Join(context.Background(), c, relay.Joining{Member: m}); err != nil {
			return err
		}
		s.saysLive(agent, 1, "live")
		return nil
	})
	first := s.comes(1)
	s.handled("the pump of the newer one", s.r.Job(context.Background(), pumpJob(second)))
	s.disconnect(first)
	wantHeard(t, second, "live")
	if agent.answered(func(f *skaldpb.RelayFrame) bool { return f.GetPeerOffline() != nil }) {
		t.Error("the agent is told that the phone is offline")
	}
}

// The window is full, and the last thing that the pump has met needs no confirmation:
// it goes on when the others are confirmed.
func TestPumpDoesNotWaitForWhatIsNotConfirmed(t *testing.T) {
	s := begin(t)
	agent, phone := s.home()
	s.disconnect(phone)
	const window = 17 // as many of these messages
	send := func(n int) {
		for range n {
			s.says(agent, 1, strings.Repeat(".", 60_000))
		}
	}
	send(window + 13)
	first := s.comes(1)
	s.saysLive(agent, 1, "for the first connection")
	send(2)
	s.confirm(first, 13)
	second := s.comes(1) // a window of messages, the live one that is dropped, and two
	s.reap()
	s.confirmAll(second)
	s.says(agent, 1, "open")
	if got := second.heard(); len(got) != window+3 || got[window+2] != "open" {
		t.Errorf("got %d messages", len(got))
	}
}

// A member is revoked while the others are being told that it has come, or gone: the
// last word is that it is offline.
func TestLastWordAboutARevokedMember(t *testing.T) {
	revoke := func(s *stage, agent *line) func() error {
		return func() error {
			s.frame(agent, marshal(authorize()), false)
			return nil
		}
	}
	t.Run("it comes", func(t *testing.T) {
		s := begin(t, scattered)
		agent, phone := s.home()
		s.disconnect(phone)
		s.front.before = func(to gateway.Conn) error {
			if to != agent.id {
				return nil
			}
			s.front.before = nil
			return revoke(s, agent)()
		}
		s.comes(1)
		s.reap()
		s.runJobs()
		wantPresence(t, agent, 1, offline)
	})
	t.Run("it goes", func(t *testing.T) {
		s := begin(t, scattered)
		agent, phone := s.home()
		wantPresence(t, agent, 1, online)
		s.onceAfter(writes(memberItem(1)), revoke(s, agent))
		s.disconnect(phone)
		s.runJobs()
		wantPresence(t, agent, 1, offline)
	})
}

// The last moment of a revocation: the phone has just replaced its connection, and
// the old one is still open because its Close has failed. Both are closed.
func TestRevocationClosesTheReplacedConnectionToo(t *testing.T) {
	inBothModes(t, func(t *testing.T, s *stage) {
		agent, old := s.home()
		s.front.closeFails = old.id
		s.comes(1)
		if old.closed {
			t.Fatal("the old connection is closed already")
		}
		s.front.closeFails = ""
		s.frame(agent, marshal(authorize()), false)
		if !agent.answered(func(f *skaldpb.RelayFrame) bool { return f.GetPresenceEvent() != nil }) {
			t.Error("the list is not confirmed")
		}
		if !old.closed {
			t.Error("the old connection is open after the revocation")
		}
	})
}
