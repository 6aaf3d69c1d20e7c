package relay_test

import (
	"context"
	"testing"
	"time"

	"blindpost/shared/relay"
)

// A dialect may join during Connect, before the front can tell the connection from one
// that is gone. The sweeper does not take it for lost; one that stays gone it does.
func TestSweepLeavesAConnectionThatOpens(t *testing.T) {
	for name, stays := range map[string]bool{"opens": true, "never opens": false} {
		t.Run(name, func(t *testing.T) {
			s := begin(t, distributed)
			_, phone := s.home()
			s.disconnect(phone)
			s.reap()
			s.now = s.now.Truncate(30 * time.Minute).Add(30*time.Minute - time.Second)
			phone = s.comes(1)
			phone.over = true // as the front says
			s.now = s.now.Add(2 * time.Second)
			s.handled("a sweep", s.r.Sweep(context.Background()))
			s.runJobs()
			phone.over = !stays
			s.later(time.Minute)
			if m := s.member(t, 1); m.Conn != phone.id {
				t.Fatalf("the connection that opens is %s, the relay knows %q", phone.id, m.Conn)
			}
			for range 8 {
				s.later(5 * time.Minute)
				s.handled("a sweep", s.r.Sweep(context.Background()))
			}
			s.runJobs()
			if m := s.member(t, 1); (m.Conn == phone.id) != stays {
				t.Errorf("in the end the relay knows %q", m.Conn)
			}
		})
	}
}

// A sweeper that has asked the front while a connection was opening, and was held up
// before it went on, does not take for lost what has opened since. Nor does one that
// looks while a Connect takes long: our own front waits for it.
func TestSweepThatIsHeldUpLeavesAConnectionThatOpens(t *testing.T) {
	inBothModes(t, func(t *testing.T, s *stage) {
		_, phone := s.home()
		s.disconnect(phone)
		s.reap()
		s.now = s.now.Truncate(30 * time.Minute).Add(30*time.Minute - time.Second)
		phone = s.comes(1)
		phone.closed = true // as the front says while it opens
		s.now = s.now.Add(2 * time.Second)
		op := relay.DueOp(s.now, group)
		if _, err := s.table.Write(context.Background(), op); err != nil {
			t.Fatal(err)
		}
		held := false
		s.table.Before = func(step relay.Step) error {
			if step.Read && step.Key.Partition == relay.ConnPartition+string(phone.id) {
				held, phone.closed = true, false
				s.now = s.now.Add(time.Minute)
			}
			return nil
		}
		s.handled("a sweep", s.r.Sweep(context.Background()))
		s.table.Before = nil
		s.runJobs()
		if !held {
			t.Fatal("the sweeper has not looked at the connection")
		}
		if m := s.member(t, 1); m.Conn != phone.id {
			t.Errorf("the connection that has opened is %s, the relay knows %q", phone.id, m.Conn)
		}
	})
}
