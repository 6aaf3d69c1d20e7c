// Package sqstest is SQS in memory for tests, together with the event source that
// Lambda puts on a queue. It keeps to the words of the service and no more: a
// standard queue delivers in any order and, if told so, more than once; a FIFO
// queue delivers the messages of a group in order, and none of them while one is
// in flight. Time is the clock of the process, so that it runs in a
// testing/synctest bubble too.
package sqstest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	awssqs "github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"blindpost/shared/queue/sqs"
)

// Queue are the settings of a queue. It is FIFO if its name ends in ".fifo".
type Queue struct {
	Name       string
	Visibility time.Duration // default 30 s
	// MaxReceive is after how many deliveries a message is put aside; 0 never.
	MaxReceive int
	// Repeat is the share of deliveries on a standard queue after which the message
	// comes again although it was deleted, in [0, 1].
	Repeat float64
	// Late is the longest time by which a message comes later than it could.
	Late time.Duration
}

// Server is a set of queues.
type Server struct {
	mu     sync.Mutex
	random *rand.Rand
	queues map[string]*fifoOrNot
	ids    int
	fault  func(action string) error
}

var _ sqs.API = (*Server)(nil)

// NewServer makes a server without queues.
func NewServer(seed uint64) *Server {
	return &Server{random: rand.New(rand.NewPCG(seed, 1)), queues: make(map[string]*fifoOrNot)}
}

// Client is the API as this package's users want it.
func (s *Server) Client(context.Context) (sqs.API, error) { return s, nil }

// fifoOrNot is one queue. All is guarded by the mutex of the server.
type fifoOrNot struct {
	Queue
	fifo     bool
	messages []*message // in the order of sending
	dead     []Dead
	seen     map[string]time.Time // deduplication ids
	wake     chan struct{}
}

type message struct {
	id, body, group string
	visible         time.Time
	sent            time.Time
	receives        int
	receipt         string // of the last delivery, while in flight
	repeated        bool
}

// Dead is a message in the dead-letter queue.
type Dead struct{ ID, Body, Group string }

// Create makes a queue and returns its URL.
func (s *Server) Create(q Queue) string {
	if q.Visibility == 0 {
		q.Visibility = 30 * time.Second
	}
	url := "https://sqs.example/000000000000/" + q.Name
	s.mu.Lock()
	defer s.mu.Unlock()
	s.queues[url] = &fifoOrNot{
		Queue: q, fifo: strings.HasSuffix(q.Name, ".fifo"),
		seen: make(map[string]time.Time), wake: make(chan struct{}, 1),
	}
	return url
}

// Fail has actions answered with the error that f returns, if any.
func (s *Server) Fail(f func(action string) error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fault = f
}

// Dead lists what was put aside.
func (s *Server) Dead(url string) []Dead {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.queues[url].dead)
}

// Len is how many messages are in the queue, in flight or not.
func (s *Server) Len(url string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.queues[url].messages)
}

// Bodies lists the messages that are in the queue.
func (s *Server) Bodies(url string) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []string
	for _, m := range s.queues[url].messages {
		out = append(out, m.body)
	}
	return out
}

func (s *Server) find(ctx context.Context, action string, url *string) (*fifoOrNot, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if s.fault != nil {
		if err := s.fault(action); err != nil {
			return nil, err
		}
	}
	if url == nil || s.queues[*url] == nil {
		return nil, &types.QueueDoesNotExist{}
	}
	return s.queues[*url], nil
}

