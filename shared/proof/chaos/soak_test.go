package chaos

import (
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"
)

// usage is what the relay holds when nobody is connected.
type usage struct {
	heap, resident  float64 // bytes; heap is what is live after a collection
	objects         float64 // in the heap
	goroutines, fds float64
	file            int64   // bytes of the database
	connections     float64 // so far
}

func (u usage) String() string {
	return fmt.Sprintf("heap %.1f MB in %.0f objects, resident %.0f MB, %.0f goroutines, %.0f files, database %.1f MB",
		u.heap/(1<<20), u.objects, u.resident/(1<<20), u.goroutines, u.fds, float64(u.file)/(1<<20))
}

// Traffic without a pause: everybody connects, pairs, is authorised, gets messages,
// leaves, is revoked, again and again. What the relay holds at the end, when
// everybody has left, is compared with what it held in the middle.
func playSoak(t *testing.T, u *suite) {
	began := time.Now()
	// Timers of 30 s would still be growing in number in the middle of a short run.
	s := u.stage(t, t.TempDir(), "--challenge-timeout", "1s", "--connections-per-ip", "1000000")
	s.relay.serve()
	all := s.households(8, 2000)
	talkers := s.settle(2, 3)
	half := budget(2500*time.Millisecond, 38*time.Second)
	s.load(all, talkers, half/4, u.seed) // everything warm
	warm := s.measure()
	s.load(all, talkers, half, u.seed+1)
	middle := s.measure()
	s.load(all, talkers, half, u.seed+2)
	end := s.measure()

	// A leak of one object per connection shows in the full run, where there are
	// thousands. The short one ends while the number of pending timers, which last
	// 30 s, still grows with each pairing.
	m := s.relay.scrape()
	connections := m.one(t, "blindpost_connects_accepted_total")
	fresh := end.connections - middle.connections
	for _, c := range []struct {
		what        string
		middle, end float64
		allowed     float64
	}{
		{"heap", middle.heap, end.heap, 1<<19 + 50*fresh},
		{"objects in the heap", middle.objects, end.objects, float64(budget(6000, 1500)) + fresh/2},
		{"goroutines", middle.goroutines, end.goroutines, 3},
		{"open files", middle.fds, end.fds, 2},
		{"resident memory", middle.resident, end.resident, 16 << 20},
		{"database", float64(middle.file), float64(end.file), 4 << 20},
	} {
		if c.end > c.middle+c.allowed {
			t.Errorf("%s: from %.0f to %.0f between the middle and the end, over %.0f connections\nwarm:   %v\nmiddle: %v\nend:    %v",
				c.what, c.middle, c.end, fresh, warm, middle, end)
		}
	}
	sum := s.wantAudit()
	rounds := int64(0)
	for _, h := range all {
		rounds += h.rounds.Load()
	}
	s.relay.stop()
	s.relay.wantNoErrors()
	// A busy household: a phone looks in every four minutes, and its agent reconnects
	// twice an hour; in two hours that makes 34.
	report("soak", began, "%.0f connections, as of %.0f busy households in two hours; %d phones paired, authorised, revoked; %d messages; middle: %v; end: %v",
		connections, connections/34, rounds, sum.sent, middle, end)
}

// load lets everybody do what they do for a while, and then leave.
func (s *stage) load(all []*household, talkers []*home, d time.Duration, seed uint64) {
	s.t.Helper()
	stop := make(chan struct{})
	c := s.gather(talkers, habits{
		size: 500, pause: 10 * time.Millisecond, leaving: 0.1, away: 50 * time.Millisecond, liveOnes: 0.3,
	}, seed)
	var running sync.WaitGroup
	for _, h := range all {
		running.Go(func() { h.live(stop) })
	}
	time.Sleep(d)
	close(stop)
	running.Wait()
	c.hush()
	s.eventually("everybody comes back", c.allHere)
	s.wantAllArrived()
	s.eventually("all mailboxes are empty", func() bool { return s.relay.peek().one(s.t, "blindpost_mailbox_messages") == 0 })
	c.dismiss()
	s.eventually("everybody has left", func() bool {
		m := s.relay.peek()
		return m.one(s.t, "blindpost_sockets") == 0 && m.sum("blindpost_connections") == 0
	})
}

// measure collects garbage and looks at what is left.
func (s *stage) measure() usage {
	s.t.Helper()
	time.Sleep(1100 * time.Millisecond) // timers of a second
	s.relay.get("/debug/pprof/heap?gc=1")
	s.relay.get("/debug/pprof/heap?gc=1") // what pools hold survives the first
	m := s.relay.scrape()
	info, err := os.Stat(filepath.Join(s.relay.data, "blindpost.db"))
	if err != nil {
		s.t.Fatal(err)
	}
	return usage{
		heap: m.one(s.t, "go_memstats_heap_alloc_bytes"), objects: m.one(s.t, "go_memstats_heap_objects"),
		resident:   m.one(s.t, "process_resident_memory_bytes"),
		goroutines: m.one(s.t, "go_goroutines"), fds: m.one(s.t, "process_open_fds"), file: info.Size(),
		connections: m.one(s.t, "blindpost_connects_accepted_total"),
	}
}
