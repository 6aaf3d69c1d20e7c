package skald

import "context"

// queueBytes bounds the message bytes that wait in a queue.
const queueBytes = 8 << 20

// queueWider is the factor by which the bounds grow while a request waits for its answer.
// If that is not enough, the request times out and the connection ends.
const queueWider = 8

// eventQueue holds events between the connection and OnEvent. push never blocks; the
// reader of the connection calls waitRoom before each read. So a frame that was read is
// always handled, and a slow OnEvent only makes the relay wait.
type eventQueue struct {
	limit int // events

	mu    monitor // notified when what follows changes
	items []queuedEvent
	bytes int
	// requests counts calls that wait for an answer of the relay. While there are any, the
	// bounds are wider: OnEvent may be the caller that waits, and the answer comes behind
	// the frames that fill the queue.
	requests int
	// stalls counts how often a reader had to wait.
	stalls int
	closed bool
}

type queuedEvent struct {
	event Event
	bytes int
}

// barrier is no real event: it is closed when all earlier events have been delivered.
type barrier chan struct{}

func (barrier) event() {}

func (q *eventQueue) push(e Event, bytes int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.items = append(q.items, queuedEvent{e, bytes})
	q.bytes += bytes
	q.mu.notify()
}

// close makes pop end after the last event.
func (q *eventQueue) close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = true
	q.mu.notify()
}

// pop waits for the next event. It reports false after close, at the end.
func (q *eventQueue) pop() (e Event, ok bool) {
	_ = q.mu.await(context.Background(), func() bool {
		if len(q.items) == 0 {
			return q.closed
		}
		next := q.items[0]
		q.items[0] = queuedEvent{}
		q.items = q.items[1:]
		q.bytes -= next.bytes
		q.mu.notify()
		e, ok = next.event, true
		return true
	})
	return e, ok
}

// dispatch calls f with each event until close.
func (q *eventQueue) dispatch(f func(Event)) {
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

// waitRoom waits until the queue has room.
func (q *eventQueue) waitRoom(ctx context.Context) error {
	first := true
	return q.mu.await(ctx, func() bool {
		full := q.fullLocked()
		if full && first {
			q.stalls++
		}
		first = false
		return !full
	})
}

// addRequests counts a call that begins (+1) or ends (-1) to wait for the relay.
func (q *eventQueue) addRequests(n int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.requests += n
	q.mu.notify()
}

// stalled returns how often the reader had to wait, and whether it must wait now.
func (q *eventQueue) stalled() (times int, now bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.stalls, q.fullLocked()
}
