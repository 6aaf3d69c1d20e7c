package bench

import "time"

// Usage is what a process uses.
type Usage struct {
	// Resident is its resident memory in bytes; Anonymous the part of it that
	// is no file, such as the database, mapped into memory.
	Resident, Anonymous int64
	// CPU is the processor time since its start.
	CPU time.Duration
}

// Relay is a relay that was started to be measured.
type Relay interface {
	Target() Target
	// Usage tells what the relay's process uses; ok is false where nobody can
	// know.
	Usage() (u Usage, ok bool)
	// Measuring is called when something is being measured that takes about
	// expect, and done when it is over.
	Measuring(what string, expect time.Duration) (done func())
	// Stop ends the relay and removes what it has stored.
	Stop() error
}

// stopwatch measures one thing.
type stopwatch struct {
	relay Relay
	done  func()
	cpu   time.Duration
	at    time.Time
}

// lap is what a stopwatch has measured.
type lap struct {
	took time.Duration
	cpu  time.Duration // of the relay's process; 0 if not known
}

// start begins to measure.
func start(r Relay, what string, expect time.Duration) *stopwatch {
	return (&stopwatch{relay: r, done: r.Measuring(what, expect)}).begin()
}

// startPart begins to measure a part of what is being measured.
func startPart(r Relay) *stopwatch {
	return (&stopwatch{relay: r, done: func() {}}).begin()
}

func (w *stopwatch) begin() *stopwatch {
	u, _ := w.relay.Usage()
	w.cpu, w.at = u.CPU, time.Now()
	return w
}

func (w *stopwatch) stop() lap {
	l := lap{took: time.Since(w.at)}
	u, _ := w.relay.Usage()
	l.cpu = u.CPU - w.cpu
	w.done()
	return l
}

// perSecond is how often something happened that happened n times.
func (l lap) perSecond(n uint64) float64 { return float64(n) / l.took.Seconds() }