// SendMessage implements sqs.API.
func (s *Server) SendMessage(ctx context.Context, in *awssqs.SendMessageInput, _ ...func(*awssqs.Options)) (*awssqs.SendMessageOutput, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	q, err := s.find(ctx, "SendMessage", in.QueueUrl)
	if err != nil {
		return nil, err
	}
	if err := q.check(in); err != nil {
		return nil, err
	}
	now := time.Now()
	if q.fifo {
		maps.DeleteFunc(q.seen, func(_ string, t time.Time) bool { return now.Sub(t) >= 5*time.Minute })
		id := *in.MessageGroupId + "\x00" + *in.MessageDeduplicationId
		if _, ok := q.seen[id]; ok {
			return &awssqs.SendMessageOutput{}, nil
		}
		q.seen[id] = now
	}
	s.ids++
	m := &message{id: fmt.Sprintf("message-%d", s.ids), body: *in.MessageBody, sent: now}
	if in.MessageGroupId != nil {
		m.group = *in.MessageGroupId
	}
	m.visible = now.Add(time.Duration(in.DelaySeconds) * time.Second)
	if q.Late > 0 {
		m.visible = m.visible.Add(time.Duration(s.random.Int64N(int64(q.Late))))
	}
	q.messages = append(q.messages, m)
	q.signal()
	return &awssqs.SendMessageOutput{MessageId: &m.id}, nil
}

// check refuses what SQS refuses.
func (q *fifoOrNot) check(in *awssqs.SendMessageInput) error {
	switch {
	case in.MessageBody == nil || *in.MessageBody == "":
		return errors.New("MissingParameter: MessageBody")
	case len(*in.MessageBody) > 256<<10:
		return errors.New("InvalidParameterValue: one or more parameters are invalid: message too long")
	case strings.ContainsFunc(*in.MessageBody, func(r rune) bool {
		return r < ' ' && r != '\t' && r != '\n' && r != '\r' || r == 0xFFFE || r == 0xFFFF
	}):
		return &types.InvalidMessageContents{}
	case in.DelaySeconds < 0 || in.DelaySeconds > 900:
		return errors.New("InvalidParameterValue: DelaySeconds")
	case !q.fifo && (in.MessageGroupId != nil || in.MessageDeduplicationId != nil):
		return errors.New("InvalidParameterValue: the queue is not FIFO")
	case q.fifo && in.DelaySeconds != 0:
		return errors.New("InvalidParameterValue: no DelaySeconds on a FIFO queue")
	case q.fifo && (!validName(in.MessageGroupId) || !validName(in.MessageDeduplicationId)):
		return errors.New("InvalidParameterValue: MessageGroupId or MessageDeduplicationId")
	}
	return nil
}

func validName(s *string) bool {
	return s != nil && *s != "" && len(*s) <= 128 &&
		!strings.ContainsFunc(*s, func(r rune) bool { return r <= ' ' || r > '~' })
}

// ChangeMessageVisibilityBatch implements sqs.API.
func (s *Server) ChangeMessageVisibilityBatch(ctx context.Context, in *awssqs.ChangeMessageVisibilityBatchInput, _ ...func(*awssqs.Options)) (*awssqs.ChangeMessageVisibilityBatchOutput, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	q, err := s.find(ctx, "ChangeMessageVisibilityBatch", in.QueueUrl)
	if err != nil {
		return nil, err
	}
	if n := len(in.Entries); n == 0 || n > 10 {
		return nil, errors.New("TooManyEntriesInBatchRequest or EmptyBatchRequest")
	}
	out := &awssqs.ChangeMessageVisibilityBatchOutput{}
	for _, e := range in.Entries {
		i := slices.IndexFunc(q.messages, func(m *message) bool { return m.receipt != "" && m.receipt == *e.ReceiptHandle })
		if i < 0 {
			out.Failed = append(out.Failed, types.BatchResultErrorEntry{Id: e.Id})
			continue
		}
		q.messages[i].visible = time.Now().Add(time.Duration(e.VisibilityTimeout) * time.Second)
		out.Successful = append(out.Successful, types.ChangeMessageVisibilityBatchResultEntry{Id: e.Id})
	}
	q.signal()
	return out, nil
}

func (q *fifoOrNot) signal() {
	select {
	case q.wake <- struct{}{}:
	default:
	}
}
