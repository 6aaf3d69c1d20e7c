package local

import (
	"time"

	"blindpost/shared/base/panics"
	"blindpost/shared/queue"
)

// enter adds a job: to the heap if it is not due yet, otherwise to the due ones.
func (q *Queue) enter(now time.Time, e entry) {
	q.seq++
	e.seq = q.seq
	if e.due > now.UnixNano() {
		q.delayed.push(e)
		return
	}
	q.admit(e)
}

// admit gives a due job to the workers, or puts it into its lane if its group is busy. A
// retried job of a group still holds its lane.
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

// release gives the lane of a group to the next job in it.
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

// schedule starts workers for the jobs that can run, and sets the timer for the next
// delayed one.
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

// tick is the function of the timer.
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

// attempt runs the handler once. A panic or a Goexit is a failed attempt.
func (q *Queue) attempt(e entry) {
	start := time.Now()
	failed, ended := true, false
	defer func() {
		if !ended {
			if cause := recover(); cause != nil { // nil after a Goexit
				q.watch.JobPanic(e.kind)
				panics.Log(q.ctx, q.log, "job panicked", cause, "kind", e.kind, "attempt", e.attempt)
			}
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

// finish ends an attempt: the job is done, dead, or retried.
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

// settle ends a job without another attempt.
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

// repeat adds a job for another attempt, unless the queue is closed.
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
