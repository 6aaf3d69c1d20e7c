package local

import (
	"math"
	"time"
)

// entry is a job in the queue. It is stored by value and is small (80 bytes), because
// there is at least one per open connection.
type entry struct {
	kind    string
	group   string
	body    []byte
	due     int64 // nanoseconds since 1970
	seq     uint64
	attempt int32
}

// dueTime is when a job becomes due: at its time, or now if that has passed. Times beyond
// int64 nanoseconds (the year 2262) become the last possible one.
func dueTime(now, at time.Time) int64 {
	base := now.UnixNano()
	wait := int64(max(0, at.Sub(now)))
	if wait > math.MaxInt64-base {
		return math.MaxInt64
	}
	return base + wait
}

// before orders jobs by the time they become due, then by the order in which they were
// sent.
func (e *entry) before(o *entry) bool {
	if e.due != o.due {
		return e.due < o.due
	}
	return e.seq < o.seq
}

// spareCap is the largest capacity that an empty heap or fifo keeps.
const spareCap = 1024

// delayHeap is a binary heap with the earliest job first. (container/heap would allocate
// for every push, because it passes elements as interfaces.)
type delayHeap []entry

func (h *delayHeap) push(e entry) {
	s := append(*h, e)
	i := len(s) - 1
	for i > 0 {
		parent := (i - 1) / 2
		if !e.before(&s[parent]) {
			break
		}
		s[i] = s[parent]
		i = parent
	}
	s[i] = e
	*h = s
}

func (h *delayHeap) pop() entry {
	s := *h
	first, last := s[0], s[len(s)-1]
	s[len(s)-1] = entry{}
	s = s[:len(s)-1]
	if len(s) > 0 {
		s.down(last)
	} else if cap(s) > spareCap {
		s = nil
	}
	*h = s
	return first
}

// down puts e at the root and lets it sink to its place.
func (h delayHeap) down(e entry) {
	i := 0
	for {
		child := 2*i + 1
		if child >= len(h) {
			break
		}
		if right := child + 1; right < len(h) && h[right].before(&h[child]) {
			child = right
		}
		if !h[child].before(&e) {
			break
		}
		h[i] = h[child]
		i = child
	}
	h[i] = e
}

// fifo is a queue of values in one slice.
type fifo[T any] struct {
	items []T
	head  int
}

func (f *fifo[T]) len() int { return len(f.items) - f.head }

func (f *fifo[T]) push(v T) {
	// Reuse the space of popped values before the slice grows, if it is at least half:
	// then each push moves at most one value on average.
	if len(f.items) == cap(f.items) && f.head > len(f.items)/2 {
		n := copy(f.items, f.items[f.head:])
		clear(f.items[n:])
		f.items, f.head = f.items[:n], 0
	}
	f.items = append(f.items, v)
}

func (f *fifo[T]) pop() T {
	var zero T
	v := f.items[f.head]
	f.items[f.head] = zero
	f.head++
	if f.head == len(f.items) {
		f.items, f.head = f.items[:0], 0
		if cap(f.items) > spareCap {
			f.items = nil
		}
	}
	return v
}
