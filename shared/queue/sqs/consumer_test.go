package sqs_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-lambda-go/events"
	awssqs "github.com/aws/aws-sdk-go-v2/service/sqs"

	"blindpost/shared/proof/sqstest"
	"blindpost/shared/queue/sqs"
)

// batch makes the event of a queue: "a1" is message a1 of group a, "3:a1" the
// same at its third attempt, "-1" a message without a group.
func batch(names ...string) events.SQSEvent {
	var e events.SQSEvent
	for _, name := range names {
		attempt, id, ok := strings.Cut(name, ":")
		if !ok {
			attempt, id = "1", name
		}
		r := events.SQSMessage{MessageId: id, ReceiptHandle: "receipt of " + id, Body: id, Attributes: map[string]string{"ApproximateReceiveCount": attempt}}
		if group := id[:1]; group != "-" {
			r.Attributes["MessageGroupId"] = group
		}
		e.Records = append(e.Records, r)
	}
	return e
}

func TestConsume(t *testing.T) {
	for _, tt := range []struct {
		name  string
		batch string
		fails string
		// failed is what is reported; each group's runs are in the order of ran.
		failed string
		ran    map[string]string
	}{
		{"all well", "a1 b1 a2 -1", "", "", map[string]string{"a": "a1 a2", "b": "b1", "-": "-1"}},
		{"the rest of a group fails with it", "a1 b1 a2 a3 b2", "a2", "a2 a3", map[string]string{"a": "a1 a2", "b": "b1 b2"}},
		{"two groups fail", "a1 b1 c1 a2 b2 c2", "a1 b2", "a1 a2 b2", map[string]string{"a": "a1", "b": "b1 b2", "c": "c1 c2"}},
		{"no groups", "-1 -2 -3", "-2", "-2", map[string]string{"-": "-1 -2 -3"}},
		{"panic", "a1 a2 b1", "!a1", "a1 a2", map[string]string{"a": "a1", "b": "b1"}},
		{"exit", "a1 a2 b1", "^a1", "a1 a2", map[string]string{"a": "a1", "b": "b1"}},
		{"last delivery", "5:a1 5:a2 2:a3 5:b1", "a1 a3", "5:a1 2:a3", map[string]string{"a": "a1 a1 a1 a2 a3", "b": "b1"}},
		{"nothing", "", "", "", map[string]string{}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := sqs.NewConsumer(nil, sqs.ConsumerOptions{MaxAttempts: 5})
			var mu sync.Mutex
			ran := map[string][]string{}
			res := c.Consume(t.Context(), batch(strings.Fields(tt.batch)...), func(_ context.Context, m sqs.Message) error {
				mu.Lock()
				ran[m.Body[:1]] = append(ran[m.Body[:1]], m.Body)
				mu.Unlock()
				for _, f := range strings.Fields(tt.fails) {
					switch f {
					case m.Body:
						return errors.New("failed on purpose")
					case "!" + m.Body:
						panic("on purpose")
					case "^" + m.Body:
						runtime.Goexit()
					}
				}
				return nil
			})
			var failed []string
			for _, f := range res.BatchItemFailures {
				failed = append(failed, f.ItemIdentifier)
			}
			var want []string
			for _, r := range batch(strings.Fields(tt.failed)...).Records {
				want = append(want, r.MessageId)
			}
			if !slices.Equal(failed, want) || res.BatchItemFailures == nil {
				t.Errorf("reported %v", failed)
			}
			for group, want := range tt.ran {
				got := ran[group]
				if group == "-" {
					slices.Sort(got)
				}
				if strings.Join(got, " ") != want {
					t.Errorf("of %s ran %v", group, got)
				}
			}
			if len(ran) != len(tt.ran) {
				t.Errorf("ran %v", ran)
			}
		})
	}
}

// Groups run in parallel: each of two waits for the other.
func TestGroupsRunInParallel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var both sync.WaitGroup
		both.Add(2)
		res := sqs.NewConsumer(nil, sqs.ConsumerOptions{}).Consume(t.Context(), batch("a1", "b1"), func(context.Context, sqs.Message) error {
			both.Done()
			both.Wait()
			return nil
		})
		if len(res.BatchItemFailures) != 0 {
			t.Errorf("reported %v", res)
		}
	})
}

// A function that runs out of time reports what it has not done, instead of being
// killed together with what it has.
func TestOutOfTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		defer cancel()
		start := time.Now()
		res := sqs.NewConsumer(nil, sqs.ConsumerOptions{}).Consume(ctx, batch("a1", "b1", "b2", "b3"), func(ctx context.Context, m sqs.Message) error {
			if m.Body == "b2" {
				<-ctx.Done()
				return ctx.Err()
			}
			return nil
		})
		if fmt.Sprint(res.BatchItemFailures) != "[{b2} {b3}]" {
			t.Errorf("reported %v", res.BatchItemFailures)
		}
		if d := time.Since(start); d != 28*time.Second {
			t.Errorf("it took %v", d)
		}
		// What comes too late is not begun.
		<-time.After(time.Second)
		res = sqs.NewConsumer(nil, sqs.ConsumerOptions{}).Consume(ctx, batch("a1"), func(context.Context, sqs.Message) error {
			t.Error("it was begun")
			return nil
		})
		if len(res.BatchItemFailures) != 1 {
			t.Errorf("reported %v", res.BatchItemFailures)
		}
	})
}

