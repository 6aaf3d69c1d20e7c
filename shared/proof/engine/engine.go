package engine

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing/synctest"
	"time"

	"blindpost/shared/gateway"
	"blindpost/shared/table"
	"blindpost/shared/table/mem"
)

// Engine is one schedule. All of it belongs to the goroutine of the scheduler, or to
// the one task that it has released.
type Engine struct {
	Seed uint64
	Plan Plan
	// Rand is for the choices of the world.
	Rand *rand.Rand
	// Step counts what has happened.
	Step int

	world    World
	mutation *Mutation

	// The world as the front and the queue know it.
	socks    map[gateway.Conn]*Socket
	list     []*Socket
	jobs     []*job
	sweepDue bool

	// The relay and what is below it.
	proc    *process   // OneProcess
	idle    []*process // Functions: of handlers that have ended well
	table   table.Table
	front   gateway.Front
	durable *mem.Table
	memory  *mem.Table // what is lost in a crash

	// mu is held by whoever is at work: by the scheduler but for its waits, and then by
	// one task at a time.
	mu sync.Mutex

	taskCount, jobCount, frameCount int

	serial atomic.Uint64 // of ids and random bytes

	tasks      []*Task
	gate       []*waiting
	last       *Task
	choices    []choice
	recovering bool
	calm       bool // no faults, no initiative of peers
	waited     int  // seconds in a row with nothing to do but to wait
	faults     int
	soon       []func()
	unsent     bool // a job was not accepted by the queue
	slow       bool // the post that happens now finds its reader too slow

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
	return fmt.Sprintf("seed %d (%v), step %d: %s: %s", f.Seed, drawPlan(f.Seed).Mode, f.Step, f.Property, f.Detail)
}

// Counts say how much schedules have done.
type Counts struct{ Steps, Tasks, Frames, Jobs, Faults, Crashes int }

func (c *Counts) add(d Counts) {
	c.Steps += d.Steps
	c.Tasks += d.Tasks
	c.Frames += d.Frames
	c.Jobs += d.Jobs
	c.Faults += d.Faults
	c.Crashes += d.Crashes
}

func newEngine(seed uint64, o *Options, tr *trace) *Engine {
	e := &Engine{
		Seed: seed, Plan: drawPlan(seed), mutation: o.Mutation,
		Rand:  rand.New(rand.NewPCG(seed, 0x73636865)),
		socks: make(map[gateway.Conn]*Socket), trace: tr,
	}
	e.world = o.World(e)
	return e
}

// Now is the relay's clock.
func (e *Engine) Now() time.Time { return time.Now().UTC() }

// Calm says that the faults have stopped.
func (e *Engine) Calm() bool { return e.calm }

// Failed says that a property did not hold; nothing more matters.
func (e *Engine) Failed() bool { return e.failure != nil }

// Chance draws an event of a probability in permille.
func (e *Engine) Chance(permille int) bool { return e.Rand.IntN(1000) < permille }

// Sockets are all connections there were.
func (e *Engine) Sockets() []*Socket { return e.list }

// Violate records the first property that does not hold.
func (e *Engine) Violate(property, format string, args ...any) {
	if e.failure != nil {
		return
	}
	e.failure = &Failure{Seed: e.Seed, Step: e.Step, Property: property, Detail: fmt.Sprintf(format, args...)}
	e.tracef("VIOLATION of %s: %s", property, e.failure.Detail)
}

// wait lets time pass. Every other goroutine of the bubble is blocked, so it takes
// none.
func (e *Engine) wait(d time.Duration) {
	e.mu.Unlock()
	time.Sleep(d)
	e.mu.Lock()
	e.pause()
	e.closeOld()
}

// tick ends a step. A moment passes with each, so that no two handlers have timers that
// fire at the same time: they would run at once, and nothing would say who is first.
func (e *Engine) tick() {
	e.mu.Unlock()
	time.Sleep(time.Nanosecond) // over when everybody waits for something
	e.mu.Lock()
	e.pause()
}

