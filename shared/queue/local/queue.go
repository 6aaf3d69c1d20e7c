// Package local is the job queue of the single binary: it keeps its jobs in
// the memory of the process.
//
// It keeps the contract of package queue while the process lives; waiting jobs are lost
// when it ends. The sender of a job must therefore be able to find its work again at
// start.
//
// A delayed job costs an entry in a heap, about 100 bytes plus its body; one timer serves
// all. Workers are goroutines that start when a job can run and end when there is none. A
// group whose job hangs occupies one worker and nothing else.
//
// While a job of a group waits for its next try, the jobs behind it wait too: order comes
// before progress, up to the last try. Then the job is put aside and the next one runs.
//
// Time: a job waits until Options.Now has reached its At, even if that clock is set back.
// When the clock is set forward or the machine was suspended, the jobs that became due
// run within a minute.
package local

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"sync"
	"time"

	"blindpost/shared/base/backoff"
	"blindpost/shared/queue"
)

// Defaults of Options.
const (
	DefaultWorkers     = 64
	DefaultMaxAttempts = 6
)

// maxWait is the longest sleep of the timer. The timer uses the monotonic clock, which
// does not notice that the wall clock was set or (on Linux) that the machine was
// suspended. Waking once a minute bounds how late a job runs after that.
const maxWait = time.Minute

// ErrClosed is the answer of Send after Close was called.
var ErrClosed = errors.New("queue is closed")

// Observer receives what the queue does, for metrics. The queue calls its methods from
// many goroutines at once, outside its lock; they must not block.
type Observer interface {
	// JobRun reports one attempt (counting from 1), how long it took and
	// whether it failed.
	JobRun(kind string, attempt int, took time.Duration, failed bool)
	// JobPanic reports that the handler panicked; JobRun follows.
	JobPanic(kind string)
	// JobDead reports that a job failed its last attempt and was put aside.
	JobDead(kind string)
}

// Options configure a Queue. Handler is required.
type Options struct {
	// Handler runs the jobs. Its context ends when Close gives up waiting.
	Handler queue.Handler
	// Workers is the largest number of jobs that run at once; 0 means
	// DefaultWorkers.
	Workers int
	// MaxAttempts is how often a job is tried before it is put aside; 0 means
	// DefaultMaxAttempts.
	MaxAttempts int
	// Backoff is how long to wait after the given failed attempt, counting
	// from 1; the default doubles from half a second to a minute.
	Backoff func(attempt int) time.Duration
	// Now is the clock of Job.At; nil means time.Now.
	Now func() time.Time
	// Log gets the kinds of failed jobs, never their bodies; nil logs nothing.
	Log *slog.Logger
	// Observer may be nil.
	Observer Observer
}

// Stats is what the queue holds at one moment.
type Stats struct {
	Delayed int // jobs whose time has not come, retries included
	Waiting int // due jobs that wait for a worker or for their group
	Running int // jobs in a handler
	Workers int // goroutines
	Dead    uint64
}

// Queue is an in-process queue.Queue. All methods are safe for concurrent use.
type Queue struct {
	// Set once.
	handler queue.Handler
	max     int // workers
	tries   int32
	backoff func(int) time.Duration
	now     func() time.Time
	log     *slog.Logger
	watch   Observer
	ctx     context.Context // of the handlers
	cancel  context.CancelFunc
	drained chan struct{} // closed when nothing is left after Close

	mu       sync.Mutex
	seq      uint64
	delayed  delayHeap
	runnable fifo[entry]
	// lanes has a key for every group with a job that is running, runnable or between two
	// tries; the value holds the jobs behind it, nil for none.
	lanes    map[string]*fifo[entry]
	behind   int // jobs in all lanes
	workers  int // goroutines
	busy     int // of them in a handler
	dead     uint64
	closed   bool
	finished bool // drained is closed
	timer    *time.Timer
	armedFor int64 // due time that the timer was set for, idle if none
}

// idle is the value of armedFor when the timer is not set.
const idle = math.MinInt64

var _ queue.Queue = (*Queue)(nil)

