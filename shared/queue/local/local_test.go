package local_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"blindpost/shared/proof/queuetest"
	"blindpost/shared/queue"
	"blindpost/shared/queue/local"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestContract(t *testing.T) {
	open := func(t *testing.T, s queuetest.Settings) queue.Queue {
		q := local.New(local.Options{Handler: s.Handler, MaxAttempts: s.MaxAttempts})
		t.Cleanup(func() { wantClose(t, q) })
		return q
	}
	queuetest.RunInBubble(t, open)
	t.Run("in real time", func(t *testing.T) {
		queuetest.Run(t, func(t *testing.T, s queuetest.Settings) queue.Queue {
			t.Parallel()
			q := local.New(local.Options{
				Handler: s.Handler, MaxAttempts: s.MaxAttempts, Workers: 4,
				Backoff: func(int) time.Duration { return time.Millisecond },
			})
			t.Cleanup(func() { wantClose(t, q) })
			return q
		})
	})
}

// diary notes what ran when, as "kind@seconds" since the start.
type diary struct {
	mu    sync.Mutex
	start time.Time
	lines []string
}

func newDiary() *diary { return &diary{start: time.Now()} }

func (d *diary) note(what string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.lines = append(d.lines, fmt.Sprintf("%s@%g", what, time.Since(d.start).Seconds()))
}

func (d *diary) want(t *testing.T, lines ...string) {
	t.Helper()
	d.mu.Lock()
	defer d.mu.Unlock()
	if !slices.Equal(d.lines, lines) {
		t.Errorf("diary is\n  %s\nwant\n  %s", strings.Join(d.lines, "  "), strings.Join(lines, "  "))
	}
}

// wantTogether is want for lines in any order.
func (d *diary) wantTogether(t *testing.T, lines ...string) {
	t.Helper()
	d.mu.Lock()
	slices.Sort(d.lines)
	d.mu.Unlock()
	d.want(t, slices.Sorted(slices.Values(lines))...)
}

func mustSend(t *testing.T, q *local.Queue, jobs ...queue.Job) {
	t.Helper()
	for _, j := range jobs {
		if err := q.Send(t.Context(), j); err != nil {
			t.Fatal(err)
		}
	}
}

func wantClose(t *testing.T, q *local.Queue) {
	t.Helper()
	if err := q.Close(context.Background()); err != nil {
		t.Errorf("Close: %v", err)
	}
	if s := q.Stats(); s.Delayed+s.Waiting+s.Running+s.Workers != 0 {
		t.Errorf("after Close: %+v", s)
	}
}

func after(d time.Duration) time.Time { return time.Now().Add(d) }

func TestDelayedJobsRunAtTheirTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDiary()
		q := local.New(local.Options{Handler: func(_ context.Context, j queue.Job) error {
			if !j.At.Equal(time.Now()) {
				t.Errorf("%s says it is due at %v", j.Kind, j.At)
			}
			d.note(j.Kind)
			return nil
		}})
		mustSend(t, q,
			queue.Job{Kind: "c", At: after(300 * time.Second)}, // longer than the timer sleeps
			queue.Job{Kind: "a", At: after(1 * time.Second)},
			queue.Job{Kind: "b", At: after(2 * time.Second)},
			queue.Job{Kind: "now"})
		time.Sleep(400 * time.Second)
		d.want(t, "now@0", "a@1", "b@2", "c@300")
		wantClose(t, q)
	})
}

func TestRetriesWithGrowingDelayThenPutsAside(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDiary()
		var seen observer
		var out bytes.Buffer
		q := local.New(local.Options{
			MaxAttempts: 4,
			Log:         slog.New(slog.NewTextHandler(&out, &slog.HandlerOptions{Level: slog.LevelDebug})),
			Observer:    &seen,
			Handler: func(_ context.Context, j queue.Job) error {
				d.note(fmt.Sprint(j.Kind, j.Attempt))
				switch j.Kind {
				case "fail":
					return errors.New("error-text")
				case "panic":
					panic("panic-" + string(j.Body))
				case "index":
					_ = j.Body[len(j.Body)] // a panic of the runtime
				case "exit":
					runtime.Goexit()
				}
				return nil
			},
		})
		for _, kind := range []string{"fail", "panic", "index", "exit"} {
			d.lines, d.start = nil, time.Now()
			mustSend(t, q,
				queue.Job{Kind: kind, Group: "g", Body: []byte("body-secret")},
				queue.Job{Kind: "behind", Group: "g"})
			time.Sleep(time.Minute)
			d.want(t, kind+"1@0", kind+"2@0.5", kind+"3@1.5", kind+"4@3.5", "behind1@3.5")
		}
		if s := q.Stats(); s != (local.Stats{Dead: 4}) {
			t.Errorf("stats: %+v", s)
		}
		wantClose(t, q)
		log := out.String()
		if n := strings.Count(log, "put aside"); n != 4 {
			t.Errorf("%d jobs logged as put aside, want 4", n)
		}
		for _, secret := range []string{"body-secret", "error-text"} {
			if strings.Contains(log, secret) {
				t.Errorf("log contains %q:\n%s", secret, log)
			}
		}
		if !strings.Contains(log, "index out of range") {
			t.Error("log does not say what the runtime said")
		}
		want := observer{runs: 20, failed: 16, panics: 8, dead: []string{"fail", "panic", "index", "exit"}}
		if seen.runs != want.runs || seen.failed != want.failed || seen.panics != want.panics || !slices.Equal(seen.dead, want.dead) {
			t.Errorf("observer saw %d runs, %d failed, %d panics, dead %v", seen.runs, seen.failed, seen.panics, seen.dead)
		}
	})
}

