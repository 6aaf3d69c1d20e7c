package wiring

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/apigatewaymanagementapi"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	awssns "github.com/aws/aws-sdk-go-v2/service/sns"
	awssqs "github.com/aws/aws-sdk-go-v2/service/sqs"

	"blindpost/shared/gateway"
	"blindpost/shared/gateway/apigw"
	"blindpost/shared/push"
	"blindpost/shared/push/sns"
	"blindpost/shared/queue"
	"blindpost/shared/queue/sqs"
	"blindpost/shared/table"
	"blindpost/shared/table/dynamo"
)

// A thawed function does not reuse a connection that has died meanwhile, and none of its
// calls waits for as long as the function may take.
func TestHTTPClient(t *testing.T) {
	c := newHTTPClient()
	tr := c.GetTransport()
	if tr.IdleConnTimeout != 20*time.Second || tr.TLSHandshakeTimeout != 3*time.Second || tr.ResponseHeaderTimeout != 10*time.Second {
		t.Errorf("idle %v, TLS %v, answer %v", tr.IdleConnTimeout, tr.TLSHandshakeTimeout, tr.ResponseHeaderTimeout)
	}
	if d := c.GetDialer(); d.Timeout != 3*time.Second {
		t.Errorf("dial %v", d.Timeout)
	}
}

// wire looks at the bodies of the requests and refuses each for good, so that no client
// tries again.
type wire struct {
	sent  int
	hasty int // bodies that net/http may ask to write themselves
}

var errOnPurpose = errors.New("failed on purpose")

func (w *wire) Do(r *http.Request) (*http.Response, error) {
	if r.Body != nil {
		w.sent++
		if _, ok := r.Body.(io.WriterTo); ok {
			w.hasty++
		}
	}
	return &http.Response{
		StatusCode: http.StatusForbidden, Header: http.Header{"X-Amzn-Errortype": {"AccessDeniedException"}},
		Body: io.NopCloser(strings.NewReader("{}")), Request: r,
	}, nil
}

// All adapters wait for the answers of AWS (see awsclient.Patient), also with clients that
// were made elsewhere.
func TestAdaptersArePatient(t *testing.T) {
	w := new(wire)
	cfg := aws.Config{
		Region: "eu-central-1", HTTPClient: w, Retryer: func() aws.Retryer { return aws.NopRetryer{} },
		Credentials: credentials.NewStaticCredentialsProvider("id", "key", ""),
	}
	ctx := t.Context()
	queues := func(context.Context) (sqs.API, error) { return awssqs.NewFromConfig(cfg), nil }
	front := apigw.NewFront(apigw.FrontOptions{NewClient: func(context.Context, string) (apigw.API, error) {
		return apigatewaymanagementapi.NewFromConfig(cfg, func(o *apigatewaymanagementapi.Options) {
			o.BaseEndpoint = aws.String("https://api.example/prod")
		}), nil
	}})
	pushes, err := sns.New(func(context.Context) (sns.API, error) { return awssns.NewFromConfig(cfg), nil },
		sns.Options{Android: "arn:aws:sns:eu-central-1:000000000000:app/GCM/blindpost", Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	const conn = gateway.Conn("id@https://api.example/prod")
	for name, call := range map[string]func() error{
		"dynamo": func() error {
			return dynamo.New(dynamodb.NewFromConfig(cfg), dynamo.Options{Table: "t"}).Transact(ctx, []table.Op{
				{Action: table.Delete, Key: table.Key{Partition: "p", Sort: "s"}}, {Action: table.Delete, Key: table.Key{Partition: "p", Sort: "t"}},
			})
		},
		"sqs": func() error {
			return sqs.New(queues, sqs.Options{Standard: "https://sqs.example/q"}).Send(ctx, queue.Job{Kind: "k"})
		},
		"sqs consumer": func() error {
			c := sqs.NewConsumer(queues, sqs.ConsumerOptions{QueueURL: "https://sqs.example/q"})
			c.Consume(ctx, events.SQSEvent{Records: []events.SQSMessage{{MessageId: "m", ReceiptHandle: "r"}}},
				func(context.Context, sqs.Message) error { return errOnPurpose })
			return errOnPurpose
		},
		"apigw": func() error {
			_, err := front.Post(ctx, conn, gateway.Message{Data: []byte("x")})
			return err
		},
		"sns": func() error {
			return pushes.Send(ctx, push.Notification{Platform: push.Android, Token: "t", Payload: []byte("{}")})
		},
	} {
		*w = wire{}
		if err := call(); err == nil {
			t.Errorf("%s had no error", name)
		}
		if w.sent == 0 || w.hasty > 0 {
			t.Errorf("%s sent %d bodies, of which %d write themselves", name, w.sent, w.hasty)
		}
	}
	// The client by itself is not.
	*w = wire{}
	_, _ = awssqs.NewFromConfig(cfg).SendMessage(ctx, &awssqs.SendMessageInput{QueueUrl: aws.String("https://sqs.example/q"), MessageBody: aws.String("x")})
	if w.hasty != 1 {
		t.Errorf("the client of AWS sent %d hasty bodies of %d: Patient is no longer needed", w.hasty, w.sent)
	}
}
