// Package queuetest is the suite that every implementation of queue.Queue
// passes. It tells the contract as stories and demands no more than the
// contract does: a job may come late and may come twice, so nothing here counts
// runs exactly, and an order is judged by the first time that each job came
// to its end.
package queuetest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"blindpost/shared/queue"
)

// Settings are what a story needs of a queue.
type Settings struct {
	Handler queue.Handler
	// MaxAttempts is after how many failed attempts a job is put aside.
	MaxAttempts int
}

// Open makes an empty queue that runs its jobs until the test ends; t.Cleanup
// closes it. At least four ungrouped jobs must be able to run at once.
type Open func(t *testing.T, s Settings) queue.Queue

// patience is how long a story waits for a job. Only a failing story waits for
// so long.
const patience = time.Minute

// delay is how far in the future delayed jobs are sent; SQS counts seconds.
const delay = time.Second

// Run runs the suite in real time, for a queue that lives elsewhere.
func Run(t *testing.T, open Open) {
	for _, s := range stories {
		t.Run(s.name, func(t *testing.T) { s.run(t, open) })
	}
}

// RunInBubble runs each story in a synctest bubble of its own, for a queue in
// this process. It takes no real time, and fails if a goroutine is left over.
func RunInBubble(t *testing.T, open Open) {
	for _, s := range stories {
		t.Run(s.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { s.run(t, open) })
		})
	}
}

var stories = []struct {
	name string
	run  func(t *testing.T, open Open)
}{
	{"a job arrives as it was sent", arrives},
	{"the sender may reuse the body", bodyIsCopied},
	{"a job does not run before its time", notBeforeItsTime},
	{"a job for the past runs now", past},
	{"an ended context sends nothing", endedContext},
	{"jobs without a group run in parallel", parallel},
	{"jobs of a group run one after another in order", groupOrder},
	{"delayed jobs of a group run in the order of their times", groupDelayed},
	{"a group that hangs holds up nobody else", hangingGroup},
	{"a failed job is tried again", triedAgain},
	{"a panic is a failed attempt", panics},
	{"a group keeps its order while a job is tried again", orderInRetry},
	{"a hopeless job does not stop its group", hopeless},
	{"a handler can send", handlerSends},
}

func arrives(t *testing.T, open Open) {
	b := newBook()
	q := open(t, b.settings(nil))
	body := []byte{0, 1, 0xfe, 0xff, '"', '\n'}
	send(t, q, queue.Job{Kind: "push", Group: "g/1", Body: body, Attempt: 99})
	send(t, q, queue.Job{Kind: "bare"})
	for _, r := range b.wait(t, "push", "bare") {
		switch r.job.Kind {
		case "push":
			if r.job.Group != "g/1" || !bytes.Equal(r.job.Body, body) {
				t.Errorf("job changed on its way: group %q, body %x", r.job.Group, r.job.Body)
			}
		case "bare":
			if r.job.Group != "" || len(r.job.Body) != 0 {
				t.Errorf("job changed on its way: group %q, body %x", r.job.Group, r.job.Body)
			}
		}
		if r.job.Attempt < 1 || r.job.Attempt > 3 {
			t.Errorf("attempt of %s is %d", r.job.Kind, r.job.Attempt)
		}
	}
}

func bodyIsCopied(t *testing.T, open Open) {
	b := newBook()
	q := open(t, b.settings(nil))
	body := []byte("before")
	send(t, q, queue.Job{Kind: "k", Body: body, At: time.Now().Add(delay)})
	copy(body, "after!")
	if r := b.wait(t, "k")[0]; string(r.job.Body) != "before" {
		t.Errorf("body is %q", r.job.Body)
	}
}

func notBeforeItsTime(t *testing.T, open Open) {
	b := newBook()
	q := open(t, b.settings(nil))
	at := time.Now().Add(delay)
	send(t, q, queue.Job{Kind: "grouped", Group: "g", At: at})
	send(t, q, queue.Job{Kind: "bare", At: at})
	for _, r := range b.wait(t, "grouped", "bare") {
		if r.start.Before(at) {
			t.Errorf("%s ran %v too early", r.job.Kind, at.Sub(r.start))
		}
	}
}

func past(t *testing.T, open Open) {
	b := newBook()
	q := open(t, b.settings(nil))
	send(t, q, queue.Job{Kind: "yesterday", At: time.Now().Add(-24 * time.Hour)})
	send(t, q, queue.Job{Kind: "long ago", At: time.Unix(1, 0), Group: "g"})
	b.wait(t, "yesterday", "long ago")
}

func endedContext(t *testing.T, open Open) {
	b := newBook()
	q := open(t, b.settings(nil))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := q.Send(ctx, queue.Job{Kind: "k"}); !errors.Is(err, context.Canceled) {
		t.Errorf("Send with an ended context: %v", err)
	}
}

func parallel(t *testing.T, open Open) {
	// Each of the four ends only when all of them have begun.
	var all sync.WaitGroup
	all.Add(4)
	var once [4]sync.Once
	b := newBook()
	q := open(t, b.settings(func(_ context.Context, j queue.Job) error {
		once[j.Body[0]].Do(all.Done)
		all.Wait()
		return nil
	}))
	kinds := []string{"a", "b", "c", "d"}
	for i, k := range kinds {
		send(t, q, queue.Job{Kind: k, Body: []byte{byte(i)}})
	}
	b.wait(t, kinds...)
}