type observer struct {
	mu                   sync.Mutex
	runs, failed, panics int
	dead                 []string
}

var _ local.Observer = (*observer)(nil)

func (o *observer) JobRun(_ string, _ int, _ time.Duration, failed bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.runs++
	if failed {
		o.failed++
	}
}

func (o *observer) JobPanic(string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.panics++
}

func (o *observer) JobDead(kind string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.dead = append(o.dead, kind)
}

func TestHangingJobsHoldOnlyTheirWorkers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		free := make(chan struct{})
		d := newDiary()
		q := local.New(local.Options{Workers: 3, Handler: func(_ context.Context, j queue.Job) error {
			if j.Kind == "hang" {
				<-free
			}
			d.note(j.Kind)
			return nil
		}})
		for range 10 {
			mustSend(t, q, queue.Job{Kind: "hang", Group: "a"}, queue.Job{Kind: "hang", Group: "b"})
		}
		mustSend(t, q, queue.Job{Kind: "x"}, queue.Job{Kind: "y", Group: "c"}, queue.Job{Kind: "z", At: after(time.Second)})
		time.Sleep(time.Second)
		synctest.Wait()
		d.want(t, "x@0", "y@0", "z@1")
		if s := q.Stats(); s != (local.Stats{Waiting: 18, Running: 2, Workers: 2}) {
			t.Errorf("stats: %+v", s)
		}
		// A third group that hangs takes the last worker; now all others wait.
		mustSend(t, q, queue.Job{Kind: "hang", Group: "c"}, queue.Job{Kind: "late"})
		synctest.Wait()
		if s := q.Stats(); s != (local.Stats{Waiting: 19, Running: 3, Workers: 3}) {
			t.Errorf("stats: %+v", s)
		}
		close(free)
		synctest.Wait()
		if s := q.Stats(); s != (local.Stats{}) {
			t.Errorf("stats: %+v", s)
		}
		wantClose(t, q)
	})
}

func TestDelayedJobsAreCheap(t *testing.T) {
	const n = 100_000
	q := local.New(local.Options{Handler: func(context.Context, queue.Job) error { return nil }})
	goroutines := runtime.NumGoroutine()
	before := liveHeap()
	at := after(time.Hour)
	for i := range n {
		// Times in no order.
		mustSend(t, q, queue.Job{Kind: "challenge_timeout", At: at.Add(time.Duration(i*7919%n) * time.Second)})
	}
	perJob := (liveHeap() - before) / n
	t.Logf("%d bytes per delayed job", perJob)
	if perJob > 128 {
		t.Errorf("a delayed job costs %d bytes", perJob)
	}
	// Goroutines of earlier tests may still come to their end meanwhile.
	if more := runtime.NumGoroutine() - goroutines; more > 0 || q.Stats().Workers != 0 {
		t.Errorf("%d goroutines for delayed jobs, %d of them workers", more, q.Stats().Workers)
	}
	wantClose(t, q)
}

func liveHeap() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// A wall clock that is set must not make a job early, and late by a minute at
// most.
func TestClockThatIsSet(t *testing.T) {
	for _, tt := range []struct {
		name string
		jump time.Duration
		want string // since the start of the bubble
	}{
		{"back by an hour", -time.Hour, "job@5400"},
		{"ahead by an hour", time.Hour, "job@660"},
		{"ahead by ten minutes", 10 * time.Minute, "job@1200"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var clock sync.Mutex
				var offset time.Duration
				now := func() time.Time {
					clock.Lock()
					defer clock.Unlock()
					return time.Now().Add(offset).Round(0)
				}
				d := newDiary()
				q := local.New(local.Options{Now: now, Handler: func(_ context.Context, j queue.Job) error {
					if now().Before(j.At) {
						t.Errorf("ran %v early", j.At.Sub(now()))
					}
					d.note(j.Kind)
					return nil
				}})
				mustSend(t, q, queue.Job{Kind: "job", At: now().Add(30 * time.Minute)})
				time.Sleep(10*time.Minute + time.Second)
				clock.Lock()
				offset = tt.jump
				clock.Unlock()
				time.Sleep(3 * time.Hour)
				d.want(t, tt.want)
				wantClose(t, q)
			})
		})
	}
}

func TestTimesOutOfRange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDiary()
		q := local.New(local.Options{Handler: func(_ context.Context, j queue.Job) error {
			d.note(j.Kind)
			return nil
		}})
		mustSend(t, q,
			queue.Job{Kind: "never", At: time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)},
			queue.Job{Kind: "year one", At: time.Time{}.Add(1)},
			queue.Job{Kind: "before", At: time.Date(-5000, 1, 1, 0, 0, 0, 0, time.UTC)})
		time.Sleep(time.Hour)
		if s := q.Stats(); s.Delayed != 1 || len(d.lines) != 2 {
			t.Errorf("stats %+v, diary %v", s, d.lines)
		}
		wantClose(t, q)
	})
}

func TestNewWithoutHandlerPanics(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("a queue without a handler was made")
		}
	}()
	local.New(local.Options{})
}
