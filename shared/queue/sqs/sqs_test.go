package sqs_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"blindpost/shared/proof/queuetest"
	"blindpost/shared/proof/rig"
	"blindpost/shared/proof/sqstest"
	"blindpost/shared/queue"
	"blindpost/shared/queue/sqs"
)

// set is a pair of queues with a queue.Queue on top that runs its jobs.
type set struct {
	*sqs.Queue
	server         *sqstest.Server
	standard, fifo string
}

type settings struct {
	handler      queue.Handler
	maxAttempts  int
	repeat       float64
	late         time.Duration
	withoutFIFO  bool
	seed         uint64
	functionTime time.Duration
	log          *slog.Logger
}

// open makes both queues and the functions behind them: as in the stack, jobs that
// come from the standard queue and belong into the FIFO queue are sent there.
func open(t *testing.T, o settings) *set {
	s := &set{server: sqstest.NewServer(o.seed)}
	s.standard = s.server.Create(sqstest.Queue{Name: "jobs", MaxReceive: o.maxAttempts, Repeat: o.repeat, Late: o.late})
	qo := sqs.Options{Standard: s.standard, NewID: newIDs()}
	if !o.withoutFIFO {
		s.fifo = s.server.Create(sqstest.Queue{Name: "ingress.fifo", MaxReceive: o.maxAttempts, Late: o.late})
		qo.FIFO = s.fifo
	}
	s.Queue = sqs.New(s.server.Client, qo)
	if o.functionTime == 0 {
		o.functionTime = time.Hour
	}
	for _, url := range []string{s.standard, s.fifo} {
		if url == "" {
			continue
		}
		c := sqs.NewConsumer(s.server.Client, sqs.ConsumerOptions{QueueURL: url, MaxAttempts: o.maxAttempts, Log: o.log})
		s.server.Serve(t, url, o.functionTime, func(ctx context.Context, e events.SQSEvent) (events.SQSEventResponse, error) {
			return c.Consume(ctx, e, s.Run(o.handler)), nil
		})
	}
	return s
}

func newIDs() func() string {
	var mu sync.Mutex
	n := 0
	return func() string {
		mu.Lock()
		defer mu.Unlock()
		n++
		return fmt.Sprintf("id-%d", n)
	}
}

// Both queues together keep the whole contract.
func TestContract(t *testing.T) {
	queuetest.RunInBubble(t, func(t *testing.T, s queuetest.Settings) queue.Queue {
		return open(t, settings{handler: s.Handler, maxAttempts: s.MaxAttempts})
	})
}

// Without a FIFO queue jobs of groups still run, at least once.
func TestWithoutFIFO(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ran := make(chan string, 100)
		s := open(t, settings{withoutFIFO: true, handler: func(_ context.Context, j queue.Job) error {
			ran <- j.Kind + " of " + j.Group
			return nil
		}})
		for i := range 30 {
			if err := s.Send(t.Context(), queue.Job{Kind: fmt.Sprint(i), Group: "g", At: time.Now().Add(time.Duration(i) * time.Second)}); err != nil {
				t.Fatal(err)
			}
		}
		seen := map[string]bool{}
		for range 30 {
			seen[<-ran] = true
		}
		if len(seen) != 30 || !seen["7 of g"] {
			t.Errorf("ran %v", seen)
		}
	})
}

// A job for much later than SQS can delay comes by in between, and its time is
// kept to the second.
func TestLongDelay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ran := make(chan queue.Job)
		s := open(t, settings{maxAttempts: 3, handler: func(_ context.Context, j queue.Job) error { ran <- j; return nil }})
		at := time.Now().Add(3*time.Hour + 1500*time.Millisecond)
		for _, group := range []string{"", "g"} {
			if err := s.Send(t.Context(), queue.Job{Kind: "later", Group: group, Body: []byte("b"), At: at}); err != nil {
				t.Fatal(err)
			}
		}
		for range 2 {
			j := <-ran
			if d := time.Since(at); d < 0 || d > 2*time.Second {
				t.Errorf("ran %v after its time", d)
			}
			if j.Attempt != 1 || string(j.Body) != "b" || !j.At.Equal(at) {
				t.Errorf("job became %+v", j)
			}
		}
	})
}