// The messages of a group that are at their last delivery all are run before the
// function ends, although the first of them hang; and each is told when it is for
// the last time.
func TestLastDeliveryIsShared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		defer cancel()
		start := time.Now()
		var ran []string
		c := sqs.NewConsumer(nil, sqs.ConsumerOptions{MaxAttempts: 5})
		res := c.Consume(ctx, batch("5:a1", "5:a2", "5:a3", "5:a4"), func(ctx context.Context, m sqs.Message) error {
			ran = append(ran, fmt.Sprintf("%s %v", m.Body, m.Last))
			switch m.Body {
			case "a3":
				return errors.New("failed on purpose")
			case "a4":
				return nil
			}
			<-ctx.Done()
			return ctx.Err()
		})
		want := "a1 false, a1 false, a1 true, a2 false, a2 false, a2 true, a3 false, a3 false, a3 true, a4 false"
		if got := strings.Join(ran, ", "); got != want {
			t.Errorf("ran %s", got)
		}
		if fmt.Sprint(res.BatchItemFailures) != "[{a1} {a2} {a3}]" {
			t.Errorf("reported %v", res.BatchItemFailures)
		}
		// Two in four parts of 28 s, and two short pauses.
		if d := time.Since(start); d != 14*time.Second+750*time.Millisecond {
			t.Errorf("it took %v", d)
		}
	})
}

// No run is the last one if the queue retries for ever.
func TestWithoutPolicyNoRunIsTheLast(t *testing.T) {
	runs := 0
	sqs.NewConsumer(nil, sqs.ConsumerOptions{}).Consume(t.Context(), batch("500:a1"), func(_ context.Context, m sqs.Message) error {
		if runs++; m.Last {
			t.Error("it was told so")
		}
		return errors.New("failed on purpose")
	})
	if runs != 1 {
		t.Errorf("%d runs", runs)
	}
}

// visibility writes down what is postponed.
type visibility struct {
	sqstest.Server
	got []string
	err error
}

func (v *visibility) ChangeMessageVisibilityBatch(_ context.Context, in *awssqs.ChangeMessageVisibilityBatchInput, _ ...func(*awssqs.Options)) (*awssqs.ChangeMessageVisibilityBatchOutput, error) {
	for _, e := range in.Entries {
		v.got = append(v.got, fmt.Sprintf("%s %d", strings.TrimPrefix(*e.ReceiptHandle, "receipt of "), e.VisibilityTimeout))
	}
	v.got = append(v.got, *in.QueueUrl)
	return &awssqs.ChangeMessageVisibilityBatchOutput{}, v.err
}

func TestFailedMessagesArePostponed(t *testing.T) {
	v := &visibility{}
	client := func(context.Context) (sqs.API, error) { return v, nil }
	c := sqs.NewConsumer(client, sqs.ConsumerOptions{
		QueueURL: "url", Backoff: func(attempt int) time.Duration { return time.Duration(attempt) * 1400 * time.Millisecond },
	})
	fail := func(context.Context, sqs.Message) error { return errors.New("failed on purpose") }
	c.Consume(t.Context(), batch("2:a1", "1:a2", "4:-1", "5:-2"), fail)
	// All of a group wait as long as its first.
	if want := "a1 3, a2 3, -1 6, -2 7, url"; strings.Join(v.got, ", ") != want {
		t.Errorf("postponed %v", v.got)
	}
	v.got = nil
	c.Consume(t.Context(), batch("a1"), func(context.Context, sqs.Message) error { return nil })
	if v.got != nil {
		t.Errorf("postponed %v", v.got)
	}
	c = sqs.NewConsumer(client, sqs.ConsumerOptions{QueueURL: "url", Backoff: func(int) time.Duration { return 1000 * time.Hour }})
	v.err = errors.New("failed on purpose") // is not worse than the visibility timeout
	if res := c.Consume(t.Context(), batch("a1"), fail); len(res.BatchItemFailures) != 1 || v.got[0] != "a1 43200" {
		t.Errorf("postponed %v, reported %v", v.got, res)
	}
}

func TestBackoffGrows(t *testing.T) {
	v := &visibility{}
	part := 0.0
	c := sqs.NewConsumer(func(context.Context) (sqs.API, error) { return v, nil },
		sqs.ConsumerOptions{QueueURL: "url", Random: func() float64 { return part }})
	for attempt := 1; attempt <= 40; attempt++ {
		part = 0.5 - part // every second pause is a quarter shorter
		v.got = nil
		c.Consume(t.Context(), batch(fmt.Sprintf("%d:a1", attempt)), func(context.Context, sqs.Message) error { return errors.New("x") })
		var got int
		if _, err := fmt.Sscanf(v.got[0], "a1 %d", &got); err != nil {
			t.Fatal(err)
		}
		want := math.Round(min(300, math.Exp2(float64(attempt-1))) * (1 - part/2))
		if float64(got) != want {
			t.Errorf("pause after attempt %d is %d s, want %v", attempt, got, want)
		}
	}
}
