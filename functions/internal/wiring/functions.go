package wiring

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"blindpost/shared/base/panics"
	"blindpost/shared/gateway/apigw"
	"blindpost/shared/gateway/apigw/record"
	"blindpost/shared/queue/sqs"
	"blindpost/shared/settings"
)

// Function names one of the four functions.
type Function string

// The functions.
const (
	Connect    Function = "connect"
	Message    Function = "message"
	Disconnect Function = "disconnect"
	Sweeper    Function = "sweeper"
)

// Invoke handles an event of a function. A panic becomes an error: Lambda would
// report its value, which may be anything.
func (a *App) Invoke(ctx context.Context, f Function, payload []byte) (out []byte, err error) {
	ended := false
	defer func() {
		if ended {
			return
		}
		panics.Log(ctx, a.backend.Log, "function panicked", recover(), "function", f)
		out, err = nil, errors.New("function panicked")
	}()
	out, err = a.invoke(ctx, f, payload)
	ended = true
	if err != nil {
		a.backend.Log.ErrorContext(ctx, "function failed", "function", f, "error", err)
	}
	return out, err
}

func (a *App) invoke(ctx context.Context, f Function, payload []byte) ([]byte, error) {
	var res any
	var err error
	switch f {
	case Connect:
		res, err = a.connect(ctx, payload)
	case Message:
		res, err = a.message(ctx, payload)
	case Disconnect:
		res, err = a.disconnect(ctx, payload)
	case Sweeper:
		res, err = a.sweeper(ctx, payload)
	default:
		err = fmt.Errorf("there is no function %q", f)
	}
	if err != nil {
		return nil, err
	}
	return json.Marshal(res)
}

// accepted is the answer to API Gateway on a route that sends the peer no answer.
var accepted = events.APIGatewayProxyResponse{StatusCode: 200}

// decode reads an event. The error quotes nothing of it.
func decode(payload []byte, v any) error {
	if err := json.Unmarshal(payload, v); err != nil {
		return errors.New("failed to decode the event: not JSON of the right form")
	}
	return nil
}

// sourceOf says what kind of event a payload is.
func sourceOf(payload []byte) (fromQueue bool, source string, err error) {
	var e struct {
		Records []json.RawMessage `json:"Records"`
		Source  string            `json:"source"`
	}
	if err := decode(payload, &e); err != nil {
		return false, "", err
	}
	return e.Records != nil, e.Source, nil
}

// connect admits a connection, or serves a request that is no WebSocket.
func (a *App) connect(ctx context.Context, payload []byte) (any, error) {
	if r, ok := httpRequest(payload); ok {
		return a.serveHTTP(ctx, r)
	}
	var e events.APIGatewayWebsocketProxyRequest
	if err := decode(payload, &e); err != nil {
		return nil, err
	}
	c, err := a.core(ctx)
	if err != nil {
		return nil, err
	}
	return c.adapter.Connect(ctx, e)
}

// message handles what is in the ingress queue, or a frame that the front gives
// to it directly.
func (a *App) message(ctx context.Context, payload []byte) (any, error) {
	fromQueue, _, err := sourceOf(payload)
	if err != nil {
		return nil, err
	}
	c, err := a.core(ctx)
	if err != nil {
		return nil, err
	}
	if !fromQueue {
		return a.direct(ctx, c, payload)
	}
	var e events.SQSEvent
	if err := decode(payload, &e); err != nil {
		return nil, err
	}
	return a.ingress.Consume(ctx, e, func(ctx context.Context, m sqs.Message) error {
		return a.fromIngress(ctx, c, m)
	}), nil
}

// giveUpTime is what closing the connection of a lost frame may take; it fits into
// the time that a consumer keeps back at the end.
const giveUpTime = time.Second

// fromIngress handles a frame, the end of a connection, or a job. A frame that cannot
// be handled, or not even be read, ends its connection.
func (a *App) fromIngress(ctx context.Context, c *core, m sqs.Message) error {
	r, ok, err := record.Parse(m.Body)
	if err == nil && !ok {
		return c.run(ctx, m)
	}
	if err == nil {
		err = c.adapter.Handle(ctx, r, m.ID)
	}
	if err != nil && m.Last {
		// The frame may have used up the time of ctx.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), giveUpTime)
		defer cancel()
		return errors.Join(err, c.adapter.GiveUp(ctx, r, m.Group))
	}
	return err
}

// direct handles an event of a front that keeps the order of frames itself and
// does not try again: a frame that fails ends its connection.
func (a *App) direct(ctx context.Context, c *core, payload []byte) (any, error) {
	var e events.APIGatewayWebsocketProxyRequest
	if err := decode(payload, &e); err != nil {
		return nil, err
	}
	r, err := apigw.RecordOf(e)
	if err != nil {
		return nil, err
	}
	if err := c.adapter.Handle(ctx, r, ""); err != nil {
		return nil, errors.Join(err, c.adapter.GiveUp(ctx, r, r.ConnectionID))
	}
	return accepted, nil
}

// disconnect puts the end of a connection into the ingress queue, behind the frames that
// still wait there. Without a queue none do.
func (a *App) disconnect(ctx context.Context, payload []byte) (any, error) {
	if settings.IngressQueueURL.Of(a.values) == "" {
		c, err := a.core(ctx)
		if err != nil {
			return nil, err
		}
		return a.direct(ctx, c, payload)
	}
	var e events.APIGatewayWebsocketProxyRequest
	if err := decode(payload, &e); err != nil {
		return nil, err
	}
	r, err := apigw.RecordOf(e)
	if err != nil {
		return nil, err
	}
	body, err := r.Encode()
	if err != nil {
		return nil, err
	}
	return accepted, a.queue.SendOrdered(ctx, r.ConnectionID, body)
}

// sweeper runs jobs, and what is due when the schedule calls it.
func (a *App) sweeper(ctx context.Context, payload []byte) (any, error) {
	fromQueue, source, err := sourceOf(payload)
	if err != nil {
		return nil, err
	}
	if !fromQueue && source != "aws.events" && source != "aws.scheduler" {
		return nil, errors.New("failed to read the event: it comes neither from a queue nor from a schedule")
	}
	c, err := a.core(ctx)
	if err != nil {
		return nil, err
	}
	if !fromQueue {
		return struct{}{}, c.relay.Sweep(ctx)
	}
	var e events.SQSEvent
	if err := decode(payload, &e); err != nil {
		return nil, err
	}
	return a.jobs.Consume(ctx, e, c.run), nil
}
