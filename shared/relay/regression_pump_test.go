package relay_test

import (
	"context"
	"strings"
	"testing"

	"blindpost/shared/dialect/skald/skaldpb"
	"blindpost/shared/relay"
)

// The pump of a connection that was just replaced does not take entries that wait for the
// newer one.
func TestPumpOfAReplacedConnection(t *testing.T) {
	s := begin(t, distributed)
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

// The window is full, and the last entry in it needs no confirmation: the pump goes on when
// the others are confirmed.
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
