package sim

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	"blindpost/shared/gateway"
	"blindpost/shared/push"
	"blindpost/shared/queue"
)

func itoa(n int) string { return strconv.Itoa(n) }

// job is what waits in the queue. It stays there until a run of it has ended
// well, and sometimes longer.
type job struct {
	id int
	queue.Job
	at      time.Time // not before, by the relay's clock
	busy    *task
	attempt int
	again   bool // it runs once more although it has ended well
	// behind is the frame of its connection that comes before it, in a queue that
	// carries both; 0 until it is in that queue.
	behind int
}

// maxAttempts is how often a job is tried. The plan has fewer faults, so a job
// that is put aside is one that fails for a reason of its own.
const maxAttempts = 20

func (j *job) String() string { return fmt.Sprintf("j%d(%s)", j.id, j.Kind) }

type queueOfTask struct{}

var _ queue.Queue = queueOfTask{}

func (queueOfTask) Send(ctx context.Context, j queue.Job) error {
	t := taskOf(ctx)
	s := t.sim
	return t.step(op{kind: opSend, name: "send", note: j.Kind}, func() error {
		if m := s.mutation; m != nil && m.send != nil && !m.send(s, j) {
			return nil
		}
		s.jobCount++
		j.Body = bytes.Clone(j.Body)
		s.jobs = append(s.jobs, &job{id: s.jobCount, Job: j, at: j.At})
		return nil
	})
}

// due reports whether a job may run: its time has come and nothing of its group
// is before it.
func (s *sim) due(i int) bool {
	j := s.jobs[i]
	if j.busy != nil || j.at.After(s.now()) {
		return false
	}
	if j.Group == "" {
		return true
	}
	if s.afterFrames(j) {
		return false
	}
	for _, before := range s.jobs[:i] {
		if before.Group == j.Group && !before.at.After(s.now()) {
			return false
		}
	}
	return true
}

// afterFrames reports whether frames come before a job that belongs to a connection.
func (s *sim) afterFrames(j *job) bool {
	k := s.socks[gateway.Conn(j.Group)]
	if s.plan.mode == oneProcess || s.plan.loose || k == nil {
		return false
	}
	if j.behind == 0 {
		j.behind = s.frames
	}
	return slices.ContainsFunc(k.up, func(e *upEvent) bool { return e.id <= j.behind })
}

func (s *sim) runJob(j *job) {
	j.attempt++
	p := s.handlerProcess()
	run := j.Job
	run.Attempt = j.attempt
	t := s.task("job", p, nil)
	j.busy, t.job = t, j
	s.tracef("%v begins", t)
	t.begin(func(ctx context.Context) (any, error) {
		return nil, p.inst.relay.Job(ctx, run)
	})
}

// jobEnded is called when a run of a job is over.
func (s *sim) jobEnded(t *task) {
	j := t.job
	j.busy = nil
	if t.err == nil && !t.killed {
		if !j.again && s.fault(s.plan.faults.twice) {
			s.tracef("%v will run twice", j)
			j.again = true
			j.at = s.now().Add(time.Duration(s.rng.IntN(60)) * time.Second)
			return
		}
	} else if j.attempt < maxAttempts {
		j.at = s.now().Add(time.Duration(j.attempt) * time.Second)
		return
	} else {
		s.violate("jobs", "%v fails again and again: %v", j, t.err)
	}
	for i := range s.jobs {
		if s.jobs[i] == j {
			s.jobs = append(s.jobs[:i], s.jobs[i+1:]...)
			return
		}
	}
}

type pusherOfTask struct{}

var _ push.Sender = pusherOfTask{}

func (pusherOfTask) Send(ctx context.Context, n push.Notification) error {
	t := taskOf(ctx)
	return t.step(op{kind: opPush, name: "push"}, func() error {
		t.sim.observePush(t, n)
		if t.sim.fault(t.sim.plan.faults.refuse) {
			return push.ErrTokenGone
		}
		return nil
	})
}
