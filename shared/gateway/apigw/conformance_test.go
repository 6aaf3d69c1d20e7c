package apigw_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"sync"
	"testing"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	api "github.com/aws/aws-sdk-go-v2/service/apigatewaymanagementapi"

	"blindpost/shared/gateway"
	"blindpost/shared/gateway/apigw"
	"blindpost/shared/gateway/apigw/record"
	"blindpost/shared/proof/apigwtest"
	"blindpost/shared/proof/gatewaytest"
	"blindpost/shared/queue"
)

const edgeSecret = "the edge's secret"

// rig is an adapter between the emulator and a handler.
type rig struct {
	*apigw.Adapter
	front    *apigw.Front
	emulator *apigwtest.Emulator
	jobs     sync.WaitGroup
}

var _ queue.Queue = (*rig)(nil)

// newRig puts the handler behind the emulator: frames come by way of the
// integration with a queue, or straight as proxy events.
func newRig(t *testing.T, h gateway.Handler, integration bool) *rig {
	r := &rig{}
	cfg := apigwtest.Config{
		Edge: edgeSecret,
		Connect: func(ctx context.Context, payload []byte) ([]byte, error) {
			var e events.APIGatewayWebsocketProxyRequest
			if err := json.Unmarshal(payload, &e); err != nil {
				return nil, err
			}
			res, err := r.Connect(ctx, e)
			if err != nil {
				return nil, err
			}
			return json.Marshal(res)
		},
		Default:    r.proxy,
		Disconnect: r.proxy,
	}
	if integration {
		cfg.Integration = func(ctx context.Context, form url.Values) error {
			rec, ok, err := record.Parse(form.Get("MessageBody"))
			if err != nil || !ok {
				return fmt.Errorf("no record in %v: %w", form, err)
			}
			return r.Handle(ctx, rec, "queue's id")
		}
	}
	r.emulator = apigwtest.Start(t, cfg)
	t.Cleanup(r.jobs.Wait)
	client := r.emulator.Client()
	r.front = apigw.NewFront(apigw.FrontOptions{
		NewClient: func(_ context.Context, endpoint string) (apigw.API, error) { return newClient(client, endpoint), nil },
	})
	r.Adapter = apigw.New(apigw.Options{
		Handler: h, Front: r.front, Queue: r, OriginHeader: "x-origin-secret",
		Origin: func(_ context.Context, v string) (bool, error) { return v == edgeSecret, nil },
	})
	return r
}

func newClient(c *http.Client, endpoint string) *api.Client {
	return api.New(api.Options{
		BaseEndpoint: &endpoint, Region: "eu-central-1", HTTPClient: c,
		Credentials: aws.NewCredentialsCache(credentials.NewStaticCredentialsProvider("id", "key", "")),
	})
}

func (r *rig) proxy(ctx context.Context, payload []byte) ([]byte, error) {
	var e events.APIGatewayWebsocketProxyRequest
	if err := json.Unmarshal(payload, &e); err != nil {
		return nil, err
	}
	rec, err := apigw.RecordOf(e)
	if err != nil {
		return nil, err
	}
	return []byte("{}"), r.Handle(ctx, rec, "")
}

// Send runs a job at once, as soon as a queue can: $connect has not returned yet.
func (r *rig) Send(_ context.Context, j queue.Job) error {
	r.jobs.Go(func() {
		run := r.Job(func(context.Context, queue.Job) error { return fmt.Errorf("job of kind %q", j.Kind) })
		for j.Attempt = 1; j.Attempt < 5; j.Attempt++ {
			if run(context.Background(), j) == nil {
				return
			}
		}
	})
	return nil
}

func TestConformance(t *testing.T) {
	for _, integration := range []bool{true, false} {
		t.Run(map[bool]string{true: "by way of a queue", false: "direct"}[integration], func(t *testing.T) {
			gatewaytest.Run(t, func(t *testing.T, h gateway.Handler) gatewaytest.Harness {
				r := newRig(t, h, integration)
				return gatewaytest.Harness{
					Front: r.front, URL: r.emulator.URL(), Client: r.emulator.Client(),
					Paths: true, Base64: true, FirstByJob: true,
					MaxMessage: apigw.MaxMessage / 4 * 3,
				}
			})
		})
	}
}