func groupOrder(t *testing.T, open Open) {
	const n = 30
	b := newBook()
	q := open(t, b.settings(func(context.Context, queue.Job) error {
		<-time.After(time.Millisecond) // long enough for another to get in between
		return nil
	}))
	var want [2][]string
	for i := range n {
		for g := range want {
			kind := fmt.Sprintf("%d/%02d", g, i)
			want[g] = append(want[g], kind)
			send(t, q, queue.Job{Kind: kind, Group: fmt.Sprint("group", g)})
		}
	}
	b.wait(t, slices.Concat(want[0], want[1])...)
	b.wantOrder(t, want[0]...)
	b.wantOrder(t, want[1]...)
	b.wantNoOverlap(t)
}

func groupDelayed(t *testing.T, open Open) {
	b := newBook()
	q := open(t, b.settings(nil))
	now := time.Now()
	send(t, q, queue.Job{Kind: "third", Group: "g", At: now.Add(3 * delay)})
	send(t, q, queue.Job{Kind: "second", Group: "g", At: now.Add(delay)})
	send(t, q, queue.Job{Kind: "first", Group: "g"})
	b.wait(t, "first", "second", "third")
	b.wantOrder(t, "first", "second", "third")
	b.wantNoOverlap(t)
}

func hangingGroup(t *testing.T, open Open) {
	free := make(chan struct{})
	b := newBook()
	q := open(t, b.settings(func(_ context.Context, j queue.Job) error {
		if j.Kind == "hang" {
			<-free
		}
		return nil
	}))
	release := sync.OnceFunc(func() { close(free) })
	t.Cleanup(release)
	send(t, q, queue.Job{Kind: "hang", Group: "g"})
	send(t, q, queue.Job{Kind: "behind", Group: "g"})
	send(t, q, queue.Job{Kind: "other", Group: "h"})
	send(t, q, queue.Job{Kind: "bare"})
	b.wait(t, "other", "bare")
	if b.has("behind") {
		t.Error("a job ran while the one before it in its group was running")
	}
	release()
	b.wait(t, "hang", "behind")
	b.wantOrder(t, "hang", "behind")
}

func triedAgain(t *testing.T, open Open) {
	b := newBook()
	q := open(t, b.settings(func(_ context.Context, j queue.Job) error {
		if j.Attempt < 3 {
			return errors.New("not yet")
		}
		return nil
	}))
	send(t, q, queue.Job{Kind: "bare", Body: []byte("b")})
	send(t, q, queue.Job{Kind: "grouped", Group: "g", Body: []byte("b")})
	for _, r := range b.wait(t, "bare", "grouped") {
		if r.job.Attempt != 3 || string(r.job.Body) != "b" {
			t.Errorf("%s succeeded at attempt %d with body %q", r.job.Kind, r.job.Attempt, r.job.Body)
		}
	}
	for _, k := range []string{"bare", "grouped"} {
		if got := b.attempts(k); !slices.Equal(slices.Compact(got), []int{1, 2, 3}) {
			t.Errorf("attempts of %s: %v", k, got)
		}
	}
}

func panics(t *testing.T, open Open) {
	b := newBook()
	q := open(t, b.settings(func(_ context.Context, j queue.Job) error {
		if j.Kind == "bomb" && j.Attempt == 1 {
			panic("boom")
		}
		return nil
	}))
	send(t, q, queue.Job{Kind: "bomb", Group: "g"})
	send(t, q, queue.Job{Kind: "behind", Group: "g"})
	b.wait(t, "bomb", "behind")
	b.wantOrder(t, "bomb", "behind")
}

func orderInRetry(t *testing.T, open Open) {
	b := newBook()
	q := open(t, b.settings(func(_ context.Context, j queue.Job) error {
		if j.Kind == "second" && j.Attempt < 3 {
			return errors.New("not yet")
		}
		return nil
	}))
	for _, k := range []string{"first", "second", "third", "fourth"} {
		send(t, q, queue.Job{Kind: k, Group: "g"})
	}
	b.wait(t, "first", "second", "third", "fourth")
	b.wantOrder(t, "first", "second", "third", "fourth")
	b.wantNoOverlap(t)
}

func hopeless(t *testing.T, open Open) {
	b := newBook()
	q := open(t, b.settings(func(_ context.Context, j queue.Job) error {
		if j.Kind == "hopeless" {
			return errors.New("never")
		}
		return nil
	}))
	send(t, q, queue.Job{Kind: "hopeless", Group: "g"})
	send(t, q, queue.Job{Kind: "behind", Group: "g"})
	send(t, q, queue.Job{Kind: "hopeless"})
	send(t, q, queue.Job{Kind: "bare"})
	b.wait(t, "behind", "bare")
	if got := b.attempts("hopeless"); !slices.Contains(got, 3) {
		t.Errorf("the job behind it ran before the last of 3 attempts: %v", got)
	}
	if b.has("hopeless") {
		t.Error("a job that always fails has succeeded")
	}
}

func handlerSends(t *testing.T, open Open) {
	b := newBook()
	var q queue.Queue
	ready := make(chan struct{})
	q = open(t, b.settings(func(ctx context.Context, j queue.Job) error {
		<-ready
		if j.Kind == "parent" {
			return q.Send(ctx, queue.Job{Kind: "child", Group: j.Group})
		}
		return nil
	}))
	close(ready)
	send(t, q, queue.Job{Kind: "parent", Group: "g"})
	b.wait(t, "parent", "child")
}

func send(t *testing.T, q queue.Queue, j queue.Job) {
	t.Helper()
	if err := q.Send(t.Context(), j); err != nil {
		t.Fatalf("failed to send %s: %v", j.Kind, err)
	}
}
