package relay_test

import (
	"testing"
	"testing/synctest"

	"blindpost/shared/dialect/skald/skaldpb"
	"blindpost/shared/relay"
)

// A handler stores a message, and the answer of the table is lost. When the frame is
// delivered again its sender has been revoked: the message does not stay in the mailbox of
// a recipient that is open.
func TestStoredMessageOfARevokedSenderThatComesAgain(t *testing.T) {
	revokes := authorize(actors[2].pub)
	for _, c := range []struct {
		name string
		to   int
		// late: not before the handler has found the sender to be a member
		late bool
	}{
		{"to the agent", 0, false},
		{"to the agent, revoked while it comes again", 0, true},
		{"to another phone", 2, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := begin(t, distributed)
			agent, phone, pairing := s.household()
			s.disconnect(pairing)
			s.frame(agent, marshal(authorize(actors[1].pub, actors[2].pub)), false)
			to := agent
			if c.to != 0 {
				to = s.comes(c.to)
			}
			said := message(actors[c.to].pub, []byte("said twice"), false)
			s.losesAnswer(t, phone, said, c.to)
			revoke := func() error { s.frame(agent, marshal(revokes), false); return nil }
			if c.late {
				s.onceBefore(func(step relay.Step) bool { return step.Read && step.Touches(memberItem(c.to)) }, revoke)
			} else {
				s.handled("the revocation", revoke())
			}
			s.handled("the message again", s.deliver(phone, said, "said"))
			s.runJobs()
			if n := s.stored(t, c.to); n != 0 {
				t.Errorf("%d messages wait", n)
			}
			wantHeard(t, to)
			wantHeard(t, s.comes(c.to))
		})
	}
}

// The same when the sender has sent from a newer connection: the refused message does not
// arrive later, after newer messages.
func TestStoredMessageOfAnOldConnectionThatComesAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := begin(t, distributed)
		agent, phone := s.home()
		said := message(actors[0].pub, []byte("one"), false)
		s.losesAnswer(t, phone, said, 0)
		phone.closed = true
		s.says(s.comes(1), 0, "two")
		s.handled("the message again", s.deliver(phone, said, "said"))
		wantHeard(t, agent, "two")
		wantHeard(t, s.comes(0))
	})
}

// A recipient that is not connected gets the message in its place, and is woken.
func TestStoredMessageThatComesAgainAndStandsInItsPlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := begin(t, distributed)
		agent, phone := s.home()
		s.disconnect(phone)
		said := message(actors[1].pub, []byte("one"), false)
		s.losesAnswer(t, agent, said, 1)
		agent.closed = true
		s.says(s.comes(0), 1, "two")
		s.jobs = nil
		s.handled("the message again", s.deliver(agent, said, "said"))
		if len(s.jobs) != 1 || s.jobs[0].Kind != relay.JobPush {
			t.Errorf("the phone is not woken: %v", s.jobs)
		}
		wantHeard(t, s.comes(1), "one", "two")
	})
}

// losesAnswer delivers a message that is stored for an actor, but whose handler gets an
// error from the table.
func (s *stage) losesAnswer(t *testing.T, l *line, said *skaldpb.RelayFrame, to int) {
	t.Helper()
	s.onceAfter(func(step relay.Step) bool { return len(step.Ops) == 2 && step.Touches(memberItem(to)) }, fails)
	if s.deliver(l, said, "said") == nil || s.stored(t, to) != 1 {
		t.Fatal("the message is not stored, or its answer is not lost")
	}
}

// stored is how many messages wait for an actor.
func (s *stage) stored(t *testing.T, i int) int64 {
	t.Helper()
	it, _ := s.item(t, memberItem(i))
	return it.Attrs["n"].Num()
}
