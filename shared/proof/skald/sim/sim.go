package sim

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing/synctest"
	"time"

	"blindpost/shared/gateway"
	"blindpost/shared/relay"
	"blindpost/shared/table"
	"blindpost/shared/table/mem"
)

// sim is one schedule. All of it belongs to the goroutine of the scheduler, or
// to the one task that it has released.
type sim struct {
	seed     uint64
	plan     plan
	rng      *rand.Rand
	mutation *Mutation
	store    Store

	// The world.
	clock    atomic.Int64 // the relay's, Unix nanoseconds
	latest   time.Time    // the highest that clock has been
	skew     time.Duration
	setBack  bool // the clock has been set back
	socks    map[gateway.Conn]*socket
	sockList []*socket
	jobs     []*job
	spaces   []*namespace
	peers    []*peer
	messages []*message
	sweepDue bool

	// The relay and what is below it.
	proc    *process    // oneProcess
	lonely  []*process  // see Mutation.alone
	idle    []*instance // functions
	table   table.Table
	front   gateway.Front
	durable table.Table
	closing func() error
	dir     string     // of the durable table
	memory  *mem.Table // what is lost in a crash
	nonces  uint64     // given out so far, and so on
	ids     uint64
	frames  int

	ghost ghost

	// mu is held by whoever is at work: by the scheduler but for its waits, and
	// then by one task at a time.
	mu sync.Mutex

	// The scheduler.
	steps      int
	taskCount  int
	jobCount   int
	tasks      []*task
	last       *task
	choices    []choice
	quick      bool // operations happen at once
	calm       bool // no faults, no initiative of peers
	waited     int  // seconds in a row with nothing to do but to wait
	faults     int
	mishaps    int  // faults that a handler has seen as an error
	slowPost   bool // the post that happens now finds its reader too slow
	pongForAll bool // a mutation of the simulated front

	failure *Failure
	hash    uint64
	trace   *trace
	counts  Counts
}

// Failure is a property that did not hold.
type Failure struct {
	Seed     uint64
	Property string
	Detail   string
	Step     int
	Trace    []string // what led to it, one line for each event
}

func (f *Failure) Error() string {
	return fmt.Sprintf("seed %d, step %d: %s: %s", f.Seed, f.Step, f.Property, f.Detail)
}

// Counts say how much a schedule has done.
type Counts struct {
	Steps, Tasks, Messages, Received, Faults, Crashes int
}

func newSim(seed uint64, o *Options, tr *trace) *sim {
	s := &sim{
		seed: seed, plan: drawPlan(seed), mutation: o.Mutation, store: o.Store,
		rng:   rand.New(rand.NewPCG(seed, 0x73636865)),
		socks: make(map[gateway.Conn]*socket),
		trace: tr,
	}
	s.ghost.init(s)
	s.tick()
	return s
}

// tick sets the relay's clock from the bubble's.
func (s *sim) tick() {
	now := time.Now().Add(s.skew)
	s.clock.Store(now.UnixNano())
	if now.After(s.latest) {
		s.latest = now
	}
}

func (s *sim) now() time.Time { return time.Unix(0, s.clock.Load()).UTC() }

// wait lets time pass. Every other goroutine of the bubble is blocked, so it
// takes none.
func (s *sim) wait(d time.Duration) {
	s.mu.Unlock()
	time.Sleep(d)
	s.mu.Lock()
	s.tick()
}

// pause waits until every task waits for something.
func (s *sim) pause() {
	s.mu.Unlock()
	synctest.Wait()
	s.mu.Lock()
}

// violate records the first property that does not hold.
func (s *sim) violate(property, format string, args ...any) {
	if s.failure != nil {
		return
	}
	s.failure = &Failure{
		Seed: s.seed, Step: s.steps, Property: property,
		Detail: fmt.Sprintf(format, args...),
	}
	s.tracef("VIOLATION of %s: %s", property, s.failure.Detail)
}

// note adds a decision to the fingerprint of the schedule.
func (s *sim) note(kind choiceKind, id int, v verdict) {
	for _, n := range [...]uint64{uint64(kind), uint64(id), uint64(v)} {
		s.hash = (s.hash ^ n) * 1099511628211
	}
}

// run is a whole schedule, inside a bubble.
func (s *sim) run() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.open(); err != nil {
		s.violate("storage", "failed to open the table: %v", err)
		return
	}
	s.build()
	s.setUp()
	for s.failure == nil && s.steps < s.plan.steps {
		s.turn()
	}
	s.finish()
	s.shutDown()
	s.counts.Steps, s.counts.Tasks, s.counts.Messages = s.steps, s.taskCount, len(s.messages)
	s.counts.Faults = s.faults
}

// shutDown ends everything that still runs, so that the bubble can end.
func (s *sim) shutDown() {
	for _, t := range s.tasks {
		t.proc.kill()
	}
	if s.proc != nil {
		s.proc.kill()
	}
	s.killParked()
	s.idle = nil
	if s.closing != nil {
		if err := s.closing(); err != nil {
			s.violate("storage", "failed to close the table: %v", err)
		}
	}
}

// killParked stops the waiting tasks of dead processes where they are.
func (s *sim) killParked() {
	for {
		s.pause()
		again := false
		for _, t := range s.tasks {
			if t.parked && t.proc.dead {
				t.parked = false
				t.release <- die
				again = true
			}
		}
		if !again {
			s.reap()
			return
		}
	}
}

func (s *sim) relayLimits() relay.Limits {
	return relay.Limits{
		MailboxCap:        s.plan.cap,
		MessageTTL:        s.plan.ttl,
		ConnectionsPerIP:  s.plan.perIP,
		MessagesPerMinute: s.plan.perMinute,
		ControlPerMinute:  s.plan.perMinute,
	}
}

const (
	messageTTL   = 7 * 24 * time.Hour
	namespaceTTL = 7 * 24 * time.Hour
)
