package local_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"blindpost/shared/queue"
	"blindpost/shared/queue/local"
)

func TestCloseRunsWhatIsDueAndDropsTheRest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDiary()
		q := local.New(local.Options{Workers: 2, Handler: func(_ context.Context, j queue.Job) error {
			time.Sleep(time.Second)
			d.note(j.Kind)
			if j.Kind == "fails" {
				return errors.New("no")
			}
			return nil
		}})
		mustSend(t, q,
			queue.Job{Kind: "1", Group: "g"}, queue.Job{Kind: "2", Group: "g"},
			queue.Job{Kind: "fails", Group: "h"}, queue.Job{Kind: "3", Group: "h"},
			queue.Job{Kind: "future", At: after(time.Nanosecond + time.Second)},
			queue.Job{Kind: "future", Group: "g", At: after(time.Hour)})
		time.Sleep(500 * time.Millisecond)
		wantClose(t, q)
		// The retry of "fails" is a future job; the one behind it runs.
		d.wantTogether(t, "1@1", "fails@1", "2@2", "3@2")
		time.Sleep(2 * time.Hour)
		d.wantTogether(t, "1@1", "fails@1", "2@2", "3@2")
	})
}

func TestCloseFreesTheGroupOfAJobBetweenTwoTries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDiary()
		q := local.New(local.Options{
			Backoff: func(int) time.Duration { return time.Hour },
			Handler: func(_ context.Context, j queue.Job) error {
				d.note(j.Kind)
				if j.Kind == "fails" {
					return errors.New("no")
				}
				return nil
			}})
		mustSend(t, q,
			queue.Job{Kind: "fails", Group: "g"}, queue.Job{Kind: "2", Group: "g"}, queue.Job{Kind: "3", Group: "g"},
			queue.Job{Kind: "fails"})
		synctest.Wait()
		if s := q.Stats(); s != (local.Stats{Delayed: 2, Waiting: 2}) {
			t.Errorf("stats: %+v", s)
		}
		d.want(t, "fails@0", "fails@0")
		wantClose(t, q)
		d.want(t, "fails@0", "fails@0", "2@0", "3@0")
	})
}

func TestSendAfterClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var q *local.Queue
		fromHandler := make(chan error, 1)
		closing := make(chan struct{})
		q = local.New(local.Options{Handler: func(ctx context.Context, _ queue.Job) error {
			<-closing
			fromHandler <- q.Send(ctx, queue.Job{Kind: "child"})
			return nil
		}})
		mustSend(t, q, queue.Job{Kind: "parent"})
		synctest.Wait()
		go func() {
			time.Sleep(time.Second) // by now Close waits
			close(closing)
		}()
		wantClose(t, q)
		if err := <-fromHandler; !errors.Is(err, local.ErrClosed) {
			t.Errorf("Send of a handler during Close: %v", err)
		}
		for _, j := range []queue.Job{{Kind: "a"}, {Kind: "b", Group: "g"}, {Kind: "c", At: after(time.Hour)}} {
			if err := q.Send(t.Context(), j); !errors.Is(err, local.ErrClosed) {
				t.Errorf("Send after Close: %v", err)
			}
		}
		wantClose(t, q) // again
	})
}

func TestCloseGivesUpWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDiary()
		q := local.New(local.Options{Workers: 2, Handler: func(ctx context.Context, j queue.Job) error {
			<-ctx.Done() // a handler that ends only with its context
			d.note(j.Kind)
			return ctx.Err()
		}})
		mustSend(t, q, queue.Job{Kind: "1", Group: "g"}, queue.Job{Kind: "2", Group: "g"}, queue.Job{Kind: "3"}, queue.Job{Kind: "4"})
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		err := q.Close(ctx)
		if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "4 jobs") {
			t.Errorf("Close: %v", err)
		}
		synctest.Wait()
		if len(d.lines) != 2 {
			t.Errorf("diary %v: want the two running jobs and no other", d.lines)
		}
		wantClose(t, q)
	})
}

func TestCloseOfAnIdleQueue(t *testing.T) {
	q := local.New(local.Options{Handler: func(context.Context, queue.Job) error { return nil }})
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if err := q.Close(ended); err != nil {
		t.Errorf("Close with nothing to wait for: %v", err)
	}
}
