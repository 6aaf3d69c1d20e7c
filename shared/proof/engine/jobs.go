package engine

import (
	"bytes"
	"context"
	"slices"
	"time"

	"blindpost/shared/gateway"
	"blindpost/shared/push"
	"blindpost/shared/queue"
)

// job is what waits in the queue. It stays there until a run of it has ended well, and
// sometimes longer.
type job struct {
	queue.Job
	at      time.Time
	busy    *Task
	attempt int
	again   bool // it runs once more although it has ended well
	// behind is the last frame that comes before it, in a queue that carries both.
	behind int
}

type queueOfTask struct{}

var _ queue.Queue = queueOfTask{}

func (queueOfTask) Send(ctx context.Context, j queue.Job) error {
	t := taskOf(ctx)
	e := t.engine
	return t.step(ctx, op{kind: opSend, name: "send", note: j.Kind}, func() error {
		if m := e.mutation; m != nil && m.Send != nil && !m.Send(e, j) {
			return nil
		}
		e.jobCount++
		j.Body = bytes.Clone(j.Body)
		e.jobs = append(e.jobs, &job{Job: j, at: j.At})
		return nil
	})
}

// due reports whether a job may run: its time has come and nothing of its group is
// before it.
func (e *Engine) due(i int) bool {
	j := e.jobs[i]
	if j.busy != nil || j.at.After(e.Now()) {
		return false
	}
	if j.Group == "" {
		return true
	}
	if e.afterFrames(j) {
		return false
	}
	for _, before := range e.jobs[:i] {
		if before.Group == j.Group && !before.at.After(e.Now()) {
			return false
		}
	}
	return true
}

// afterFrames reports whether frames come before a job that belongs to a connection.
func (e *Engine) afterFrames(j *job) bool {
	k := e.socks[gateway.Conn(j.Group)]
	if e.Plan.Mode == OneProcess || e.Plan.Loose || k == nil {
		return false
	}
	if j.behind == 0 {
		j.behind = e.frameCount
	}
	return slices.ContainsFunc(k.up, func(ev *event) bool { return ev.id <= j.behind })
}

func (e *Engine) runJob(j *job) {
	j.attempt++
	p := e.handlerProcess()
	run := j.Job
	run.Attempt = j.attempt
	t := e.newTask("job", p, nil)
	t.Kind, t.Attempt, t.job = j.Kind, j.attempt, j
	j.busy = t
	t.begin(func(ctx context.Context) (any, error) { return nil, p.relay.Job(ctx, run) })
}

// jobEnded is called when a run of a job is over.
func (e *Engine) jobEnded(t *Task, failed bool) {
	j := t.job
	j.busy = nil
	switch {
	case !failed && !j.again && e.fault(e.Plan.Faults.Twice):
		e.tracef("%v runs again", t)
		j.again = true
		j.at = e.Now().Add(time.Duration(e.Rand.IntN(60)) * time.Second)
		return
	case failed && j.attempt < maxAttempts:
		j.at = e.Now().Add(time.Duration(j.attempt) * time.Second)
		return
	case failed:
		e.Violate("jobs", "%v fails again and again: %v", t, t.Err)
	}
	e.jobs = slices.DeleteFunc(e.jobs, func(x *job) bool { return x == j })
}

type pusherOfTask struct{}

var _ push.Sender = pusherOfTask{}

func (pusherOfTask) Send(ctx context.Context, n push.Notification) error {
	t := taskOf(ctx)
	return t.step(ctx, op{kind: opPush, name: "push"}, func() error {
		t.engine.world.Pushed(t, n)
		if t.engine.fault(t.engine.Plan.Faults.Refuse) {
			return push.ErrTokenGone
		}
		return nil
	})
}