// pause waits until every task waits for something.
func (e *Engine) pause() {
	e.mu.Unlock()
	synctest.Wait()
	e.mu.Lock()
	// Operations of one task may have come to the gate in any order.
	slices.SortFunc(e.gate, func(a, b *waiting) int {
		if a.task != b.task {
			return cmp.Compare(a.task.ID, b.task.ID)
		}
		return cmp.Compare(a.op.order(), b.op.order())
	})
}

// note adds a decision to the fingerprint of the schedule.
func (e *Engine) note(kind choiceKind, id int, v verdict) {
	for _, n := range [...]uint64{uint64(kind), uint64(id), uint64(v)} {
		e.hash = (e.hash ^ n) * 1099511628211
	}
}

// run is a whole schedule, inside a bubble.
func (e *Engine) run() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.durable = mem.New(time.Now)
	e.open()
	if e.Plan.Mode == OneProcess {
		e.proc = e.newProcess()
	}
	e.calm = true
	e.world.Begin()
	e.calm = false
	for end := e.Step + e.Plan.Steps; e.failure == nil && e.Step < end; {
		e.turn()
	}
	e.calm = true
	if e.failure == nil {
		e.world.Finish()
	}
	e.shutDown()
	e.counts.Steps, e.counts.Tasks, e.counts.Faults = e.Step, e.taskCount, e.faults
	e.counts.Frames, e.counts.Jobs = e.frameCount, e.jobCount
}

// shutDown ends everything that still runs, so that the bubble can end.
func (e *Engine) shutDown() {
	for _, t := range e.tasks {
		t.proc.kill()
	}
	if e.proc != nil {
		e.proc.kill()
	}
	e.killWaiting()
	for _, p := range e.idle {
		p.cancel()
	}
}

// killWaiting stops the operations of dead processes where they are.
func (e *Engine) killWaiting() {
	for {
		e.pause()
		again := false
		for _, w := range slices.Clone(e.gate) {
			if w.task.proc.dead {
				e.let(w, die)
				again = true
			}
		}
		if !again {
			e.reap()
			return
		}
	}
}

// let releases an operation.
func (e *Engine) let(w *waiting, v verdict) {
	e.gate = slices.DeleteFunc(e.gate, func(x *waiting) bool { return x == w })
	w.release <- v
}

// Rest lets the world come to rest, without faults: everything that can happen
// happens, timers and jobs of the time that is given included.
func (e *Engine) Rest(d time.Duration) {
	before := e.calm
	e.calm = true
	defer func() { e.calm = before }()
	end := e.Now().Add(d)
	for limit := e.Step + 20000; e.failure == nil; {
		if e.Step > limit {
			e.Violate("at rest", "the world does not come to rest")
			return
		}
		if e.turn() {
			continue
		}
		now := e.Now()
		if e.failure != nil || !now.Before(end) {
			return
		}
		next := now.Add(min(time.Minute, end.Sub(now)))
		for _, j := range e.jobs {
			if j.at.After(now) && j.at.Before(next) {
				next = j.at
			}
		}
		for _, k := range e.list {
			if len(k.up) > 0 && k.retryAt.After(now) && k.retryAt.Before(next) {
				next = k.retryAt
			}
		}
		e.sweepDue = e.sweepDue || !now.Truncate(sweepEvery).Equal(next.Truncate(sweepEvery))
		e.wait(next.Sub(now))
	}
}

// Troubled says that some handler has been at work for so long, or has met a fault.
func (e *Engine) Troubled(d time.Duration) bool {
	return slices.ContainsFunc(e.tasks, func(t *Task) bool { return t.Faulty || t.Attempt > 1 || e.Now().Sub(t.At) > d })
}

// Soon has something done as soon as the relay runs.
func (e *Engine) Soon(do func()) { e.soon = append(e.soon, do) }

// Pass lets a long time pass at once, and the sweeper run after it.
func (e *Engine) Pass(d time.Duration) {
	e.tracef("%v pass", d)
	e.wait(d)
	e.sweepDue = true
}

// Excused says that the queue has refused a job: what it was to do may never be done.
func (e *Engine) Excused() bool { return e.unsent }

// sweepEvery is how often the sweeper runs while the world comes to rest.
const sweepEvery = 5 * time.Minute
