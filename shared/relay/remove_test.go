package relay_test

import (
	"context"
	"math"
	"strings"
	"testing"
	"time"

	"blindpost/shared/dialect/skald/skaldpb"
	"blindpost/shared/relay"
	"blindpost/shared/table"
)

// senders are the members that an actor knows as senders.
func (s *stage) knows(t *testing.T, i int) map[string]int64 {
	it, _ := s.item(t, memberItem(i))
	known := map[string]int64{}
	for name, v := range it.Attrs {
		if kind, lane, ok := strings.Cut(name, "."); ok && len(kind) == 1 && strings.Contains("fiq", kind) {
			if known[lane] |= 0; kind == "f" {
				known[lane] = v.Num()
			}
		}
	}
	return known
}

// A message of a phone is under way, past all checks, when the agent revokes the
// phone: it is not stored for the agent any more.
func TestFrameUnderWayOfARevokedClient(t *testing.T) {
	inBothModes(t, func(t *testing.T, s *stage) {
		agent, phone := s.home()
		s.says(phone, 0, "before")
		s.onceBefore(func(step relay.Step) bool { return !step.Read && len(step.Ops) == 2 }, func() error {
			s.frame(agent, marshal(authorize()), false)
			if !agent.answered(func(f *skaldpb.RelayFrame) bool { return f.GetPresenceEvent() != nil }) {
				t.Error("the list is not confirmed")
			}
			return nil
		})
		s.says(phone, 0, "under way")
		wantHeard(t, agent, "before")
		s.reap()
		s.confirmAll(agent)
		wantHeard(t, s.comes(0))
		for _, epoch := range s.knows(t, 0) {
			if epoch != math.MaxInt64 {
				t.Errorf("the agent knows a sender with epoch %d", epoch)
			}
		}
	})
}

// The fence of a revoked client is kept as long as frames of it may be under way, and not
// for ever.
func TestRevokedSenderIsForgotten(t *testing.T) {
	inBothModes(t, func(t *testing.T, s *stage) {
		agent, phone, pairing := s.household()
		s.disconnect(pairing)
		s.frame(agent, marshal(authorize(actors[1].pub, actors[2].pub)), false)
		other := s.comes(2)
		s.says(phone, 0, "to the agent")
		s.says(phone, 2, "to the other phone")
		s.says(other, 0, "of the other phone")
		lane := s.member(t, 1).Lane
		s.frame(agent, marshal(authorize(actors[2].pub)), false)
		s.reap()
		s.runJobs()

		sweep := func() {
			// The group is due for one reason or another.
			if _, err := s.table.Write(context.Background(), relay.DueOp(s.now, group)); err != nil {
				t.Fatal(err)
			}
			s.handled("a sweep", s.r.Sweep(context.Background()))
			s.runJobs()
		}
		s.later(10 * time.Minute)
		sweep()
		if s.knows(t, 0)[lane] != math.MaxInt64 {
			t.Error("the agent has forgotten a sender of which something may be under way")
		}
		s.later(time.Hour)
		sweep()
		for i := range actors {
			if _, ok := s.knows(t, i)[lane]; ok {
				t.Errorf("actor %d still knows the revoked client as a sender", i)
			}
		}
		if n := len(s.knows(t, 0)); n != 1 {
			t.Errorf("the agent knows %d senders, want the other phone", n)
		}
		items, err := table.QueryAll(context.Background(), s.table, table.Query{Partition: relay.GroupPrefix + group, Prefix: "x/gone/"})
		if err != nil || len(items) > 0 {
			t.Errorf("%d removals are left, %v", len(items), err)
		}
	})
}

// The next Authorize does it too: one machine sweeps a group only when it is about
// to expire.
func TestRevokedSenderIsForgottenByTheNextAuthorize(t *testing.T) {
	s := begin(t)
	agent, phone := s.home()
	s.says(phone, 0, "to the agent")
	s.frame(agent, marshal(authorize()), false)
	s.reap()
	s.later(2 * time.Hour)
	if len(s.knows(t, 0)) != 1 {
		t.Error("the agent has forgotten already")
	}
	s.frame(agent, marshal(authorize()), false)
	if n := len(s.knows(t, 0)); n != 0 {
		t.Errorf("the agent knows %d senders", n)
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
