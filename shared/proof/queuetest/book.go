package queuetest

import (
	"bytes"
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"blindpost/shared/queue"
)

// run is one attempt that a handler made.
type run struct {
	job   queue.Job
	start time.Time
	ok    bool
	// beside says that another job of the group was under way at the start.
	beside bool
}

// book writes down what a queue runs. Within a story every kind of job is sent
// once, unless the story says otherwise.
type book struct {
	mu      sync.Mutex
	runs    []run // in the order in which they ended
	busy    map[string]int
	changed chan struct{}
}

func newBook() *book {
	return &book{busy: map[string]int{}, changed: make(chan struct{})}
}

// settings wraps a handler (nil: one that succeeds) so that its runs are
// written down.
func (b *book) settings(h queue.Handler) Settings {
	return Settings{MaxAttempts: 3, Handler: func(ctx context.Context, j queue.Job) (err error) {
		r := b.begin(j)
		defer func() { b.end(r) }()
		if h != nil {
			err = h(ctx, j)
		}
		r.ok = err == nil
		return err
	}}
}

func (b *book) begin(j queue.Job) run {
	r := run{job: j, start: time.Now()}
	r.job.Body = bytes.Clone(j.Body)
	b.mu.Lock()
	defer b.mu.Unlock()
	r.beside = j.Group != "" && b.busy[j.Group] > 0
	b.busy[j.Group]++
	return r
}

func (b *book) end(r run) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.busy[r.job.Group]--
	b.runs = append(b.runs, r)
	close(b.changed)
	b.changed = make(chan struct{})
}

// first returns the first successful run of a kind.
func (b *book) first(kind string) (run, bool) {
	i := slices.IndexFunc(b.runs, func(r run) bool { return r.ok && r.job.Kind == kind })
	if i < 0 {
		return run{}, false
	}
	return b.runs[i], true
}

func (b *book) has(kind string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	_, ok := b.first(kind)
	return ok
}

// wait returns the first successful run of each kind.
func (b *book) wait(t *testing.T, kinds ...string) []run {
	t.Helper()
	late := time.NewTimer(patience)
	defer late.Stop()
	for {
		var got []run
		var missing string
		b.mu.Lock()
		for _, k := range kinds {
			if r, ok := b.first(k); ok {
				got = append(got, r)
			} else {
				missing = k
			}
		}
		changed := b.changed
		b.mu.Unlock()
		if missing == "" {
			return got
		}
		select {
		case <-changed:
		case <-late.C:
			t.Fatalf("%s did not come to its end within %v", missing, patience)
		}
	}
}

// attempts lists the attempt numbers of a kind in the order of the runs.
func (b *book) attempts(kind string) []int {
	b.mu.Lock()
	defer b.mu.Unlock()
	var n []int
	for _, r := range b.runs {
		if r.job.Kind == kind {
			n = append(n, r.job.Attempt)
		}
	}
	return n
}

// wantOrder demands that the first successful runs ended in this order.
func (b *book) wantOrder(t *testing.T, kinds ...string) {
	t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	var got []string
	for _, r := range b.runs {
		if r.ok && slices.Contains(kinds, r.job.Kind) && !slices.Contains(got, r.job.Kind) {
			got = append(got, r.job.Kind)
		}
	}
	if !slices.Equal(got, kinds) {
		t.Errorf("order is %v, want %v", got, kinds)
	}
}

// wantNoOverlap demands that no two runs of one group were under way at once.
func (b *book) wantNoOverlap(t *testing.T) {
	t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, r := range b.runs {
		if r.beside {
			t.Errorf("%s ran beside another job of its group", r.job.Kind)
		}
	}
}
