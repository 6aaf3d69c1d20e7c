package sim

import (
	"errors"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
)

// Options say what to run.
type Options struct {
	// Start is the first seed, Seeds how many there are.
	Start, Seeds uint64
	// FunctionsOnly leaves out the schedules of the single binary.
	FunctionsOnly bool
	Store         Store
	// Workers run schedules side by side; 0 means one for each processor.
	Workers int
	// Mutation, if set, puts a fault into the relay's surroundings.
	Mutation *Mutation
}

// Report is what many schedules have come to.
type Report struct {
	Schedules uint64
	Counts    Counts
	// Failure is the one with the lowest seed among those that were found, with
	// its trace.
	Failure *Failure
}

// Run runs the schedules until all are done or one has failed.
func Run(t *testing.T, o Options) Report {
	t.Helper()
	workers := o.Workers
	if workers == 0 {
		workers = runtime.GOMAXPROCS(0)
	}
	var (
		next    atomic.Uint64
		stop    atomic.Bool
		mu      sync.Mutex
		rep     Report
		running sync.WaitGroup
	)
	for range workers {
		running.Go(func() {
			for !stop.Load() {
				n := next.Add(1) - 1
				if n >= o.Seeds {
					return
				}
				if o.FunctionsOnly && drawPlan(o.Start+n).mode != functions {
					continue
				}
				s := one(t, o.Start+n, &o, nil)
				mu.Lock()
				rep.Schedules++
				rep.Counts.add(s.counts)
				if f := s.failure; f != nil {
					stop.Store(true)
					if rep.Failure == nil || f.Seed < rep.Failure.Seed {
						rep.Failure = f
					}
				}
				mu.Unlock()
			}
		})
	}
	running.Wait()
	if f := rep.Failure; f != nil {
		var again *Failure
		if f.Trace, again = Replay(t, f.Seed, o); again == nil {
			f.Trace = append(f.Trace, "The same seed has not failed again: something in it is not decided by the seed.")
		}
	}
	return rep
}

// Replay runs one schedule again and writes down what happens. The Failure is
// nil if all properties hold.
func Replay(t *testing.T, seed uint64, o Options) ([]string, *Failure) {
	tr := &trace{}
	s := one(t, seed, &o, tr)
	return append([]string{s.plan.String()}, tr.lines...), s.failure
}

func (c *Counts) add(d Counts) {
	c.Steps += d.Steps
	c.Tasks += d.Tasks
	c.Messages += d.Messages
	c.Received += d.Received
	c.Faults += d.Faults
	c.Crashes += d.Crashes
}

// one runs one schedule in a bubble of its own.
func one(t *testing.T, seed uint64, o *Options, tr *trace) (s *sim) {
	synctest.Test(t, func(*testing.T) {
		s = newSim(seed, o, tr)
		s.run()
	})
	if s.dir != "" {
		if err := os.RemoveAll(s.dir); err != nil && !errors.Is(err, os.ErrNotExist) {
			t.Errorf("failed to remove a table: %v", err)
		}
	}
	return s
}
