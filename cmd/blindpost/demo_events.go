package main

import (
	"context"
	"fmt"
	"slices"
	"sync"
)

// demoEvents are the events of a peer that were not looked at yet, in order.
type demoEvents struct {
	mu      sync.Mutex
	waiting []any
	changed chan struct{} // closed and replaced with each event
}

func newDemoEvents() *demoEvents { return &demoEvents{changed: make(chan struct{})} }

func (q *demoEvents) put(e any) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.waiting = append(q.waiting, e)
	close(q.changed)
	q.changed = make(chan struct{})
}

// forget drops the events that were not looked at.
func (q *demoEvents) forget() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.waiting = nil
}

// left are the events that were not looked at.
func (q *demoEvents) left() []any {
	q.mu.Lock()
	defer q.mu.Unlock()
	return slices.Clone(q.waiting)
}

// takeEvent removes and returns the first event of a type that fits.
func takeEvent[E any](q *demoEvents, fits func(E) bool) (found E, ok bool, changed <-chan struct{}) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for i, e := range q.waiting {
		if v, is := e.(E); is && (fits == nil || fits(v)) {
			q.waiting = slices.Delete(q.waiting, i, i+1)
			return v, true, nil
		}
	}
	return found, false, q.changed
}

// awaitEvent waits for the first event of a type that fits.
func awaitEvent[E any](ctx context.Context, q *demoEvents, what string, fits func(E) bool) (E, error) {
	for {
		e, ok, changed := takeEvent(q, fits)
		if ok {
			return e, nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return e, fmt.Errorf("%s did not come", what)
		}
	}
}
