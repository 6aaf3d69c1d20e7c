package relay_test

import (
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"blindpost/shared/gateway"
	"blindpost/shared/queue"
	"blindpost/shared/table"
)

func (s *stage) pumpJobs() int {
	n := 0
	for _, j := range s.jobs {
		if j.Kind == "pump" {
			n++
		}
	}
	return n
}

func pumpJob(l *line) queue.Job {
	return queue.Job{Kind: "pump", Body: []byte(`{"c":"` + string(l.id) + `"}`)}
}

// On a front that confirms nothing, a handler posts only a part of a long mailbox, limited
// by number, size and time, so that it ends in time. Jobs post the rest in order, and
// messages that are sent meanwhile come after it.
func TestLongMailboxIsEmptiedInParts(t *testing.T) {
	for _, c := range []struct {
		name     string
		messages int
		size     int
		each     time.Duration // that a post takes
		most     int           // messages at a time
		least    int
	}{
		{"number", 140, 20, 0, 128, 128},
		{"size", 40, 60_000, 0, 18, 17},
		{"time", 40, 20, 300 * time.Millisecond, 17, 16},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := begin(t, distributed)
			agent, phone := s.home()
			s.disconnect(phone)
			want := numbered(c.messages)
			for i := range want {
				want[i] += strings.Repeat(".", c.size)
				s.says(agent, 1, want[i])
			}
			s.jobs = nil // pushes
			s.front.before = func(gateway.Conn) error { s.now = s.now.Add(c.each); return nil }
			phone = s.comes(1)
			if n := len(phone.heard()); n > c.most || n < c.least {
				t.Errorf("got %d messages before the handler ended", n)
			}
			if n := s.pumpJobs(); n != 1 {
				t.Errorf("%d jobs go on", n)
			}
			s.says(agent, 1, "one more")
			before := len(phone.heard())
			for parts := 0; s.pumpJobs() > 0; parts++ {
				if parts > 10 {
					t.Fatal("it does not end")
				}
				jobs := s.jobs
				s.jobs = nil
				for _, j := range jobs {
					s.handled("a job", s.r.Job(t.Context(), j))
				}
				if n := len(phone.heard()); n > before+c.most {
					t.Errorf("a job has posted %d messages", n-before)
				}
				before = len(phone.heard())
			}
			s.says(agent, 1, "and another")
			wantHeard(t, phone, append(want, "one more", "and another")...)
		})
	}
}

// A job that pumps does not undo what a handler has written into the record of the
// connection meanwhile, nor bring a record back that has been deleted.
func TestPumpWritesItsOwnPartOfTheRecord(t *testing.T) {
	s := begin(t, distributed)
	agent, phone := s.home()
	s.disconnect(phone)
	for _, words := range numbered(140) {
		s.says(agent, 1, words)
	}
	phone = s.comes(1)
	i := slices.IndexFunc(s.jobs, func(j queue.Job) bool { return j.Kind == "pump" })
	if i < 0 {
		t.Fatal("no job goes on")
	}
	j := s.jobs[i]
	s.jobs = nil
	s.front.before = oncePost(func() { // another process
		if _, err := s.table.Write(t.Context(), table.Op{Action: table.Delete, Key: connItem(phone)}); err != nil {
			t.Fatal(err)
		}
	})
	s.handled("a job", s.r.Job(t.Context(), j))
	if _, ok := s.item(t, connItem(phone)); ok {
		t.Error("the record of a connection that has ended is back")
	}
	phone.over = true
	s.handled("the end", s.r.Job(t.Context(), queue.Job{Kind: "gone", Body: []byte(`{"g":"` + group + `","m":"` + hex.EncodeToString(actors[1].pub) + `","c":"` + string(phone.id) + `"}`)}))
}

// oncePost makes a hook that runs before one post.
func oncePost(do func()) func(gateway.Conn) error {
	done := false
	return func(gateway.Conn) error {
		if !done {
			done = true
			do()
		}
		return nil
	}
}

// A message that is too large for the front of a member stays for another front, and does
// not block the messages behind it.
func TestTooLargeForTheFront(t *testing.T) {
	s := begin(t, distributed)
	agent, phone := s.home()
	s.disconnect(phone)
	s.says(agent, 1, "large")
	s.says(agent, 1, "small")
	n := 0
	s.front.before = func(id gateway.Conn) error {
		if id == agent.id {
			return nil
		}
		if n++; n == 2 { // AuthOk is first
			return fmt.Errorf("failed to post: %w", gateway.ErrTooLarge)
		}
		return nil
	}
	phone = s.comes(1)
	wantHeard(t, phone, "small")
	s.front.before = nil
	s.disconnect(phone)
	wantHeard(t, s.comes(1), "large")
}
