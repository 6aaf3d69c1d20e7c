package bench

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"time"
)

const (
	// snapshotsInFlight and bytesInFlight bound what is on its way to one viewer
	// while the throughput is measured. Twice of it must be less than what a relay
	// keeps for a reader before it drops snapshots, 256 KiB: the relay counts what it
	// writes in one go until all of it is written, when much of it has been read.
	snapshotsInFlight = 64
	bytesInFlight     = 100 << 10
	// publishBytes is how much a boat writes at once, about.
	publishBytes = 64 << 10
)

// broadcast measures how many snapshots a second one boat can publish to its
// viewers.
func (s *partRun) broadcast(size int, keys AelosKeys) error {
	var recordFrom atomic.Int64
	recordFrom.Store(int64(measureNothing))
	v, err := s.fleet.vessel(time.Now(), "one", s.cfg.Viewers, size, &recordFrom)
	if err != nil {
		return err
	}
	s.fleet.launch(v)
	ctx, enough := context.WithCancel(s.fleet.ctx)
	defer enough()
	sender := make(chan struct{})
	s.fleet.background(func() error { defer close(sender); return v.flood(ctx, size) })
	if err := s.fleet.pause(s.cfg.Warmup); err != nil {
		return err
	}
	watch := start(s.relay, s.name, s.cfg.Measure)
	n, err := s.fleet.count(s.cfg.Measure, v.slowest)
	l := watch.stop()
	enough()
	<-sender
	if err != nil {
		return err
	}
	s.out[keys.Rate] = l.perSecond(n)
	s.out.cpuPer(keys.CPU, l, n*uint64(s.cfg.Viewers))
	return s.fleet.landed([]*vessel{v})
}

// flood publishes as fast as the slowest viewer reads, until ctx ends.
func (v *vessel) flood(ctx context.Context, size int) error {
	window := uint64(max(min(snapshotsInFlight, bytesInFlight/size), 2))
	batch := max(min(int(window)/4, publishBytes/(size*len(v.viewers))), 1)
	for {
		for v.sent.Load()+uint64(batch)-v.slowest() > window {
			select {
			case <-v.arrived:
			case <-ctx.Done():
				return nil
			}
		}
		select {
		case <-ctx.Done():
			return nil
		default:
		}
		if err := v.publish(batch, 0); err != nil {
			return fmt.Errorf("boat: %w", err)
		}
	}
}

// landed waits until all that was published has arrived.
func (f *fleet) landed(all []*vessel) error {
	return f.settle(func() error {
		missing := uint64(0)
		for _, v := range all {
			missing += v.sent.Load() - v.slowest()
		}
		if missing == 0 {
			return nil
		}
		return fmt.Errorf("%d snapshots have not arrived", missing)
	})
}

// cruise measures many boats that publish a snapshot a second each, at moments of
// their own, to one viewer each.
func (s *partRun) cruise() error {
	var recordFrom atomic.Int64
	recordFrom.Store(int64(measureNothing))
	clock := time.Now()
	all := make([]*vessel, s.cfg.Boats)
	err := s.fleet.each(len(all), openers, func(i int) (err error) {
		all[i], err = s.fleet.vessel(clock, fmt.Sprint("boat-", i), 1, s.cfg.SmallSnapshot, &recordFrom)
		return err
	})
	if err != nil {
		return err
	}
	for _, v := range all {
		s.fleet.launch(v)
	}
	begin := time.Since(clock)
	recordFrom.Store(int64(begin + s.cfg.Warmup))
	watch := start(s.relay, s.name, s.cfg.Warmup+s.cfg.Measure)
	err = s.fleet.each(pacers, pacers, func(i int) error {
		var mine []*vessel
		for k := i; k < len(all); k += pacers {
			mine = append(mine, all[k])
		}
		return s.fleet.tick(clock, mine, begin, begin+s.cfg.Warmup+s.cfg.Measure)
	})
	if err == nil {
		err = s.fleet.landed(all)
	}
	l := watch.stop()
	if err != nil {
		return err
	}
	var h histogram
	for _, v := range all {
		for _, w := range v.viewers {
			w.latencyMu.Lock()
			h.merge(&w.latency)
			w.latencyMu.Unlock()
		}
	}
	s.out.latency(AelosFleet.P50, AelosFleet.P99, AelosFleet.Most, &h)
	if l.cpu > 0 {
		s.out[AelosFleet.CPU] = 100 * l.cpu.Seconds() / l.took.Seconds()
	}
	return nil
}

// second is how often a boat publishes.
const second = time.Second

// tick has each boat publish once a second, from a random moment in the first one
// on, until all that was due before the end is sent, however late it is by then.
func (f *fleet) tick(clock time.Time, boats []*vessel, begin, end time.Duration) error {
	type phase struct {
		at   time.Duration
		boat *vessel
	}
	var order []phase
	for _, v := range boats {
		order = append(order, phase{time.Duration(rand.Int64N(int64(second))), v})
	}
	slices.SortFunc(order, func(a, b phase) int { return cmp.Compare(a.at, b.at) })
	for round := begin; round < end; round += second {
		for _, p := range order {
			due := round + p.at
			if due >= end {
				break
			}
			if wait := due - time.Since(clock); wait > 0 {
				if err := f.pause(wait); err != nil {
					return err
				}
			}
			if err := p.boat.publish(1, due); err != nil {
				return fmt.Errorf("boat: %w", err)
			}
		}
	}
	return nil
}
