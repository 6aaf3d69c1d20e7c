package main

import (
	"context"
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"time"
)

// A relay is idle most of the time and holds thousands of connections while it
// is. What a burst leaves behind (garbage, and stacks that have grown) stays
// with the process until the next garbage collection, which an idle process
// puts off for minutes. memoryKeeper brings it forward to a moment of calm.

const (
	memoryEvery = time.Second
	// garbagePercent is how much garbage may pile up, as a part of the live heap,
	// while there is traffic; calm moments clear it away. 200 instead of Go's 100
	// took a tenth off the processor time of an authentication; GOGC overrides it.
	garbagePercent = 200
	// memoryGap is the least number of looks between two times that memory is given back.
	memoryGap = 10
	// memoryWorth is how much must have been allocated since the last time,
	// in bytes, and as a part of the live heap.
	memoryWorth     = 1 << 20
	memoryWorthPart = 8
)

// memoryUse is one reading of the runtime's counters.
type memoryUse struct {
	cycles uint64 // garbage collections so far
	allocs uint64 // bytes allocated so far
	live   uint64 // bytes that the last collection has left
}

// memoryKeeper decides when to give memory back. It is calm when a whole interval
// has passed without a garbage collection.
type memoryKeeper struct {
	last  memoryUse // at the last look
	freed uint64    // allocs when memory was last given back
	rest  int       // looks left before memory may be given back again
}

// look takes the next reading and reports whether now is the moment.
func (k *memoryKeeper) look(use memoryUse) bool {
	calm := use.cycles == k.last.cycles
	k.last = use
	if k.rest > 0 {
		k.rest--
		return false
	}
	return calm && use.allocs-k.freed >= max(memoryWorth, use.live/memoryWorthPart)
}

// done notes that memory was given back.
func (k *memoryKeeper) done(use memoryUse) {
	k.last, k.freed, k.rest = use, use.allocs, memoryGap
}

// keepMemoryLow gives memory back in moments of calm until ctx ends.
func keepMemoryLow(ctx context.Context) {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(garbagePercent)
	}
	samples := []metrics.Sample{
		{Name: "/gc/cycles/total:gc-cycles"},
		{Name: "/gc/heap/allocs:bytes"},
		{Name: "/gc/heap/live:bytes"},
	}
	read := func() memoryUse {
		metrics.Read(samples)
		return memoryUse{
			cycles: samples[0].Value.Uint64(),
			allocs: samples[1].Value.Uint64(),
			live:   samples[2].Value.Uint64(),
		}
	}
	var k memoryKeeper
	tick := time.NewTicker(memoryEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if k.look(read()) {
			// Twice: a pooled buffer outlives one collection, and each halves a
			// stack that is too large.
			runtime.GC()
			debug.FreeOSMemory()
			k.done(read())
		}
	}
}
