package chaos

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// usage is what the relay holds when nobody is connected.
type usage struct {
	heap, resident  float64 // bytes; heap is what is live after a collection
	objects         float64 // in the heap
	goroutines, fds float64
	file            float64 // bytes of the database
	connections     float64 // so far
	stacks          []byte  // of the goroutines
}

func (u usage) String() string {
	return fmt.Sprintf("heap %.1f MB in %.0f objects, resident %.0f MB, %.0f goroutines, %.0f files, database %.1f MB",
		u.heap/(1<<20), u.objects, u.resident/(1<<20), u.goroutines, u.fds, u.file/(1<<20))
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
	n, stacks := s.relay.goroutines()
	return usage{
		heap: m.one(s.t, "go_memstats_heap_alloc_bytes"), objects: m.one(s.t, "go_memstats_heap_objects"),
		resident:   m.one(s.t, "process_resident_memory_bytes"),
		goroutines: n, stacks: stacks, fds: m.one(s.t, "process_open_fds"), file: float64(info.Size()),
		connections: m.one(s.t, "blindpost_connects_accepted_total"),
	}
}

// goroutines counts them in their profile. The metric go_goroutines counts those as well
// that collect the metrics just then: five or nine, by chance.
func (r *relay) goroutines() (n float64, stacks []byte) {
	r.t.Helper()
	stacks = r.get("/debug/pprof/goroutine?debug=1")
	if _, err := fmt.Sscanf(string(stacks), "goroutine profile: total %f", &n); err != nil {
		r.t.Fatalf("failed to read the profile of goroutines: %v\n%.100s", err, stacks)
	}
	return n, stacks
}

// growth says what has grown over rounds of the same kind: the least of the last third
// against the least of the first. What one round happens to hold is no growth.
func growth(rounds []usage) (grown []string) {
	third := len(rounds) / 3
	early, late := rounds[:third], rounds[len(rounds)-third:]
	fresh := late[0].connections - early[0].connections
	for _, c := range []struct {
		what    string
		of      func(usage) float64
		allowed float64
	}{
		{"heap", func(u usage) float64 { return u.heap }, 1<<19 + 100*fresh},
		// A leak of one object per connection shows in the full run, where there are
		// thousands. There is some growth: the core makes its locks, of which there is a
		// fixed number, when they are first asked for, half of one for each connection here;
		// and in the short run the number of pending timers still grows.
		{"objects in the heap", func(u usage) float64 { return u.objects }, float64(budget(6000, 1500)) + 0.75*fresh},
		{"goroutines", func(u usage) float64 { return u.goroutines }, 3},
		{"open files", func(u usage) float64 { return u.fds }, 2},
		{"resident memory", func(u usage) float64 { return u.resident }, 16 << 20},
		{"database", func(u usage) float64 { return u.file }, 4 << 20},
	} {
		least := func(rounds []usage) float64 {
			v := math.Inf(1)
			for _, u := range rounds {
				v = min(v, c.of(u))
			}
			return v
		}
		if from, to := least(early), least(late); to > from+c.allowed {
			grown = append(grown, fmt.Sprintf("%s: from %.0f to %.0f", c.what, from, to))
		}
	}
	return grown
}

func TestGrowth(t *testing.T) {
	const goroutines = 11
	// play makes the rounds of a run, in which leak is kept by each and held at the end
	// of some of them.
	play := func(leak float64, held ...float64) (rounds []usage) {
		for n := range soakRounds() {
			u := usage{heap: 5 << 20, objects: 33_000, resident: 33 << 20, goroutines: goroutines, fds: 13, connections: 100 * float64(n)}
			u.goroutines += leak * float64(n)
			if n < len(held) {
				u.goroutines += held[n]
			}
			rounds = append(rounds, u)
		}
		return rounds
	}
	late := make([]float64, soakRounds())
	late[len(late)-1] = 8
	for _, tt := range []struct {
		name   string
		rounds []usage
		grown  bool
	}{
		{"nothing", play(0), false},
		{"much at the start", play(0, 9, 4, 1), false},
		{"much at the end, once", play(0, late...), false},
		{"one a round", play(1), true},
	} {
		grown := growth(tt.rounds)
		if !tt.grown && len(grown) > 0 || tt.grown && (len(grown) != 1 || !strings.HasPrefix(grown[0], "goroutines: ")) {
			t.Errorf("%s: %q", tt.name, grown)
		}
	}
}

// wantNoGrowth fails the test if something has grown, and says what there was.
func wantNoGrowth(t *testing.T, rounds []usage) {
	t.Helper()
	grown := growth(rounds)
	if len(grown) == 0 {
		return
	}
	for n, u := range rounds {
		t.Logf("round %d, after %.0f connections: %v", n, u.connections, u)
	}
	t.Errorf("this has grown over the rounds: %s\nthe goroutines at the end: %s", strings.Join(grown, "; "), rounds[len(rounds)-1].stacks)
}
