package skald

import (
	"context"
	"sync"
)

// queueBytes bounds the message bytes that wait in a queue.
const queueBytes = 8 << 20

// queueWider is by how much the bounds grow while the relay owes an answer. If
// that is not enough, the request times out and the connection with it.
const queueWider = 8

// eventQueue holds events between the connection and the user's function. It
// never blocks who puts something in; who reads from the relay asks waitRoom
// before it reads. So a frame that was read is always handled, and a slow user
// only makes the relay wait.
type eventQueue struct {
	limit int // events

	mu    sync.Mutex
	items []queuedEvent
	bytes int
	// requests counts calls that wait for an answer of the relay. While there
	// are any, the bound is wider: the user's function may be the one that
	// waits, and the answer comes behind what fills the queue.
	requests int
	// stalls counts how often a reader had to wait.
	stalls  int
	closed  bool
	changed chan struct{} // closed and replaced when the above change
}

type queuedEvent struct {
	event Event
	bytes int
}

// barrier is no event: it is closed when all that was put in before it has been
// handed out.
type barrier chan struct{}

func (barrier) event() {}

func newEventQueue(limit int) *eventQueue {
	return &eventQueue{limit: limit, changed: make(chan struct{})}
}

func (q *eventQueue) notifyLocked() {
	close(q.changed)
	q.changed = make(chan struct{})
}

func (q *eventQueue) push(e Event, bytes int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.items = append(q.items, queuedEvent{e, bytes})
	q.bytes += bytes
	q.notifyLocked()
}

// close lets pop end when all is handed out.
func (q *eventQueue) close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = true
	q.notifyLocked()
}

// pop waits for the next event. It reports false after close, at the end.
func (q *eventQueue) pop() (Event, bool) {
	for {
		q.mu.Lock()
		if len(q.items) > 0 {
			next := q.items[0]
			q.items[0] = queuedEvent{}
			q.items = q.items[1:]
			q.bytes -= next.bytes
			q.notifyLocked()
			q.mu.Unlock()
			return next.event, true
		}
		closed, changed := q.closed, q.changed
		q.mu.Unlock()
		if closed {
			return nil, false
		}
		<-changed
	}
}

// handOut gives events to f until close.
func (q *eventQueue) handOut(f func(Event)) {
	for e, ok := q.pop(); ok; e, ok = q.pop() {
		if b, ok := e.(barrier); ok {
			close(b)
			continue
		}
		f(e)
	}
}

func (q *eventQueue) fullLocked() bool {
	wider := 1
	if q.requests > 0 {
		wider = queueWider
	}
	return len(q.items) >= wider*q.limit || q.bytes >= wider*queueBytes
}

// waitRoom waits until something more may be read.
func (q *eventQueue) waitRoom(ctx context.Context) error {
	for first := true; ; first = false {
		q.mu.Lock()
		full, changed := q.fullLocked(), q.changed
		if full && first {
			q.stalls++
		}
		q.mu.Unlock()
		if !full {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// expect counts a call that waits for the relay (+1), or no longer does (-1).
func (q *eventQueue) expect(n int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.requests += n
	q.notifyLocked()
}

// stalled returns how often reading had to wait, and whether it would now.
func (q *eventQueue) stalled() (times int, now bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.stalls, q.fullLocked()
}
