package chaos

import (
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// The last step of a commit fails, and the commit is there in spite of it. The relay
// finds that out, has the disk confirm it, and goes on: the sender is not told of a
// failure that is none, and the phone, which is connected, gets the message at once
// and in its place.
func playHalfCommit(t *testing.T, u *run) {
	began := time.Now()
	s := u.stage(t, t.TempDir())
	h := &hold{binary: u.binary}
	h.apply(s.relay)
	s.relay.serve()
	home := s.settle(1, 1)[0]
	phone := s.mustEnter(home.phones[0], way{})
	t.Cleanup(phone.w.abort)
	rounds := budget(5, 20)
	for range rounds {
		agent := s.mustEnter(home.agent, way{})
		if _, err := agent.barrier(); err != nil { // behind all that a login writes
			t.Fatalf("%s: %v", home.agent, err)
		}
		s.eventually("everything is confirmed", func() bool { return s.unconfirmed.Load() == 0 })
		var waits atomic.Int64
		h.set(func(call uintptr) (time.Duration, syscall.Errno) {
			if isSync(call) && waits.Add(1) == 2 {
				return 0, syscall.EIO
			}
			return 0, 0
		})
		half := s.book.write(home.agent.id, home.phones[0].id, false)
		if err := agent.post(300, half); err != nil {
			t.Fatalf("%s: %v", home.agent, err)
		}
		if _, err := agent.barrier(); err != nil {
			t.Fatalf("a commit that has half failed is answered with %v", err)
		}
		s.book.accept(half)
		h.set(nil)
		next := s.book.write(home.agent.id, home.phones[0].id, false)
		if err := agent.post(300, next); err != nil {
			t.Fatalf("%s: %v", home.agent, err)
		}
		if _, err := agent.barrier(); err != nil {
			t.Fatalf("%s: %v", home.agent, err)
		}
		s.book.accept(next)
		agent.leave()
	}
	if n := h.failed.Load(); n != int64(rounds) {
		t.Errorf("%d commits have failed in their last step, want %d", n, rounds)
	}
	s.wantAllArrived()
	phone.leave()
	phone = s.mustEnter(home.phones[0], way{})
	t.Cleanup(phone.w.abort)
	if _, err := phone.barrier(); err != nil {
		t.Errorf("%s: %v", home.phones[0], err)
	}
	sum := s.wantAudit()
	s.wantGauge()
	s.relay.stop()
	report("half commit", began, "%d commits there in spite of EIO; %d messages arrived, in order", rounds, sum.arrived)
}
