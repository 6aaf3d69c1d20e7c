package engine

import (
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
)

// Options say what to run.
type Options struct {
	// World makes the world of one schedule.
	World func(*Engine) World
	// Start is the first seed, Seeds how many there are.
	Start, Seeds uint64
	// Workers run schedules side by side; 0 means one for each processor.
	Workers int
	// All goes on after a failure.
	All bool
	// Mutation, if set, puts a fault into the relay's surroundings.
	Mutation *Mutation
}

// Report is what many schedules have come to.
type Report struct {
	Schedules uint64
	Counts    Counts
	// Failure is the one with the lowest seed among those that were found, with its
	// trace.
	Failure *Failure
	// Failures are all, with Options.All, without traces.
	Failures []*Failure
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
				e := one(t, o.Start+n, &o, nil)
				mu.Lock()
				rep.Schedules++
				rep.Counts.add(e.counts)
				if f := e.failure; f != nil {
					stop.Store(!o.All)
					rep.Failures = append(rep.Failures, f)
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

// Replay runs one schedule again and writes down what happens. The Failure is nil if
// all properties hold.
func Replay(t *testing.T, seed uint64, o Options) ([]string, *Failure) {
	tr := &trace{}
	e := one(t, seed, &o, tr)
	return append([]string{e.Plan.String()}, tr.lines...), e.failure
}

// Fingerprint runs one schedule and returns what tells it from others.
func Fingerprint(t *testing.T, seed uint64, o Options, traced bool) (uint64, Counts) {
	var tr *trace
	if traced {
		tr = &trace{}
	}
	e := one(t, seed, &o, tr)
	return e.hash, e.counts
}

// one runs one schedule in a bubble of its own.
func one(t *testing.T, seed uint64, o *Options, tr *trace) (e *Engine) {
	synctest.Test(t, func(*testing.T) {
		e = newEngine(seed, o, tr)
		e.run()
	})
	return e
}