// New makes a queue. It has no goroutines until there is a job to run.
func New(o Options) *Queue {
	if o.Handler == nil {
		panic("local.New: no handler")
	}
	q := &Queue{
		handler:  o.Handler,
		max:      o.Workers,
		tries:    int32(min(o.MaxAttempts, math.MaxInt32)),
		backoff:  o.Backoff,
		now:      o.Now,
		log:      o.Log,
		watch:    o.Observer,
		drained:  make(chan struct{}),
		lanes:    map[string]*fifo[entry]{},
		armedFor: idle,
	}
	q.ctx, q.cancel = context.WithCancel(context.Background())
	if q.max <= 0 {
		q.max = DefaultWorkers
	}
	if q.tries <= 0 {
		q.tries = DefaultMaxAttempts
	}
	if q.backoff == nil {
		q.backoff = func(attempt int) time.Duration { return backoff.After(attempt, 500*time.Millisecond, time.Minute) }
	}
	if q.now == nil {
		q.now = time.Now
	}
	if q.log == nil {
		q.log = slog.New(slog.DiscardHandler)
	}
	if q.watch == nil {
		q.watch = NopObserver{}
	}
	return q
}

// Send hands over a job. It never waits. It answers ErrClosed after Close was
// called, also to a handler that is still running.
func (q *Queue) Send(ctx context.Context, j queue.Job) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("failed to send a job of kind %s: %w", j.Kind, err)
	}
	e := entry{kind: j.Kind, group: j.Group, body: bytes.Clone(j.Body), attempt: 1}
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return fmt.Errorf("failed to send a job of kind %s: %w", j.Kind, ErrClosed)
	}
	now := q.now()
	// Jobs that are due by now go first, even if the timer has not fired yet.
	q.promote(now)
	e.due = dueTime(now, j.At)
	q.enter(now, e)
	q.schedule(now)
	return nil
}

// Stats returns what the queue holds.
func (q *Queue) Stats() Stats {
	q.mu.Lock()
	defer q.mu.Unlock()
	return Stats{
		Delayed: len(q.delayed),
		Waiting: q.runnable.len() + q.behind,
		Running: q.busy,
		Workers: q.workers,
		Dead:    q.dead,
	}
}

// Close ends the queue: it accepts no more jobs, drops delayed jobs (including retries),
// runs the due ones, and waits for them. If ctx ends first, Close cancels the context of
// the handlers, drops the jobs that have not started and returns an error at once. Later
// calls wait in the same way. A handler must not call Close, as it would wait for itself.
func (q *Queue) Close(ctx context.Context) error {
	q.shut()
	select {
	case <-q.drained:
		return nil
	default:
	}
	select {
	case <-q.drained:
		return nil
	case <-ctx.Done():
		n := q.abandon()
		return fmt.Errorf("failed to finish %d jobs: %w", n, ctx.Err())
	}
}

// shut stops accepting jobs and drops the delayed ones.
func (q *Queue) shut() {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return
	}
	now := q.now()
	q.promote(now)
	q.closed = true
	future := q.delayed
	q.delayed = nil
	for _, e := range future {
		if e.attempt > 1 {
			q.release(e.group)
		}
	}
	if len(future) > 0 {
		q.log.Debug("queue closed before the time of some jobs", "dropped", len(future))
	}
	q.schedule(now)
	q.checkDrained()
}

// abandon drops all jobs that are not running and returns the number of unfinished jobs.
func (q *Queue) abandon() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	n := q.runnable.len() + q.behind + q.busy
	q.runnable = fifo[entry]{}
	clear(q.lanes)
	q.behind = 0
	q.cancel()
	q.checkDrained()
	return n
}

// checkDrained wakes Close when nothing is left.
func (q *Queue) checkDrained() {
	if q.closed && !q.finished && q.workers == 0 && q.runnable.len() == 0 {
		q.finished = true
		q.cancel()
		close(q.drained)
	}
}

// NopObserver ignores everything.
type NopObserver struct{}

func (NopObserver) JobRun(string, int, time.Duration, bool) {}
func (NopObserver) JobPanic(string)                         {}
func (NopObserver) JobDead(string)                          {}
