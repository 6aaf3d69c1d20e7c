package relay_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"blindpost/shared/queue"
	"blindpost/shared/relay"
)

// A phone that only listens does not notice that its connection was replaced, unless the
// relay closes it. In each of these stories the first try does not succeed.

// admits lets a phone in on a new connection; the storage fails as it is told.
func (s *stage) admits(i int) (*line, error) {
	l := s.connect()
	return l, s.deliver(l, actors[i].auth(min(i, 1), l.nonce, nil), "auth of "+string(l.id))
}

// ends has time pass in which nothing but the jobs of the relay closes what was replaced.
func ends(t *testing.T, s *stage, old *line) {
	t.Helper()
	for range 4 {
		s.later(time.Second)
	}
	if !old.closed {
		t.Error("the replaced connection is still open")
	}
	if _, ok := s.item(t, connItem(old)); ok {
		t.Error("its record is still there")
	}
	old.over = true
}

// The front fails: the job that stands in for the Disconnect tries again until it has
// succeeded.
func TestReplacedConnectionIsClosed_FrontFails(t *testing.T) {
	s := begin(t, distributed)
	_, old := s.home()
	s.front.closeFails = old.id
	s.comes(1)
	i := slices.IndexFunc(s.jobs, func(j queue.Job) bool { return j.Kind == "end" })
	if i < 0 {
		t.Fatal("nobody will try again")
	}
	if err := s.r.Job(context.Background(), s.jobs[i]); !errors.Is(err, errTrouble) {
		t.Errorf("the job ends with %v", err)
	}
	if old.closed {
		t.Fatal("the old connection is closed already")
	}
	s.front.closeFails = ""
	ends(t, s, old)
}

// The write that joins is done and reported as failed, and the phone dials again: the
// third connection closes the second, which has never closed the first.
func TestReplacedConnectionIsClosed_JoinSeemsToFail(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := begin(t, distributed)
		_, old := s.home()
		s.onceAfter(writes(memberItem(1)), fails)
		second, err := s.admits(1)
		if !errors.Is(err, errTrouble) || s.member(t, 1).Conn != second.id {
			t.Fatalf("the join ends with %v", err)
		}
		s.comes(1)
		second.over = true
		ends(t, s, old)
	})
}

// The same, and nobody dials again; the second connection was never opened, so that no
// Disconnect comes. The sweeper finds it, or whoever has something to say to the phone.
func TestReplacedConnectionIsClosed_NobodyComes(t *testing.T) {
	for _, swept := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			s := begin(t, distributed)
			agent, old := s.home()
			s.onceAfter(writes(memberItem(1)), fails)
			second, err := s.admits(1)
			if !errors.Is(err, errTrouble) {
				t.Fatalf("the join ends with %v", err)
			}
			second.closed, second.over = true, true
			if swept {
				s.now = s.now.Add(time.Hour)
				if err := s.r.Sweep(context.Background()); err != nil {
					t.Fatal(err)
				}
			} else {
				s.saysLive(agent, 1, "are you there?")
			}
			ends(t, s, old)
		})
	}
}

// A handler dies before it has joined with a new connection: the one before was not
// replaced, and stays open when the new one ends.
func TestConnectionThatWasNotReplacedStays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := begin(t, distributed)
		agent, phone := s.home()
		s.onceBefore(writes(memberItem(1)), fails)
		second, err := s.admits(1)
		if !errors.Is(err, errTrouble) {
			t.Fatalf("the join ends with %v", err)
		}
		s.disconnect(second)
		s.later(time.Minute)
		if phone.closed {
			t.Error("the connection of the phone is closed")
		}
		s.says(agent, 1, "are you there?")
		wantHeard(t, phone, "are you there?")
	})
}

// If nobody can be asked to try again, the join fails: the phone dials again.
func TestReplacedConnectionIsClosed_NoJob(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		down := false
		s := begin(t, distributed, func(o *relay.Options) { o.Queue = fallible{o.Queue, &down} })
		_, old := s.home()
		s.onceAfter(writes(memberItem(1)), func() error { down = true; return nil })
		s.front.closeFails = old.id
		second, err := s.admits(1)
		if !errors.Is(err, errTrouble) {
			t.Fatalf("the join ends with %v", err)
		}
		s.front.closeFails, down = "", false
		s.comes(1)
		second.over = true
		ends(t, s, old)
	})
}

// fallible is a queue that takes no job while it is down.
type fallible struct {
	queue.Queue
	down *bool
}

func (q fallible) Send(ctx context.Context, j queue.Job) error {
	if *q.down {
		return errTrouble
	}
	return q.Queue.Send(ctx, j)
}
