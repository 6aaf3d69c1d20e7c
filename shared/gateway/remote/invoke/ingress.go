package invoke

import (
	"context"
	"errors"
	"time"

	"github.com/aws/aws-lambda-go/events"
	awssqs "github.com/aws/aws-sdk-go-v2/service/sqs"

	"blindpost/shared/gateway/apigw"
)

// enqueue puts a frame into the ingress queue, as the integration of API Gateway does.
// It returns when the queue has accepted it, so that the next frame comes behind it.
//
// If the queue refuses a frame as too large, a record with its size takes its place, as
// for a frame over the limit of this front. The limit of the queue is not fixed here.
func (h *handler) enqueue(ctx context.Context, ev events.APIGatewayWebsocketProxyRequest) error {
	r, err := apigw.RecordOf(ev)
	if err != nil {
		return err
	}
	body, err := r.Encode()
	if err != nil {
		return err
	}
	err = h.send(ctx, r.ConnectionID, r.MessageID, body)
	if r.Oversize > 0 || !isTooLarge(err) {
		return err
	}
	text, errText := r.Text()
	if errText != nil {
		return err
	}
	r.Oversize, r.Body = int64(len(text)), ""
	if body, err = r.Encode(); err != nil {
		return err
	}
	return h.send(ctx, r.ConnectionID, r.MessageID, body)
}

func isTooLarge(err error) bool {
	var e *callError
	return errors.As(err, &e) && (e.code == "InvalidParameterValue" || e.code == "InvalidParameterValueException" ||
		e.code == "RequestEntityTooLarge")
}

func (h *handler) send(ctx context.Context, group, id, body string) (err error) {
	start := time.Now()
	defer func() { h.o.Observer.Invoked("ingress", resultOf(err), time.Since(start)) }()
	try, cancel := context.WithTimeout(ctx, h.o.Timeout)
	defer cancel()
	_, err = h.o.Ingress.SendMessage(try, &awssqs.SendMessageInput{
		QueueUrl: &h.o.IngressURL, MessageBody: &body, MessageGroupId: &group, MessageDeduplicationId: &id,
	})
	if err != nil {
		return h.classify(ctx, try, "the ingress queue", err)
	}
	return nil
}
