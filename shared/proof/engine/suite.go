package engine

import (
	"os"
	"strings"
	"testing"
	"time"
)

// Suite is what the tests of a world have in common.
type Suite struct {
	World func(*Engine) World
	// Dialect is the name that `make sim` knows the world by.
	Dialect string
	// Seeds is how many schedules a plain `go test` runs, Again how many of them twice.
	Seeds, Again uint64
	// Kept are seeds that have failed once. They are run whenever the tests are.
	Kept []uint64
	// Mutations have to be found within Budget schedules each.
	Mutations []Mutation
	Budget    uint64
}

// Simulate runs schedules that are new (see FirstSeed) and shows the first that fails.
// `make sim` says which in the environment: SEED=n runs one and prints what happens in
// it, START and SEEDS run many, and SURVEY=1 goes on after a failure and lists them by
// their property.
func (s Suite) Simulate(t *testing.T) {
	o := Options{World: s.World, Seeds: Env("SEEDS", s.Seeds/slowdown)}
	if seed := Env("SEED", 0); seed != 0 {
		lines, f := Replay(t, seed, o)
		t.Logf("seed %d\n%s", seed, strings.Join(lines, "\n"))
		if f != nil {
			t.Fatal(f)
		}
		return
	}
	o.Start = FirstSeed(t)
	o.All = os.Getenv("SURVEY") != ""
	began := time.Now()
	rep := Run(t, o)
	took := time.Since(began)
	t.Logf("%d schedules in %v (%.0f a second): %+v", rep.Schedules, took.Round(time.Millisecond),
		float64(rep.Schedules)/took.Seconds(), rep.Counts)
	if o.All {
		survey(t, rep)
	}
	if f := rep.Failure; f != nil {
		t.Fatalf("%s\n%v\nReplay it with: make sim DIALECT=%s SEED=%d", strings.Join(f.Trace, "\n"), f, s.Dialect, f.Seed)
	}
}

// survey lists failures by their property, the first few of each.
func survey(t *testing.T, rep Report) {
	t.Helper()
	by := map[string]int{}
	for _, f := range rep.Failures {
		if by[f.Property]++; by[f.Property] <= 6 {
			t.Log(f)
		}
	}
	t.Logf("%d failures: %v", len(rep.Failures), by)
}

// Keep runs the seeds that are kept.
func (s Suite) Keep(t *testing.T) {
	for _, seed := range s.Kept {
		if lines, f := Replay(t, seed, Options{World: s.World}); f != nil {
			t.Errorf("%s\n%v", strings.Join(lines, "\n"), f)
		}
	}
}

// Repeat shows that a seed is a schedule: it runs in the same way again.
func (s Suite) Repeat(t *testing.T) {
	o := Options{World: s.World}
	start := FirstSeed(t)
	for seed := start; seed < start+s.Again/slowdown; seed++ {
		first, counts := Fingerprint(t, seed, o, false)
		again, countsAgain := Fingerprint(t, seed, o, true)
		if first != again || counts != countsAgain {
			t.Errorf("seed %d: runs differ: %x %+v, then %x %+v", seed, first, counts, again, countsAgain)
		}
	}
}

// Find shows that each mutation is found.
func (s Suite) Find(t *testing.T) {
	for _, m := range s.Mutations {
		t.Run(m.Name, func(t *testing.T) {
			began := time.Now()
			rep := Run(t, Options{World: s.World, Start: 1, Seeds: s.Budget, Mutation: &m})
			if rep.Failure == nil {
				t.Fatalf("not found in %d schedules: %s", rep.Schedules, m.What)
			}
			t.Logf("%4d schedules, %v: %v", rep.Schedules, time.Since(began).Round(time.Millisecond), rep.Failure)
		})
	}
}
