package bench

import (
	"math/rand/v2"
	"time"
)

// pacers is how many goroutines send at a fixed rate.
const pacers = 2

// latency sends at a fixed mean rate: bursts of some messages, at random times
// that do not depend on the relay (a Poisson process), each from a random pair.
// What was due in the warm-up is not counted.
func (r *liveRun) latency(relay Relay, what string, rate float64, burst int, warmup, measure time.Duration) (histogram, error) {
	begin := time.Since(r.clock)
	r.recordFrom.Store(int64(begin + warmup))
	watch := start(relay, what, warmup+measure)
	err := r.fleet.each(pacers, pacers, func(i int) error {
		var mine []*pair
		for k := i; k < len(r.pairs); k += pacers {
			mine = append(mine, r.pairs[k])
		}
		if len(mine) == 0 {
			return nil
		}
		share := rate * float64(len(mine)) / float64(len(r.pairs))
		gap := float64(time.Second) * float64(burst) / share
		return r.pace(mine, begin, begin+warmup+measure, gap, burst)
	})
	if err == nil {
		err = r.settle()
	}
	watch.stop()
	var all histogram
	for _, p := range r.pairs {
		p.latencyMu.Lock()
		all.merge(&p.latency)
		p.latencyMu.Unlock()
	}
	return all, err
}

// pace sends one burst after another until all that was due before the end is
// sent, however late it is by then.
func (r *liveRun) pace(pairs []*pair, at, end time.Duration, gap float64, burst int) error {
	for {
		at += time.Duration(rand.ExpFloat64() * gap)
		if at >= end {
			return nil
		}
		if wait := at - time.Since(r.clock); wait > 0 {
			if err := r.fleet.pause(wait); err != nil {
				return err
			}
		}
		if err := pairs[rand.IntN(len(pairs))].send(burst, at); err != nil {
			return err
		}
	}
}
