package apigw

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"blindpost/shared/base/backoff"
	"blindpost/shared/gateway"
	"blindpost/shared/queue"
)

// JobFirst posts the first messages of a connection, those of ConnectResult.First. The
// job may run before $connect has returned; API Gateway then answers that the
// connection is gone. So the job retries while the connection may still open. Its group
// is the connection, so that in an ordered queue it precedes all frames of the
// connection.
const JobFirst = "apigw.first"

const (
	// openWithin is how long a connection may take to open.
	openWithin = 15 * time.Second
	// One run of the job tries firstTries times, with pauses that double from
	// firstTryPause. Then it fails and the queue retries it, so that other jobs do not
	// wait long. Usually $connect returns within milliseconds.
	firstTries    = 7
	firstTryPause = 10 * time.Millisecond
)

var errNotOpen = errors.New("connection is not open yet")

type firstBody struct {
	Conn     gateway.Conn   `json:"c"`
	At       int64          `json:"at"` // milliseconds
	Messages []firstMessage `json:"m"`
}

type firstMessage struct {
	Data []byte `json:"d"`
	Text bool   `json:"t,omitempty"`
}

// sendFirst sends the job. A $connect whose answer was lost is repeated, with the same
// first messages. The job is sent with Once, so that the peer gets them once.
func (a *Adapter) sendFirst(ctx context.Context, c gateway.Conn, at time.Time, first []gateway.Message) error {
	b := firstBody{Conn: c, At: at.UnixMilli()}
	for _, m := range first {
		b.Messages = append(b.Messages, firstMessage{Data: m.Data, Text: m.Text})
	}
	body, err := json.Marshal(b)
	if err != nil {
		return fmt.Errorf("failed to encode the first messages: %w", err)
	}
	if err := a.o.Queue.Send(ctx, queue.Job{Kind: JobFirst, Group: string(c), Once: true, Body: body}); err != nil {
		return fmt.Errorf("failed to queue the first messages: %w", err)
	}
	return nil
}

// Job wraps the handler of a queue: it runs the jobs of the adapter and gives the
// others to next.
func (a *Adapter) Job(next queue.Handler) queue.Handler {
	return func(ctx context.Context, j queue.Job) error {
		if j.Kind == JobFirst {
			return a.first(ctx, j)
		}
		return next(ctx, j)
	}
}

func (a *Adapter) first(ctx context.Context, j queue.Job) error {
	var b firstBody
	if err := json.Unmarshal(j.Body, &b); err != nil {
		return errors.New("failed to decode the first messages")
	}
	if a.o.FirstWanted != nil {
		ok, err := a.o.FirstWanted(ctx, b.Conn)
		if err != nil || !ok {
			return err
		}
	}
	for _, m := range b.Messages {
		gone, err := a.postOnOpen(ctx, b.Conn, time.UnixMilli(b.At), gateway.Message{Data: m.Data, Text: m.Text})
		if err != nil || gone {
			return err
		}
	}
	return nil
}

// postOnOpen posts one message to a connection that may not be open yet. It reports
// true if the connection is gone.
func (a *Adapter) postOnOpen(ctx context.Context, c gateway.Conn, at time.Time, m gateway.Message) (gone bool, _ error) {
	pause := firstTryPause
	for try := 1; ; try++ {
		_, err := a.o.Front.Post(ctx, c, m)
		if !errors.Is(err, gateway.ErrGone) {
			return false, err
		}
		if a.o.Now().Sub(at) > openWithin {
			return true, nil
		}
		if try == firstTries {
			return false, errNotOpen
		}
		if err := backoff.Sleep(ctx, pause); err != nil {
			return false, err
		}
		pause *= 2
	}
}
