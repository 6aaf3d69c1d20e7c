package sqstest

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"
)

// Function is what a queue is the event source of.
type Function func(ctx context.Context, e events.SQSEvent) (events.SQSEventResponse, error)

const (
	batchSize   = 10
	invocations = 200 // at a time
)

// Serve puts an event source with ReportBatchItemFailures on a queue, until the
// test ends. The function has timeout for each invocation; one that takes longer,
// fails or panics has handled nothing.
func (s *Server) Serve(t testing.TB, url string, timeout time.Duration, f Function) {
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() { s.poll(ctx, url, timeout, f) })
	t.Cleanup(func() {
		cancel()
		wg.Wait()
	})
}

func (s *Server) poll(ctx context.Context, url string, timeout time.Duration, f Function) {
	s.mu.Lock()
	q := s.queues[url]
	s.mu.Unlock()
	var running sync.WaitGroup
	defer running.Wait()
	free := make(chan struct{}, invocations)
	for {
		select {
		case free <- struct{}{}:
		case <-ctx.Done():
			return
		}
		batch := s.receive(ctx, q)
		if batch == nil {
			return
		}
		running.Go(func() {
			defer func() { <-free }()
			s.invoke(ctx, q, batch, timeout, f)
		})
	}
}

// receive waits for messages.
func (s *Server) receive(ctx context.Context, q *fifoOrNot) []delivery {
	for {
		s.mu.Lock()
		batch, next := s.take(q, time.Now())
		s.mu.Unlock()
		if len(batch) > 0 {
			return batch
		}
		wait := time.NewTimer(next)
		select {
		case <-wait.C:
		case <-q.wake:
		case <-ctx.Done():
			wait.Stop()
			return nil
		}
		wait.Stop()
	}
}

// delivery is a message as it was when it was received.
type delivery struct {
	*message
	receipt  string
	receives int
}

// take receives a batch of what is visible, and says when to look again.
func (s *Server) take(q *fifoOrNot, now time.Time) (batch []delivery, next time.Duration) {
	q.redrive(now)
	next = time.Hour
	blocked := make(map[string]bool) // groups that have a message which is not visible
	order := slices.Clone(q.messages)
	if !q.fifo {
		s.random.Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
	} else {
		for _, m := range order {
			blocked[m.group] = blocked[m.group] || m.receipt != "" && m.visible.After(now)
		}
	}
	for _, m := range order {
		if d := m.visible.Sub(now); d > 0 {
			next = min(next, d)
			blocked[m.group] = true
			continue
		}
		if (q.fifo && blocked[m.group]) || len(batch) == batchSize {
			continue
		}
		m.receives++
		m.receipt = fmt.Sprintf("%s/%d", m.id, m.receives)
		m.visible = now.Add(q.Visibility)
		batch = append(batch, delivery{m, m.receipt, m.receives})
	}
	return batch, next
}

// redrive puts aside what was received as often as it may.
func (q *fifoOrNot) redrive(now time.Time) {
	if q.MaxReceive == 0 {
		return
	}
	q.messages = slices.DeleteFunc(q.messages, func(m *message) bool {
		dead := m.receives >= q.MaxReceive && !m.visible.After(now)
		if dead && !m.repeated {
			q.dead = append(q.dead, Dead{m.id, m.body, m.group})
		}
		return dead
	})
}

func (s *Server) invoke(ctx context.Context, q *fifoOrNot, batch []delivery, timeout time.Duration, f Function) {
	var e events.SQSEvent
	for _, d := range batch {
		r := events.SQSMessage{
			MessageId: d.id, ReceiptHandle: d.receipt, Body: d.body,
			EventSource: "aws:sqs", EventSourceARN: "arn:aws:sqs:eu-central-1:000000000000:" + q.Name, AWSRegion: "eu-central-1",
			Attributes: map[string]string{
				"ApproximateReceiveCount": strconv.Itoa(d.receives),
				"SentTimestamp":           strconv.FormatInt(d.sent.UnixMilli(), 10),
			},
		}
		if q.fifo {
			r.Attributes["MessageGroupId"] = d.group
		}
		e.Records = append(e.Records, r)
	}
	run, cancel := context.WithTimeout(context.WithoutCancel(ctx), timeout)
	defer cancel()
	res, err := call(run, f, e)
	if err != nil || run.Err() != nil {
		return // all of it comes again after its visibility timeout
	}
	s.settle(q, batch, res)
}

func call(ctx context.Context, f Function, e events.SQSEvent) (res events.SQSEventResponse, err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("panic: %v", v)
		}
	}()
	return f(ctx, e)
}

// settle deletes what was handled.
func (s *Server) settle(q *fifoOrNot, batch []delivery, res events.SQSEventResponse) {
	failed := make(map[string]bool)
	for _, item := range res.BatchItemFailures {
		failed[item.ItemIdentifier] = true
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, d := range batch {
		if failed[d.id] || d.message.receipt != d.receipt {
			continue // failed, or received again by someone else meanwhile
		}
		d.message.receipt = ""
		if !q.fifo && s.random.Float64() < q.Repeat {
			d.repeated = true // a copy that has missed the deletion
			d.visible = time.Now().Add(time.Duration(s.random.Int64N(int64(2 * time.Second))))
			continue
		}
		q.messages = slices.DeleteFunc(q.messages, func(m *message) bool { return m == d.message })
	}
	q.signal()
}
