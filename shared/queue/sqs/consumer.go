package sqs

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/aws/aws-lambda-go/events"
	awssqs "github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"blindpost/shared/base/backoff"
	"blindpost/shared/base/panics"
)

// Message is one message of a queue.
type Message struct {
	// ID is the same on every delivery.
	ID   string
	Body string
	// Group is the message group, "" on a standard queue.
	Group string
	// Attempt counts the deliveries from 1, including those in which the message was not
	// run because one before it in its group failed.
	Attempt int
	// Last says that the message is put aside if this run fails. Without
	// ConsumerOptions.MaxAttempts it is always false.
	Last bool

	receipt string
}

// ConsumerOptions are the settings of a Consumer.
type ConsumerOptions struct {
	// QueueURL is the queue of the events. If it is empty, failed messages are delivered
	// again after the visibility timeout of the queue instead of Backoff.
	QueueURL string
	// Backoff is the pause after a failed attempt, counting from 1. The default doubles
	// from one second to five minutes, less a random part of up to a half.
	Backoff func(attempt int) time.Duration
	// Random spreads those pauses, in [0, 1). Default is math/rand/v2.
	Random func() float64
	// MaxAttempts is the number of deliveries in the redrive policy of the queue; 0 means
	// no policy. A message at its last delivery does not block its group: SQS has counted
	// the messages behind it as received each time too, and would put them aside with it
	// although they never ran. It gets lastRuns runs, because it may never have run before.
	MaxAttempts int
	// Margin is how long before the end of the context the context of handlers ends. At
	// the end of the context Lambda kills the function, and the consumer must report the
	// failures before. Default is 2 s.
	Margin time.Duration
	Log    *slog.Logger
}

// Consumer runs the messages of an event.
type Consumer struct {
	client func(context.Context) (API, error)
	o      ConsumerOptions
}

// NewConsumer makes a consumer. client is called when the first message fails.
func NewConsumer(client func(context.Context) (API, error), o ConsumerOptions) *Consumer {
	if o.Random == nil {
		o.Random = rand.Float64
	}
	if o.Backoff == nil {
		o.Backoff = func(attempt int) time.Duration {
			d := backoff.After(attempt, time.Second, 5*time.Minute)
			return d - time.Duration(o.Random()*float64(d/2))
		}
	}
	if o.Margin == 0 {
		o.Margin = 2 * time.Second
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return &Consumer{client: client, o: o}
}

// maxVisibility is the longest visibility timeout that SQS accepts.
const maxVisibility = 12 * time.Hour

var errPanic = errors.New("handler panicked")

// Consume runs the handler for each message and reports those that failed; the event
// source must have ReportBatchItemFailures. Messages of one message group run one after
// another. When one fails, Consume does not run the rest of its group and reports it as
// failed too: otherwise SQS would deliver the failed message after them. (An exception is
// the last delivery, see MaxAttempts.) All other messages run in parallel. A panic is a
// failure.
func (c *Consumer) Consume(ctx context.Context, e events.SQSEvent, handle func(context.Context, Message) error) events.SQSEventResponse {
	run := ctx
	if end, ok := ctx.Deadline(); ok {
		var cancel context.CancelFunc
		run, cancel = context.WithDeadline(ctx, end.Add(-c.o.Margin))
		defer cancel()
	}
	failed := make([]bool, len(e.Records))
	for i := range failed {
		failed[i] = true // until it has succeeded
	}
	var wg sync.WaitGroup
	for _, indices := range byGroup(e.Records) {
		wg.Go(func() {
			for n, i := range indices {
				m := messageOf(e.Records[i])
				if c.o.MaxAttempts > 0 && m.Attempt >= c.o.MaxAttempts {
					failed[i] = c.lastChance(run, m, len(indices)-n, handle) != nil
					continue
				}
				if failed[i] = c.attempt(run, m, handle) != nil; failed[i] {
					return
				}
			}
		})
	}
	wg.Wait()
	res := events.SQSEventResponse{BatchItemFailures: []events.SQSBatchItemFailure{}}
	var again []Message
	for i, f := range failed {
		if f {
			m := messageOf(e.Records[i])
			res.BatchItemFailures = append(res.BatchItemFailures, events.SQSBatchItemFailure{ItemIdentifier: m.ID})
			again = append(again, m)
		}
	}
	c.postpone(ctx, again)
	return res
}

// byGroup returns the indices of the records of each group; a record without a group is
// alone.
func byGroup(records []events.SQSMessage) [][]int {
	var out [][]int
	at := make(map[string]int)
	for i, r := range records {
		group := r.Attributes["MessageGroupId"]
		if n, ok := at[group]; ok && group != "" {
			out[n] = append(out[n], i)
			continue
		}
		at[group] = len(out)
		out = append(out, []int{i})
	}
	return out
}

func messageOf(r events.SQSMessage) Message {
	return Message{
		ID: r.MessageId, Body: r.Body, Group: r.Attributes["MessageGroupId"],
		Attempt: attemptOf(r.Attributes), receipt: r.ReceiptHandle,
	}
}

func (c *Consumer) attempt(ctx context.Context, m Message, handle func(context.Context, Message) error) (err error) {
	if err := ctx.Err(); err != nil {
		return err // no time left
	}
	ended := false
	defer func() {
		if !ended {
			panics.Log(ctx, c.o.Log, "handler panicked", recover(), "message", m.ID, "attempt", m.Attempt)
			err = errPanic
		}
	}()
	err = handle(ctx, m)
	ended = true
	if err != nil {
		c.o.Log.WarnContext(ctx, "message failed", "message", m.ID, "attempt", m.Attempt, "error", err)
	}
	return err
}

// postpone makes SQS deliver failed messages again after their pause. All messages of a
// group get the pause of the first, because SQS delivers none of a group while one of
// them is in flight. If postpone fails, they come back after the visibility timeout.
func (c *Consumer) postpone(ctx context.Context, failed []Message) {
	if c.o.QueueURL == "" || len(failed) == 0 {
		return
	}
	client, err := c.client(ctx)
	pauses := make(map[string]time.Duration)
	for start := 0; start < len(failed) && err == nil; start += 10 {
		var in []types.ChangeMessageVisibilityBatchRequestEntry
		for i, m := range failed[start:min(start+10, len(failed))] {
			d, ok := pauses[m.Group]
			if !ok || m.Group == "" {
				// Not 0, which the client omits.
				d = min(max(time.Second, c.o.Backoff(m.Attempt).Round(time.Second)), maxVisibility)
				pauses[m.Group] = d
			}
			id := fmt.Sprint(i)
			in = append(in, types.ChangeMessageVisibilityBatchRequestEntry{
				Id: &id, ReceiptHandle: &m.receipt, VisibilityTimeout: int32(d / time.Second),
			})
		}
		_, err = client.ChangeMessageVisibilityBatch(ctx, &awssqs.ChangeMessageVisibilityBatchInput{
			QueueUrl: &c.o.QueueURL, Entries: in,
		}, withoutWriteTo)
	}
	if err != nil {
		c.o.Log.WarnContext(ctx, "failed to postpone messages", "messages", len(failed), "error", err)
	}
}
