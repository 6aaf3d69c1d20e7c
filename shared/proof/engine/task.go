package engine

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"time"

	"blindpost/shared/gateway"
	"blindpost/shared/table"
)

// ErrInjected is the error of an operation that the plan lets fail.
var ErrInjected = errors.New("simulated failure")

// Task is one run of one handler.
type Task struct {
	engine *Engine
	ID     int
	What   string // connect, frame, confirmed, disconnect, job, sweep, call, recover
	Socket *Socket
	// Kind is that of a job, or the name of a call.
	Kind string
	// Data is a frame.
	Data []byte
	// Start is the step at which it began, At the time.
	Start int
	At    time.Time
	// Attempt counts the runs for one event.
	Attempt int

	Killed bool // ended by a crash, not by its own return
	Err    error
	Result any
	// Faulty says that one of its operations was made to fail.
	Faulty bool

	proc  *process
	ev    *event
	job   *job
	ended func(*Task)
	ctx   context.Context
	done  bool
}

// Redo says that an event whose handler was stopped or has failed comes again.
func (t *Task) Redo() bool { return t.engine.Plan.Mode == Functions }

func (t *Task) String() string {
	s := fmt.Sprintf("t%d %s", t.ID, t.What)
	if t.Kind != "" {
		s += " " + t.Kind
	}
	if t.Socket != nil {
		s += " " + t.Socket.String()
	}
	return s
}

type verdict uint8

const (
	run       verdict = iota + 1
	fail              // answer ErrInjected, do nothing
	doAndFail         // do it and answer ErrInjected
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
	msg  gateway.Message
	note string
}

// order tells operations apart that one task has waiting at the same time.
func (o *op) order() string {
	return fmt.Sprintf("%d %s %s %v %q %s", o.kind, o.name, o.conn, o.key, o.msg.Data, o.note)
}

// waiting is an operation at the gate.
type waiting struct {
	task    *Task
	op      op
	ctx     context.Context
	release chan verdict
	frozen  int // not to be picked before this step
}

type taskKey struct{}

func taskOf(ctx context.Context) *Task {
	t, ok := ctx.Value(taskKey{}).(*Task)
	if !ok {
		panic("operation outside a task")
	}
	return t
}

// TaskOf is the task that does an operation with this context.
func TaskOf(ctx context.Context) *Task { return taskOf(ctx) }

// step waits until the scheduler lets an operation happen.
func (t *Task) step(ctx context.Context, o op, do func() error) error {
	e := t.engine
	w := &waiting{task: t, op: o, ctx: ctx, release: make(chan verdict)}
	e.mu.Lock()
	dead := t.proc.dead
	if !dead { // otherwise nobody would release it
		e.gate = append(e.gate, w)
	}
	e.mu.Unlock()
	if dead {
		runtime.Goexit()
	}
	v := <-w.release
	if v == die {
		runtime.Goexit()
	}
	var err error
	if v != fail {
		err = w.perform(v, do)
	}
	if v == doAndDie {
		runtime.Goexit()
	}
	if err == nil && (v == fail || v == doAndFail) {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return ErrInjected
	}
	return err
}

// perform does an operation. The scheduler is waiting meanwhile.
func (w *waiting) perform(v verdict, do func() error) error {
	e := w.task.engine
	e.mu.Lock()
	defer e.mu.Unlock()
	e.slow = v == vanish
	err := do()
	e.traceOp(w, v, err)
	return err
}

// newTask makes the task that is to run a handler; begin starts it.
func (e *Engine) newTask(what string, proc *process, k *Socket) *Task {
	e.taskCount++
	t := &Task{engine: e, ID: e.taskCount, What: what, proc: proc, Socket: k, Start: e.Step, At: e.Now(), Attempt: 1}
	t.ctx = context.WithValue(proc.ctx, taskKey{}, t)
	e.tasks = append(e.tasks, t)
	if k != nil && what != "job" {
		k.busy = t
	}
	return t
}

// begin starts the handler. From here on the task must not be touched before the
// scheduler has waited for it.
func (t *Task) begin(fn func(ctx context.Context) (any, error)) {
	t.engine.tracef("%v begins", t)
	go func() {
		ended := false
		var result any
		var err error
		defer func() {
			t.engine.mu.Lock()
			defer t.engine.mu.Unlock()
			t.Result, t.Err, t.Killed, t.done = result, err, !ended, true
		}()
		result, err = fn(t.ctx)
		ended = true
	}()
}
