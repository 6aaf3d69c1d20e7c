package local

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"time"

	"blindpost/shared/queue"
)

// enter gives a job its place: in the heap if its time has not come, else
// among the due ones.
func (q *Queue) enter(now time.Time, e entry) {
	q.seq++
	e.seq = q.seq
	if e.due > now.UnixNano() {
		q.delayed.push(e)
		return
	}
	q.admit(e)
}

// admit takes a job that is due: to the workers, or into its lane if its group
// is busy. A repeated job of a group still holds its lane.
func (q *Queue) admit(e entry) {
	if e.group != "" && e.attempt == 1 {
		if lane, busy := q.lanes[e.group]; busy {
			if lane == nil {
				lane = new(fifo[entry])
				q.lanes[e.group] = lane
			}
			lane.push(e)
			q.behind++
			return
		}
		q.lanes[e.group] = nil
	}
	q.runnable.push(e)
}

// release hands the lane of a group to the next job in it.
func (q *Queue) release(group string) {
	lane, busy := q.lanes[group]
	switch {
	case !busy: // no group, or abandoned
	case lane == nil || lane.len() == 0:
		delete(q.lanes, group)
	default:
		q.behind--
		q.runnable.push(lane.pop())
	}
}

// promote admits the jobs that have become due.
func (q *Queue) promote(now time.Time) {
	for len(q.delayed) > 0 && q.delayed[0].due <= now.UnixNano() {
		q.admit(q.delayed.pop())
	}
}

// schedule sees to it that there are workers for the jobs that can run, and a
// timer for the next one that cannot yet.
func (q *Queue) schedule(now time.Time) {
	for want := min(q.max, q.busy+q.runnable.len()); q.workers < want; q.workers++ {
		go q.work()
	}
	if len(q.delayed) == 0 {
		if q.armedFor != idle {
			q.timer.Stop()
			q.armedFor = idle
		}
		return
	}
	due := q.delayed[0].due
	if due == q.armedFor {
		return
	}
	q.armedFor = due
	wait := min(time.Duration(due-now.UnixNano()), maxWait)
	if q.timer == nil {
		q.timer = time.AfterFunc(wait, q.tick)
	} else {
		q.timer.Reset(wait)
	}
}

// tick is what the timer calls.
func (q *Queue) tick() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.armedFor = idle
	now := q.now()
	q.promote(now)
	q.schedule(now)
}

// work is a worker: it runs jobs until there are none.
func (q *Queue) work() {
	retired := false
	defer func() {
		if !retired { // the handler has ended the goroutine with runtime.Goexit
			q.mu.Lock()
			defer q.mu.Unlock()
			q.workers--
			q.schedule(q.now())
			q.checkDrained()
		}
	}()
	for {
		e, ok := q.next()
		if !ok {
			retired = true
			return
		}
		q.attempt(e)
	}
}

// next takes a job to run, or retires the worker.
func (q *Queue) next() (entry, bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.runnable.len() == 0 {
		q.workers--
		q.checkDrained()
		return entry{}, false
	}
	q.busy++
	return q.runnable.pop(), true
}

// attempt runs the handler once. However the handler ends, the job is
// finished: a panic or a Goexit is a failed attempt.
func (q *Queue) attempt(e entry) {
	start := time.Now()
	failed, ended := true, false
	defer func() {
		if !ended {
			q.blame(e, recover())
		}
		q.watch.JobRun(e.kind, int(e.attempt), time.Since(start), failed)
		q.finish(e, failed)
	}()
	err := q.handler(q.ctx, queue.Job{
		Kind:    e.kind,
		Group:   e.group,
		Body:    e.body,
		At:      time.Unix(0, e.due),
		Attempt: int(e.attempt),
	})
	failed, ended = err != nil, true
}

// blame reports a handler that did not return. The value of a panic may hold
// anything, so only what the runtime itself says is logged.
func (q *Queue) blame(e entry, cause any) {
	if cause == nil {
		return // Goexit
	}
	q.watch.JobPanic(e.kind)
	text := fmt.Sprintf("%T", cause)
	if r, ok := cause.(runtime.Error); ok {
		text = r.Error()
	}
	q.log.Error("job panicked", "kind", e.kind, "attempt", e.attempt, "panic", text, "stack", string(debug.Stack()))
}

// finish decides what becomes of a job after an attempt.
func (q *Queue) finish(e entry, failed bool) {
	switch {
	case !failed:
		q.settle(e, false)
	case e.attempt >= q.tries:
		q.watch.JobDead(e.kind)
		q.log.Error("job put aside after its last attempt", "kind", e.kind, "attempts", e.attempt)
		q.settle(e, true)
	default:
		delay := max(0, q.backoff(int(e.attempt)))
		if q.repeat(e, delay) {
			q.log.Debug("job failed", "kind", e.kind, "attempt", e.attempt, "again_in", delay)
		} else {
			q.log.Info("queue closed before the next attempt of a job", "kind", e.kind, "attempts", e.attempt)
		}
	}
}

// settle is for a job that needs no other attempt.
func (q *Queue) settle(e entry, dead bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.busy--
	if dead {
		q.dead++
	}
	q.release(e.group)
	q.schedule(q.now())
}

// repeat enters a job for another attempt, unless the queue is closed.
func (q *Queue) repeat(e entry, delay time.Duration) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.busy--
	now := q.now()
	again := !q.closed
	if again {
		e.attempt++
		e.due = dueTime(now, now.Add(delay))
		q.enter(now, e)
	} else {
		q.release(e.group)
	}
	q.schedule(now)
	return again
}
