package relay_test

import (
	"context"
	"testing"
	"time"

	"blindpost/shared/gateway"
	"blindpost/shared/relay"
)

// end brings a Disconnect whose handler may fail.
func (s *stage) end(l *line) error {
	l.closed = true
	err := s.r.Disconnect(context.Background(), gateway.DisconnectEvent{Conn: l.id, At: s.now})
	l.over = true
	return err
}

// The storage fails while a connection ends: a job ends it, and the others are told
// OFFLINE. (The front reports an end only once.)
func TestDisconnectThatFails(t *testing.T) {
	inBothModes(t, func(t *testing.T, s *stage) {
		agent, phone := s.home()
		s.onceBefore(writes(memberItem(1)), fails)
		if s.end(phone) == nil {
			t.Fatal("the failure is not reported")
		}
		wantPresence(t, agent, 1, online)
		s.later(time.Minute)
		wantPresence(t, agent, 1, online, offline)
		if _, ok := s.item(t, connItem(phone)); ok {
			t.Error("the record of the connection is still there")
		}
	})
}

// The write with which a member leaves is done and its answer is lost, or the handler
// dies right after it: the next try finds the write done and does the rest.
func TestDisconnectThatIsDoneButReportedAsFailed(t *testing.T) {
	inBothModes(t, func(t *testing.T, s *stage) {
		agent, phone := s.home()
		phone.marks = nil
		s.onceAfter(writes(memberItem(1)), fails)
		if s.end(phone) == nil {
			t.Fatal("the failure is not reported")
		}
		s.later(time.Minute)
		wantPresence(t, agent, 1, online, offline)
		s.later(time.Minute)
		wantPresence(t, agent, 1, online, offline)
	})
}

// The same when a post has found the connection gone, and the Disconnect comes later:
// OFFLINE is told once.
func TestLostConnectionThatIsReportedLater(t *testing.T) {
	inBothModes(t, func(t *testing.T, s *stage) {
		agent, phone := s.home()
		phone.closed = true
		s.saysLive(agent, 1, "are you there?")
		s.runJobs()
		wantPresence(t, agent, 1, online, offline)
		before := len(agent.got)
		s.disconnect(phone)
		s.later(time.Minute)
		if len(agent.got) != before {
			t.Error("the agent was told again")
		}
		if _, ok := s.item(t, connItem(phone)); ok {
			t.Error("the record of the connection is still there")
		}
	})
}

// In one process a job that runs twice announces presence once.
func TestLostConnectionIsToldOnce(t *testing.T) {
	s := begin(t)
	agent, phone := s.home()
	phone.closed = true
	s.saysLive(agent, 1, "are you there?")
	job := s.jobs[len(s.jobs)-1]
	for job.Attempt = 1; job.Attempt <= 2; job.Attempt++ {
		s.handled("the job", s.r.Job(context.Background(), job))
	}
	if told := agent.presence(1); len(told) != 2 {
		t.Errorf("the agent was told %v", told)
	}
}

// The end of a connection is not reported to the functions, and no post goes to it: the
// sweeper finds it within an hour, also later.
func TestSweepFindsALostDisconnect(t *testing.T) {
	s := begin(t, distributed)
	agent, phone := s.home()
	sweeps := func(n int) {
		for range n {
			s.later(5 * time.Minute)
			s.handled("a sweep", s.r.Sweep(context.Background()))
		}
		s.runJobs()
	}
	sweeps(12)
	wantPresence(t, agent, 1, online)
	phone.over = true
	sweeps(8)
	wantPresence(t, agent, 1, online, offline)
	if m := s.member(t, 1); m.Conn != "" {
		t.Errorf("the phone still points to %s", m.Conn)
	}
	if _, ok := s.item(t, connItem(phone)); ok {
		t.Error("the record of the connection is still there")
	}
}

// A member that joins many times causes one item for the sweeper in half an hour; in one
// process, where every end is reported, none.
func TestJoinNotesTheSweeperOnce(t *testing.T) {
	inBothModes(t, func(t *testing.T, s *stage) {
		s.home()
		noted := map[string]int{}
		s.table.Before = func(step relay.Step) error {
			for _, o := range step.Ops {
				if o.Key.Partition == "due" {
					noted[o.Key.Sort]++
				}
			}
			return nil
		}
		s.later(30 * time.Minute)
		for range 20 {
			s.comes(1)
			s.reap()
			s.later(time.Minute)
		}
		want := 0
		if s.frameIDs {
			want = 1
		}
		if len(noted) < want || len(noted) > 2*want {
			t.Errorf("%d notes: %v", len(noted), noted)
		}
		for at, n := range noted {
			if n > 1 {
				t.Errorf("%s was noted %d times", at, n)
			}
		}
	})
}

// The storage fails for so long that the job gives up too: the next message finds the
// connection gone, and the others are told.
func TestNextMessageFindsALostConnection(t *testing.T) {
	for _, live := range []bool{true, false} {
		s := begin(t)
		agent, phone := s.home()
		s.onceBefore(writes(memberItem(1)), fails)
		if s.end(phone) == nil {
			t.Fatal("the failure is not reported")
		}
		s.jobs = nil
		if live {
			s.saysLive(agent, 1, "are you there?")
		} else {
			s.says(agent, 1, "are you there?")
		}
		s.runJobs()
		wantPresence(t, agent, 1, online, offline)
	}
}
