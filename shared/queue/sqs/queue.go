package sqs

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"time"

	awssqs "github.com/aws/aws-sdk-go-v2/service/sqs"

	"blindpost/shared/base/awsclient"
	"blindpost/shared/queue"
)

// API is the part of *sqs.Client that this package uses.
type API interface {
	SendMessage(context.Context, *awssqs.SendMessageInput, ...func(*awssqs.Options)) (*awssqs.SendMessageOutput, error)
	ChangeMessageVisibilityBatch(context.Context, *awssqs.ChangeMessageVisibilityBatchInput, ...func(*awssqs.Options)) (*awssqs.ChangeMessageVisibilityBatchOutput, error)
}

var _ API = (*awssqs.Client)(nil)

const (
	// maxDelay is the longest delay of SQS.
	maxDelay = 900 * time.Second
	// maxGroup is the longest message group.
	maxGroup = 128
)

// Options are the settings of a Queue. Standard is required.
type Options struct {
	// Standard and FIFO are the URLs of the two queues; FIFO may be empty.
	Standard string
	FIFO     string
	// GroupID maps a group to its message group. Default is the group itself. A message
	// group that SQS does not accept is replaced by its hash.
	GroupID func(group string) string
	// Now is the clock. Default is time.Now.
	Now func() time.Time
	// NewID makes ids. No two within five minutes may be equal, even in different
	// processes. Required with FIFO.
	NewID func() string
}

// Queue sends jobs to SQS.
type Queue struct {
	client func(context.Context) (API, error)
	o      Options
}

var _ queue.Queue = (*Queue)(nil)

// New makes a queue. client is called when the first message is sent.
func New(client func(context.Context) (API, error), o Options) *Queue {
	if o.GroupID == nil {
		o.GroupID = func(group string) string { return group }
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	return &Queue{client: client, o: o}
}

// Send implements queue.Queue.
func (q *Queue) Send(ctx context.Context, j queue.Job) error {
	if j.Kind == "" {
		return errors.New("failed to send a job: it has no kind")
	}
	body, err := encodeJob(j)
	if err != nil {
		return err
	}
	delay := delayUntil(j.At, q.o.Now())
	if j.Group != "" && delay == 0 && q.o.FIFO != "" {
		group, id := q.o.GroupID(j.Group), q.o.NewID()
		if j.Once {
			id = groupID(j.Kind + "/" + j.Group) // same rules as for a group
		}
		return q.sendOrdered(ctx, group, id, body)
	}
	in := &awssqs.SendMessageInput{QueueUrl: &q.o.Standard, MessageBody: &body, DelaySeconds: delay}
	return q.send(ctx, in)
}

// SendOrdered puts a message into the FIFO queue, at the end of a message group.
func (q *Queue) SendOrdered(ctx context.Context, group, body string) error {
	return q.sendOrdered(ctx, group, q.o.NewID(), body)
}

func (q *Queue) sendOrdered(ctx context.Context, group, id, body string) error {
	group = groupID(group)
	return q.send(ctx, &awssqs.SendMessageInput{
		QueueUrl: &q.o.FIFO, MessageBody: &body, MessageGroupId: &group, MessageDeduplicationId: &id,
	})
}

func (q *Queue) send(ctx context.Context, in *awssqs.SendMessageInput) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("failed to send a message: %w", err)
	}
	client, err := q.client(ctx)
	if err != nil {
		return fmt.Errorf("failed to send a message: %w", err)
	}
	if _, err := client.SendMessage(ctx, in, withoutWriteTo); err != nil {
		return fmt.Errorf("failed to send a message: %w", err)
	}
	return nil
}

// withoutWriteTo makes the client read the whole response: a job that was sent and seems
// to have failed would be sent twice.
func withoutWriteTo(o *awssqs.Options) { o.HTTPClient = awsclient.WithoutWriteTo(o.HTTPClient) }

// Run makes the handler of messages with jobs: it gives those that are due to next, and
// sends the others again.
func (q *Queue) Run(next queue.Handler) func(context.Context, Message) error {
	return func(ctx context.Context, m Message) error {
		j, err := decodeJob(m.Body)
		if err != nil {
			return err
		}
		ordered := m.Group != ""
		if delayUntil(j.At, q.o.Now()) > 0 || (j.Group != "" && !ordered && q.o.FIFO != "") {
			return q.Send(ctx, j)
		}
		j.Attempt = m.Attempt
		return next(ctx, j)
	}
}

// delayUntil is the delay in whole seconds, rounded up, at most maxDelay.
func delayUntil(at, now time.Time) int32 {
	if at.IsZero() || !at.After(now) {
		return 0
	}
	d := min(at.Sub(now), maxDelay)
	return int32((d + time.Second - 1) / time.Second)
}

// groupID is a message group that SQS accepts: 1 to 128 letters, digits and punctuation
// marks of ASCII. It replaces any other by its hash.
func groupID(group string) string {
	ok := group != "" && len(group) <= maxGroup
	for i := 0; ok && i < len(group); i++ {
		ok = group[i] > ' ' && group[i] <= '~'
	}
	if ok {
		return group
	}
	sum := sha256.Sum256([]byte(group))
	return "sha256:" + hex.EncodeToString(sum[:])
}

func milliseconds(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	// Rounded up, so that the job does not run early.
	return t.Add(time.Millisecond - time.Nanosecond).UnixMilli()
}

func fromMilliseconds(ms int64) time.Time {
	if ms == 0 {
		return time.Time{}
	}
	return time.UnixMilli(ms)
}

// attemptOf reads the number of times that a message was received.
func attemptOf(attributes map[string]string) int {
	n, err := strconv.Atoi(attributes["ApproximateReceiveCount"])
	if err != nil || n < 1 {
		return 1
	}
	return n
}
