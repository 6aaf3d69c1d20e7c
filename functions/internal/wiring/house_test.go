package wiring_test

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/apigatewaymanagementapi"
	awssns "github.com/aws/aws-sdk-go-v2/service/sns"
	awssqs "github.com/aws/aws-sdk-go-v2/service/sqs"

	"blindpost/functions/internal/wiring"
	"blindpost/shared/gateway/apigw"
	"blindpost/shared/proof/apigwtest"
	"blindpost/shared/proof/rig"
	"blindpost/shared/proof/sqstest"
	"blindpost/shared/push/sns"
	"blindpost/shared/queue/sqs"
	"blindpost/shared/settings"
	"blindpost/shared/table"
	"blindpost/shared/table/mem"
)

const (
	edgeSecret = "the-word-of-the-edge"
	secretARN  = "arn:aws:secretsmanager:eu-central-1:000000000000:secret:edge"

	aelosSecret = "the-word-that-admission-tokens-are-signed-with"
	aelosARN    = "arn:aws:secretsmanager:eu-central-1:000000000000:secret:aelos"

	iosApp     = "arn:aws:sns:eu-central-1:000000000000:app/APNS/blindpost"
	androidApp = "arn:aws:sns:eu-central-1:000000000000:app/GCM/blindpost"
)

// house is the whole stack in one process: API Gateway, the functions, the queues,
// the table and SNS.
type house struct {
	*apigwtest.Emulator
	t       *testing.T
	sqs     *sqstest.Server
	jobs    string // URL
	ingress string
	table   *mem.Table
	sns     *provider
	log     *rig.Log
	config  settings.Values
	asked   sync.Map // what clients were made, by name

	ahead atomic.Int64 // nanoseconds by which the relay's clock is ahead
	mute  atomic.Bool  // $disconnect is not told
	muted atomic.Int64 // how many were not

	mu   sync.Mutex
	free []*wiring.App // processes that do nothing
	made int
}

func (h *house) now() time.Time { return time.Now().Add(time.Duration(h.ahead.Load())) }

// open builds a house. env are further settings; direct is without the ingress
// queue.
func open(t *testing.T, binary, direct bool, env ...string) *house {
	h := &house{t: t, sqs: sqstest.NewServer(1), sns: newProvider(), log: &rig.Log{}}
	h.table = mem.New(h.now)
	h.jobs = h.sqs.Create(sqstest.Queue{Name: "jobs", MaxReceive: 8, Repeat: 0.2})
	environ := append([]string{
		"BLINDPOST_TABLE=a table", "BLINDPOST_JOBS_QUEUE_URL=" + h.jobs, "BLINDPOST_LOG_LEVEL=debug",
		"BLINDPOST_ORIGIN_SECRET_ARN=" + secretARN, "BLINDPOST_SNS_IOS_ARN=" + iosApp, "BLINDPOST_SNS_ANDROID_ARN=" + androidApp,
		"UNRELATED=x",
	}, env...)
	cfg := apigwtest.Config{
		Edge: edgeSecret, Binary: binary,
		Connect: h.function(wiring.Connect), Default: h.function(wiring.Message), Disconnect: h.disconnect,
	}
	if !direct {
		h.ingress = h.sqs.Create(sqstest.Queue{Name: "ingress.fifo", MaxReceive: 5})
		environ = append(environ, "BLINDPOST_INGRESS_QUEUE_URL="+h.ingress)
		cfg.Integration = h.sendToIngress
	}
	var err error
	if h.config, err = wiring.Load(environ, wiring.Message); err != nil {
		t.Fatal(err)
	}
	// The event sources end after the API, whose last disconnects they carry.
	h.sqs.Serve(t, h.jobs, time.Minute, h.source(wiring.Sweeper))
	if !direct {
		h.sqs.Serve(t, h.ingress, 30*time.Second, h.source(wiring.Message))
	}
	h.Emulator = apigwtest.Start(t, cfg)
	// Its address is none of API Gateway's own.
	h.mu.Lock()
	if err := h.config.Set("", settings.Variable, "api-callback-url", h.Callback()); err != nil {
		t.Fatal(err)
	}
	h.mu.Unlock()
	return h
}

