package relay_test

import (
	"context"
	"strings"
	"testing"

	"blindpost/shared/dialect/skald/skaldpb"
	"blindpost/shared/gateway"
	"blindpost/shared/relay"
)

// fills a mailbox so that a pump has to pause: three megabytes.
func (s *stage) fills(agent *line, to int) {
	for range 60 {
		s.says(agent, to, strings.Repeat(".", 60_000))
	}
}

// The pump of a connection that has just been replaced leaves alone what waits for
// its successor.
func TestPumpOfAReplacedConnection(t *testing.T) {
	s := begin(t, scattered)
	agent, phone := s.home()
	s.disconnect(phone)
	s.says(agent, 1, "stored")
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
	wantHeard(t, second, "stored", "live")
}

// The window is full, and the last thing that the pump has met needs no confirmation:
// it goes on when the others are confirmed.
func TestPumpDoesNotWaitForWhatIsNotConfirmed(t *testing.T) {
	s := begin(t)
	agent, phone := s.home()
	s.disconnect(phone)
	for range 17 { // what fits into a window
		s.says(agent, 1, strings.Repeat(".", 60_000))
	}
	s.comes(1)
	s.saysLive(agent, 1, "for the first connection")
	s.says(agent, 1, strings.Repeat(".", 60_000))
	second := s.comes(1) // drops the live one
	s.reap()
	s.confirmAll(second)
	s.says(agent, 1, "open")
	if got := second.heard(); len(got) != 19 || got[18] != "open" {
		t.Errorf("got %d messages", len(got))
	}
}

// A member is revoked while the others are being told that it is online: the last
// word is that it is not.
func TestLastWordAboutARevokedMember(t *testing.T) {
	for _, c := range []struct {
		name string
		goes func(s *stage, agent *line) // the phone comes or goes, and is revoked meanwhile
	}{
		{"it comes", func(s *stage, agent *line) { s.comes(1) }},
		{"it goes", func(s *stage, agent *line) { s.disconnect(s.comes(1)) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := begin(t, scattered)
			agent, phone := s.home()
			s.disconnect(phone)
			posts := 0
			s.front.before = func(to gateway.Conn) error {
				if to != agent.id {
					return nil
				}
				if posts++; posts == map[string]int{"it comes": 1, "it goes": 2}[c.name] {
					s.front.before = nil
					s.frame(agent, marshal(authorize()), false)
				}
				return nil
			}
			c.goes(s, agent)
			s.reap()
			s.runJobs()
			wantPresence(t, agent, 1, offline)
		})
	}
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
