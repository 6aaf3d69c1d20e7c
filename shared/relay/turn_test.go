package relay_test

import (
	"testing"
	"testing/synctest"
	"time"

	"blindpost/shared/relay"
)

// redials is a phone that sends three messages, closes and connects again at once. The
// functions have handled none of them when the new connection sends, in a handler of its
// own, which reports on the channel when it ends.
func redials(t *testing.T) (s *stage, agent, first, second *line, spoke chan time.Duration) {
	// Without a limit nothing else is written with each message.
	s = begin(t, distributed, func(o *relay.Options) { o.Limits.MessagesPerMinute = 0 })
	agent, first = s.home()
	for _, words := range []string{"one", "two", "three"} {
		s.write(first, message(actors[0].pub, []byte(words), false))
	}
	first.closed = true
	second = s.comes(1)
	spoke = make(chan time.Duration, 1)
	go func() {
		began := time.Now()
		s.says(second, 0, "four")
		spoke <- time.Since(began)
	}()
	synctest.Wait()
	return s, agent, first, second, spoke
}

// A phone that sends, hangs up and redials: what the old connection has sent is
// handled before the first word of the new one, and not refused.
func TestHangUpAndRedial(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, agent, first, second, spoke := redials(t)
		wantHeard(t, agent)
		s.flush(first)
		s.disconnect(first)
		if took := <-spoke; took >= time.Second {
			t.Errorf("it took %v", took)
		}
		s.says(second, 0, "five")
		wantHeard(t, agent, "one", "two", "three", "four", "five")
		wantPresence(t, agent, 1, online)
	})
}

// The end of the old connection is not reported: a job that comes behind its
// frames stands in for the report.
func TestHangUpAndRedial_EndIsNotReported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, agent, first, _, spoke := redials(t)
		s.flush(first)
		s.later(time.Second)
		if took := <-spoke; took >= time.Second {
			t.Errorf("it took %v", took)
		}
		if _, ok := s.item(t, connItem(first)); ok {
			t.Error("the record of the old connection is still there")
		}
		first.over = true
		wantHeard(t, agent, "one", "two", "three", "four")
	})
}

// Nothing is heard of the old connection at all: the new one does not wait for
// ever, and only once.
func TestHangUpAndRedial_NothingIsHeard(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, agent, first, second, spoke := redials(t)
		if took := <-spoke; took < 3*time.Second || took > 4*time.Second {
			t.Errorf("it took %v", took)
		}
		began := time.Now()
		s.says(second, 0, "five")
		if took := time.Since(began); took != 0 {
			t.Errorf("the next took %v", took)
		}
		s.disconnect(first)
		wantHeard(t, agent, "four", "five")
	})
}

// A phone that hangs up twice, and has said nothing in between: the third
// connection waits for the first.
func TestHangUpAndRedial_Twice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := begin(t, distributed)
		agent, first := s.home()
		s.write(first, message(actors[0].pub, []byte("one"), false))
		first.closed = true
		second := s.comes(1)
		gone := make(chan bool)
		go func() {
			s.disconnect(second)
			close(gone)
		}()
		synctest.Wait()
		third := s.comes(1)
		spoke := make(chan bool)
		go func() {
			s.says(third, 0, "two")
			close(spoke)
		}()
		synctest.Wait()
		s.flush(first)
		s.disconnect(first)
		<-gone
		<-spoke
		wantHeard(t, agent, "one", "two")
	})
}

// A post finds the connection gone before its last frame was handled, and a job lets the
// phone leave: its next connection waits for that frame too.
func TestHangUpAndRedial_FoundGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := begin(t, distributed)
		agent, first := s.home()
		s.write(first, message(actors[0].pub, []byte("one"), false))
		first.closed = true
		s.says(agent, 1, "are you there?")
		s.runJobs()
		if m := s.member(t, 1); m.Conn != "" {
			t.Fatalf("the phone still points to %s", m.Conn)
		}
		second := s.comes(1)
		spoke := make(chan bool)
		go func() {
			s.says(second, 0, "two")
			close(spoke)
		}()
		synctest.Wait()
		s.flush(first)
		s.disconnect(first)
		<-spoke
		wantHeard(t, agent, "one", "two")
	})
}
