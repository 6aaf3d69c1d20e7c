package skald

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
)

func TestEventQueueStopsTheReaderNotTheWriter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := &eventQueue{limit: 2}
		room := func() bool {
			ctx, cancel := context.WithCancelCause(t.Context())
			got := make(chan error, 1)
			go func() { got <- q.waitRoom(ctx) }()
			synctest.Wait()
			cancel(errDisk)
			err := <-got
			if err != nil && !errors.Is(err, errDisk) {
				t.Fatal(err)
			}
			return err == nil
		}
		q.push(Fault{}, 0)
		if !room() {
			t.Error("no room behind one event")
		}
		q.push(Fault{}, 0)
		if room() {
			t.Error("room behind two events")
		}
		q.push(Fault{}, 0) // may go over the bound

		// A call waits for an answer that comes behind all this.
		q.addRequests(1)
		if !room() {
			t.Error("no room for an answer")
		}
		for range 2*queueWider - 3 {
			q.push(Fault{}, 0)
		}
		if room() {
			t.Error("no bound at all while an answer is due")
		}
		q.addRequests(-1)

		for range 2 * queueWider {
			if _, ok := q.pop(); !ok {
				t.Fatal("ended early")
			}
		}
		q.push(Message{}, queueBytes)
		if room() {
			t.Error("room behind 8 MiB")
		}
		q.close()
		if _, ok := q.pop(); !ok {
			t.Error("close lost an event")
		}
		if _, ok := q.pop(); ok {
			t.Error("an event too many")
		}
	})
}

// A reader that waits goes on as soon as there is room.
func TestEventQueueWakesTheReader(t *testing.T) {
	for name, free := range map[string]func(*eventQueue){
		"an event is taken": func(q *eventQueue) { q.pop() },
		"an answer is due":  func(q *eventQueue) { q.addRequests(1) },
	} {
		synctest.Test(t, func(t *testing.T) {
			q := &eventQueue{limit: 1}
			q.push(Fault{}, 0)
			read := make(chan error, 1)
			go func() { read <- q.waitRoom(t.Context()) }()
			synctest.Wait()
			if len(read) > 0 {
				t.Fatalf("%s: did not wait", name)
			}
			free(q)
			if err := <-read; err != nil {
				t.Errorf("%s: %v", name, err)
			}
		})
	}
}
