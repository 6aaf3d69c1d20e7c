package bench

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// idleResult is memory per idle connection, in bytes.
type idleResult struct {
	resident, anonymous float64
}

const (
	quietStep  = 500 * time.Millisecond
	quietSteps = 10
	// quietShare is how much of one processor a quiet relay may use, and by what
	// share its memory may change within quietSteps.
	quietShare = 0.02
)

var errNoUsage = errors.New("failed to measure memory: this system does not tell what a process uses")

// idle measures what n idle connections cost: agents, each in a namespace of its
// own that is new. The relay has just been started. Nothing makes it tidy up; it
// is given time to fall quiet, patience at most.
func (f *fleet) idle(relay Relay, what string, n int, patience time.Duration) (idleResult, error) {
	before, ok := relay.Usage()
	if !ok {
		return idleResult{}, errNoUsage
	}
	ids, err := f.agents(n)
	if err != nil {
		return idleResult{}, err
	}
	conns, err := f.enterAll(ids, openers)
	if err != nil {
		return idleResult{}, err
	}
	for _, c := range conns {
		f.watch("idle agent", c)
	}
	after, err := f.quiet(relay, patience)
	if err != nil {
		return idleResult{}, err
	}
	relay.Measuring(what, 0)()
	if err := context.Cause(f.ctx); err != nil { // its memory would be missing
		return idleResult{}, fmt.Errorf("an idle connection has ended: %w", err)
	}
	per := func(a, b int64) float64 { return float64(a-b) / float64(n) }
	return idleResult{
		resident:  per(after.Resident, before.Resident),
		anonymous: per(after.Anonymous, before.Anonymous),
	}, nil
}

// quiet waits until the relay does next to nothing and its memory stays as it is,
// and returns what it uses then; when patience is over, what it uses by then.
func (f *fleet) quiet(relay Relay, patience time.Duration) (Usage, error) {
	var last []Usage
	for end := time.Now().Add(patience); ; {
		u, ok := relay.Usage()
		if !ok {
			return Usage{}, errNoUsage
		}
		last = append(last, u)
		if len(last) > quietSteps {
			first := last[len(last)-1-quietSteps]
			busy := (u.CPU - first.CPU).Seconds() / (quietSteps * quietStep).Seconds()
			moved := float64(u.Resident-first.Resident) / float64(u.Resident)
			if busy < quietShare && moved < quietShare && moved > -quietShare {
				return u, nil
			}
		}
		if time.Now().After(end) {
			return u, nil
		}
		if err := f.pause(quietStep); err != nil {
			return Usage{}, err
		}
	}
}