func (h *house) backend(process int) wiring.Backend {
	seen := func(name string) { h.asked.Store(name, true) }
	var ids atomic.Uint64
	return wiring.Backend{
		Table: func(context.Context) (table.Table, error) { seen("table"); return h.table, nil },
		SQS:   func(context.Context) (sqs.API, error) { seen("sqs"); return h.sqs, nil },
		SNS:   func(context.Context) (sns.API, error) { seen("sns"); return h.sns, nil },
		Connections: func(_ context.Context, endpoint string) (apigw.API, error) {
			seen("connections")
			return apigatewaymanagementapi.New(apigatewaymanagementapi.Options{
				BaseEndpoint: &endpoint, Region: "eu-central-1", HTTPClient: h.Client(),
				Credentials: credentials.NewStaticCredentialsProvider("id", "key", ""),
			}), nil
		},
		Secret: func(_ context.Context, arn string) (string, error) {
			switch arn {
			case secretARN:
				return "an-older-word\n" + edgeSecret, nil
			case aelosARN:
				return strings.Repeat("an older one ", 3) + "\n" + aelosSecret, nil
			}
			return "", fmt.Errorf("there is no secret %s", arn)
		},
		Log: slog.New(slog.NewJSONHandler(h.log, &slog.HandlerOptions{Level: slog.LevelDebug})),
		Now: h.now, Random: rand.Reader,
		NewID: func() string { return fmt.Sprintf("process%d.%d", process, ids.Add(1)) },
	}
}

// function is a Lambda function: each call has a process to itself, the one that
// has been idle for longest or a new one, so that nothing can rest on what is in
// memory.
func (h *house) function(f wiring.Function) apigwtest.Function {
	return func(ctx context.Context, payload []byte) ([]byte, error) {
		app := h.process()
		defer h.release(app)
		return app.Invoke(ctx, f, payload)
	}
}

func (h *house) disconnect(ctx context.Context, payload []byte) ([]byte, error) {
	if h.mute.Load() {
		h.muted.Add(1)
		return nil, nil
	}
	return h.function(wiring.Disconnect)(ctx, payload)
}

func (h *house) process() *wiring.App {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.free) < 2 { // never the one that has just been used
		h.made++
		return wiring.New(h.config, h.backend(h.made))
	}
	app := h.free[0]
	h.free = h.free[1:]
	return app
}

func (h *house) release(app *wiring.App) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.free = append(h.free, app)
}

// source makes a function of a queue.
func (h *house) source(f wiring.Function) sqstest.Function {
	call := h.function(f)
	return func(ctx context.Context, e events.SQSEvent) (res events.SQSEventResponse, err error) {
		payload, err := json.Marshal(e)
		if err != nil {
			return res, err
		}
		out, err := call(ctx, payload)
		if err != nil {
			return res, err
		}
		return res, json.Unmarshal(out, &res)
	}
}

// sendToIngress is SQS as the integration of API Gateway calls it.
func (h *house) sendToIngress(ctx context.Context, form url.Values) error {
	group, id, body := form.Get("MessageGroupId"), form.Get("MessageDeduplicationId"), form.Get("MessageBody")
	_, err := h.sqs.SendMessage(ctx, &awssqs.SendMessageInput{
		QueueUrl: &h.ingress, MessageGroupId: &group, MessageDeduplicationId: &id, MessageBody: &body,
	})
	return err
}

// provider is SNS: it keeps what is published.
type provider struct {
	sns.API
	mu     sync.Mutex
	tokens map[string]string // by endpoint
	pushed []pushed
}

type pushed struct {
	token   string
	android bool
	payload []byte
}

func newProvider() *provider { return &provider{tokens: map[string]string{}} }

func (p *provider) CreatePlatformEndpoint(_ context.Context, in *awssns.CreatePlatformEndpointInput, _ ...func(*awssns.Options)) (*awssns.CreatePlatformEndpointOutput, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	arn := strings.Replace(*in.PlatformApplicationArn, ":app/", ":endpoint/", 1) + fmt.Sprintf("/%x", *in.Token)
	p.tokens[arn] = *in.Token
	return &awssns.CreatePlatformEndpointOutput{EndpointArn: &arn}, nil
}

func (p *provider) Publish(_ context.Context, in *awssns.PublishInput, _ ...func(*awssns.Options)) (*awssns.PublishOutput, error) {
	var m map[string]string
	if err := json.Unmarshal([]byte(*in.Message), &m); err != nil {
		return nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	out := pushed{token: p.tokens[*in.TargetArn]}
	_, out.android = m["GCM"]
	out.payload = []byte(m["APNS"] + m["GCM"])
	p.pushed = append(p.pushed, out)
	return &awssns.PublishOutput{}, nil
}

func (p *provider) pushes() []pushed {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]pushed(nil), p.pushed...)
}