func TestWhatIsSent(t *testing.T) {
	for _, tt := range []struct {
		name  string
		job   queue.Job
		in    time.Duration // from now, if not 0
		queue string
		body  string
	}{
		{"bare", queue.Job{Kind: "k"}, 0, "standard", `{"kind":"k"}`},
		{"full", queue.Job{Kind: "k", Group: "g", Body: []byte{0, 0xff}, Attempt: 7}, time.Hour, "standard",
			`{"kind":"k","group":"g","body":"AP8=","at":946688400000}`},
		{"grouped and due", queue.Job{Kind: "k", Group: "g"}, -time.Hour, "fifo", ""},
		{"group that SQS does not take", queue.Job{Kind: "k", Group: "grüße an alle"}, 0, "fifo", ""},
		{"long group", queue.Job{Kind: "k", Group: strings.Repeat("x", 129)}, 0, "fifo", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				job := tt.job
				if tt.in != 0 {
					job.At = time.Now().Add(tt.in)
				}
				server := sqstest.NewServer(1)
				urls := map[string]string{
					"standard": server.Create(sqstest.Queue{Name: "jobs"}),
					"fifo":     server.Create(sqstest.Queue{Name: "ingress.fifo"}),
				}
				q := sqs.New(server.Client, sqs.Options{Standard: urls["standard"], FIFO: urls["fifo"], NewID: newIDs()})
				if err := q.Send(t.Context(), job); err != nil {
					t.Fatal(err)
				}
				got := server.Bodies(urls[tt.queue])
				if len(got) != 1 || (tt.body != "" && got[0] != tt.body) {
					t.Errorf("sent %q, and %d messages in all", got, server.Len(urls["standard"])+server.Len(urls["fifo"]))
				}
			})
		})
	}
}

func TestSendFailures(t *testing.T) {
	server := sqstest.NewServer(1)
	failure := errors.New("failed on purpose")
	url := server.Create(sqstest.Queue{Name: "jobs"})
	if err := sqs.New(server.Client, sqs.Options{Standard: url}).Send(t.Context(), queue.Job{}); err == nil {
		t.Error("a job without a kind was sent")
	}
	q := sqs.New(func(context.Context) (sqs.API, error) { return nil, failure }, sqs.Options{Standard: url})
	if err := q.Send(t.Context(), queue.Job{Kind: "k"}); !errors.Is(err, failure) {
		t.Errorf("error is %v", err)
	}
	server.Fail(func(string) error { return failure })
	q = sqs.New(server.Client, sqs.Options{Standard: url})
	if err := q.Send(t.Context(), queue.Job{Kind: "k", Body: []byte("secret")}); !errors.Is(err, failure) || strings.Contains(err.Error(), "secret") {
		t.Errorf("error is %v", err)
	}
	if server.Len(url) != 0 {
		t.Error("something was sent")
	}
}

func TestJobsThatCannotBeRead(t *testing.T) {
	q := sqs.New(nil, sqs.Options{})
	run := q.Run(func(context.Context, queue.Job) error { t.Error("it ran"); return nil })
	for _, body := range []string{"", "x", "{}", `{"kind":7}`, `{"kind":"k","body":"?secret?"}`} {
		if err := run(t.Context(), sqs.Message{Body: body}); err == nil || strings.Contains(err.Error(), "secret") {
			t.Errorf("%q: %v", body, err)
		}
	}
}

// Whatever a message says: it runs, or is put off to where it belongs, or is an error.
func FuzzRun(f *testing.F) {
	f.Add(`{"kind":"k","group":"g","body":"AP8=","at":946688400000}`, "")
	f.Add(`{"kind":"k","group":"g","body":"AP8=","at":4102444800000}`, "g")
	f.Add(`{"kind":"k","at":-1}`, "g")
	f.Fuzz(func(t *testing.T, body, group string) {
		server := sqstest.NewServer(1)
		o := sqs.Options{
			Standard: server.Create(sqstest.Queue{Name: "jobs"}), FIFO: server.Create(sqstest.Queue{Name: "ingress.fifo"}),
			NewID: newIDs(), Now: func() time.Time { return time.UnixMilli(946688400000) },
		}
		ran := 0
		err := sqs.New(server.Client, o).Run(func(_ context.Context, j queue.Job) error {
			ran++
			if j.Kind == "" || (j.Group != "" && group == "") || j.At.After(o.Now()) {
				t.Errorf("a job runs that may not: %+v", j)
			}
			return nil
		})(t.Context(), sqs.Message{Body: body, Group: group})
		if sent := server.Len(o.Standard) + server.Len(o.FIFO); err == nil && ran+sent != 1 || err != nil && ran+sent != 0 {
			t.Errorf("it ran %d times, was sent %d times, and ends with %v", ran, sent, err)
		}
	})
}

// A panic is a failed attempt; its value is not logged, its place is.
func TestPanicIsLoggedWithoutItsValue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log rig.Log
		ran := make(chan struct{}, 1)
		s := open(t, settings{
			log: slog.New(slog.NewTextHandler(&log, nil)),
			handler: func(_ context.Context, j queue.Job) error {
				if j.Attempt == 1 {
					panic("secret")
				}
				ran <- struct{}{}
				return nil
			}})
		if err := s.Send(t.Context(), queue.Job{Kind: "k"}); err != nil {
			t.Fatal(err)
		}
		<-ran
		if out := log.String(); strings.Contains(out, "secret") || !strings.Contains(out, "sqs_test.go") {
			t.Errorf("logged: %s", out)
		}
	})
}
