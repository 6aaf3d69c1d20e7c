package sim

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"time"

	"blindpost/shared/gateway"
	"blindpost/shared/table"
)

// errInjected is the error of an operation that the plan lets fail.
var errInjected = errors.New("simulated failure")

// task is one run of one handler. It does nothing but between two releases by
// the scheduler, so at any moment at most one task has an effect.
type task struct {
	sim  *sim
	id   int
	what string // connect, frame, confirmed, disconnect, job, sweep
	proc *process
	sock *socket
	ev   *upEvent // frame, confirmed
	job  *job

	ctx     context.Context
	release chan verdict
	parked  bool
	op      op
	frozen  int // not to be picked before this step

	done   bool
	killed bool // ended by a crash, not by its own return
	err    error
	result any

	facts
}

// facts are what the checks want to know about a task.
type facts struct {
	startedAt time.Time // by the relay's clock
	startStep int

	stored, posted    bool // what happened to the message of the frame
	offline, refused  bool // PeerOffline, Error was answered
	closedOwn         bool
	stale             bool // a newer connection of the sender had spoken
	sawFull, sawUnfit bool // at some step the recipient's lane was full; it could not be sent to
	sawOffline        bool
	sawUnauthorised   bool
	sawClosedWindow   bool
	sawNoGroup        bool
	joined            bool // the record of its connection has a member, when it was last read

	touched   []*peer                 // whose presence this task has changed
	laneRead  map[string]time.Time    // when a lane was last read
	pushRead  map[table.Key]time.Time // when a member was last read
	pushToken string                  // of the member that a push job has read
}

type verdict uint8

const (
	run       verdict = iota + 1
	fail              // answer errInjected, do nothing
	doAndFail         // do it and answer errInjected
	die               // stop here
	doAndDie          // do it and stop
	vanish            // of a post: the front gives up the connection
)

func (v verdict) String() string {
	return [...]string{"", "ok", "FAILS", "DONE BUT REPORTED AS FAILED", "CRASH BEFORE", "CRASH AFTER", "SLOW READER"}[v]
}

// opKind is what a task is about to do.
type opKind uint8

const (
	opRead opKind = iota + 1
	opWrite
	opPost
	opClose
	opStat
	opSend
	opPush
)

// op is an operation that waits for its release.
type op struct {
	kind opKind
	name string
	key  table.Key
	ops  []table.Op
	conn gateway.Conn
	data []byte
	note string
}

type taskKey struct{}

func taskOf(ctx context.Context) *task {
	t, ok := ctx.Value(taskKey{}).(*task)
	if !ok {
		panic("operation outside a task")
	}
	return t
}

// step waits until the scheduler lets the operation happen.
func (t *task) step(o op, do func() error) error {
	s := t.sim
	s.mu.Lock()
	dead, quick := t.proc.dead, s.quick
	if !dead { // otherwise nobody would release it
		t.op, t.parked = o, !quick
	}
	s.mu.Unlock()
	if dead {
		runtime.Goexit()
	}
	if quick {
		return t.perform(run, do)
	}
	v := <-t.release
	switch v {
	case fail:
		return errInjected
	case die:
		runtime.Goexit()
	case doAndFail:
		if err := t.perform(v, do); err != nil {
			return err
		}
		return errInjected
	case doAndDie:
		_ = t.perform(v, do)
		runtime.Goexit()
	}
	return t.perform(v, do)
}

// perform does an operation. The scheduler is waiting meanwhile.
func (t *task) perform(v verdict, do func() error) error {
	t.sim.mu.Lock()
	defer t.sim.mu.Unlock()
	t.sim.slowPost = v == vanish
	t.sim.watch(t)
	err := do()
	t.sim.watch(t)
	t.sim.traceOp(t, v, err)
	return err
}

// task makes the task that is to run a handler; begin starts it.
func (s *sim) task(what string, proc *process, sock *socket) *task {
	s.taskCount++
	t := &task{
		sim: s, id: s.taskCount, what: what, proc: proc, sock: sock,
		release: make(chan verdict),
		facts:   facts{startedAt: s.now(), startStep: s.steps},
	}
	t.ctx = context.WithValue(proc.ctx, taskKey{}, t)
	s.tasks = append(s.tasks, t)
	if sock != nil && what != "job" {
		sock.busy = t
	}
	return t
}

// begin starts the handler. From here on the task must not be touched before the
// scheduler has waited for it.
func (t *task) begin(fn func(ctx context.Context) (any, error)) {
	go func() {
		ended := false
		var result any
		var err error
		defer func() {
			t.sim.mu.Lock()
			defer t.sim.mu.Unlock()
			t.result, t.err, t.killed, t.done = result, err, !ended, true
		}()
		result, err = fn(t.ctx)
		ended = true
	}()
}

func (t *task) String() string {
	where := ""
	if t.sock != nil {
		where = " " + t.sock.String()
	}
	if t.ev != nil && t.ev.msg != nil {
		where += " " + t.ev.msg.String()
	}
	if t.job != nil {
		where += " " + t.job.String()
	}
	return fmt.Sprintf("t%d %s%s", t.id, t.what, where)
}
