package invoke_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	awssqs "github.com/aws/aws-sdk-go-v2/service/sqs"
	"go.uber.org/goleak"

	"blindpost/shared/gateway"
	"blindpost/shared/gateway/apigw"
	"blindpost/shared/gateway/apigw/record"
	"blindpost/shared/gateway/remote/callback"
	"blindpost/shared/gateway/remote/invoke"
	"blindpost/shared/gateway/server"
	"blindpost/shared/queue"
	"blindpost/shared/settings/secret"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const word = "a-secret-of-the-front-and-the-functions"

// rig is a front, and functions in this process that it invokes: the adapter in front
// of a handler, with a client for the callbacks.
type rig struct {
	t        *testing.T
	url      string // ws://...
	callback string
	front    *invoke.Front
	actions  *apigw.Front // what the handler acts through
	adapter  *apigw.Adapter
	jobs     sync.WaitGroup

	mu sync.Mutex
	// instead, if set, answers calls of functions; nil, nil goes on.
	instead func(name string, payload []byte) (*lambda.InvokeOutput, error)
	// refuse, if set, answers for the queue.
	refuse  func(in *awssqs.SendMessageInput) error
	events  []json.RawMessage
	records []string
	lines   map[string]chan record.Record // ingress, a line for each group
	ending  bool
	working sync.WaitGroup
}

var (
	_ invoke.Lambda = (*rig)(nil)
	_ invoke.SQS    = (*rig)(nil)
	_ queue.Queue   = (*rig)(nil)
)

func shared(w string) *secret.Rotating {
	return secret.New(secret.Options{Read: func(context.Context) (string, error) { return w, nil }})
}

func open(t *testing.T, h gateway.Handler, ingress bool, change func(*invoke.Options)) *rig {
	r := &rig{t: t, lines: map[string]chan record.Record{}}
	clients, callbacks := listen(t), listen(t)
	r.url, r.callback = "ws://"+clients.Addr().String(), "http://"+callbacks.Addr().String()
	o := invoke.Options{
		Server: server.Options{
			TrustedProxies: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}, Logger: slog.New(slog.DiscardHandler),
			ReadLimit: 1 << 20, CloseWait: time.Second, Rand: func() float64 { return 0 },
		},
		Lambda: r, Functions: invoke.Functions{Connect: "c", Message: "m", Disconnect: "d"},
		Callback: r.callback, Check: shared(word).Check,
	}
	if ingress {
		o.Ingress, o.IngressURL = r, "https://sqs.example/1/ingress.fifo"
	}
	if change != nil {
		change(&o)
	}
	var err error
	if r.front, err = invoke.New(o); err != nil {
		t.Fatal(err)
	}
	transport := callback.NewTransport()
	r.actions = apigw.NewFront(apigw.FrontOptions{
		NewClient: func(context.Context, string) (apigw.API, error) { return nil, errors.New("API Gateway was called") },
		Fronts:    []string{r.callback},
		NewRemote: func(_ context.Context, address string) (apigw.RemoteFront, error) {
			return callback.NewClient(address, shared(word), transport), nil
		},
	})
	r.adapter = apigw.New(apigw.Options{Handler: h, Front: r.actions, Queue: r, Fronts: []string{r.callback}})
	served := make(chan error, 1)
	go func() { served <- r.front.Serve(context.Background(), clients, callbacks) }()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		defer cancel()
		if err := r.front.Shutdown(ctx, 0); err != nil {
			t.Error(err)
		}
		if err := <-served; err != nil {
			t.Error(err)
		}
		r.mu.Lock()
		r.ending = true
		for _, line := range r.lines {
			close(line)
		}
		r.mu.Unlock()
		r.working.Wait()
		r.jobs.Wait()
		transport.CloseIdleConnections()
	})
	return r
}

func listen(t *testing.T) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// header is what the proxy in front of the front says.
func header() http.Header { return http.Header{"X-Forwarded-Proto": {"https"}} }

// Invoke is Lambda with the functions.
func (r *rig) Invoke(ctx context.Context, in *lambda.InvokeInput, _ ...func(*lambda.Options)) (*lambda.InvokeOutput, error) {
	r.mu.Lock()
	instead := r.instead
	r.events = append(r.events, json.RawMessage(in.Payload))
	r.mu.Unlock()
	if instead != nil {
		if out, err := instead(*in.FunctionName, in.Payload); out != nil || err != nil {
			return out, err
		}
	}
	var e events.APIGatewayWebsocketProxyRequest
	if err := json.Unmarshal(in.Payload, &e); err != nil {
		return nil, err
	}
	var res any = events.APIGatewayProxyResponse{StatusCode: 200}
	var err error
	if *in.FunctionName == "c" {
		res, err = r.adapter.Connect(ctx, e)
	} else if err = r.handle(ctx, e); err == nil && *in.FunctionName == "d" {
		r.endLine(e.RequestContext.ConnectionID)
	}
	return answerOf(res, err)
}

// answerOf is an answer of Lambda: the error of a function is none of the call.
func answerOf(res any, failed error) (*lambda.InvokeOutput, error) {
	if failed != nil {
		res = map[string]string{"errorMessage": "some payload"}
	}
	payload, err := json.Marshal(res)
	out := &lambda.InvokeOutput{StatusCode: 200, Payload: payload}
	if failed != nil {
		out.FunctionError = aws.String("Unhandled")
	}
	return out, err
}

func (r *rig) handle(ctx context.Context, e events.APIGatewayWebsocketProxyRequest) error {
	rec, err := apigw.RecordOf(e)
	if err != nil {
		return err
	}
	r.mu.Lock()
	line := r.lines[rec.ConnectionID]
	if line != nil && !r.ending { // functions/disconnect, with a queue
		line <- *rec
		r.mu.Unlock()
		return nil
	}
	r.mu.Unlock()
	return r.adapter.Handle(ctx, rec, "")
}

func (r *rig) endLine(id string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if line := r.lines[id]; line != nil && !r.ending {
		delete(r.lines, id)
		close(line)
	}
}

// SendMessage is the ingress queue with functions/message behind it.
func (r *rig) SendMessage(_ context.Context, in *awssqs.SendMessageInput, _ ...func(*awssqs.Options)) (*awssqs.SendMessageOutput, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.refuse != nil {
		if err := r.refuse(in); err != nil {
			return nil, err
		}
	}
	r.records = append(r.records, *in.MessageBody)
	rec, ok, err := record.Parse(*in.MessageBody)
	if err != nil || !ok || rec.ConnectionID != *in.MessageGroupId || rec.MessageID != *in.MessageDeduplicationId {
		return nil, fmt.Errorf("no record of a frame: %s", *in.MessageBody)
	}
	line := r.lines[rec.ConnectionID]
	if line == nil {
		line = make(chan record.Record, 10_000)
		r.lines[rec.ConnectionID] = line
		r.working.Go(func() {
			for rec := range line {
				if r.adapter.Handle(context.Background(), &rec, "") != nil {
					_ = r.adapter.GiveUp(context.Background(), &rec, rec.ConnectionID)
				}
			}
		})
	}
	line <- *rec
	return &awssqs.SendMessageOutput{}, nil
}

// Send runs a job at once, as soon as a queue can: $connect has not returned yet.
func (r *rig) Send(_ context.Context, j queue.Job) error {
	r.jobs.Go(func() {
		run := r.adapter.Job(func(context.Context, queue.Job) error { return fmt.Errorf("job of kind %q", j.Kind) })
		for j.Attempt = 1; j.Attempt < 5; j.Attempt++ {
			if run(context.Background(), j) == nil {
				return
			}
		}
	})
	return nil
}

func (r *rig) setInstead(f func(name string, payload []byte) (*lambda.InvokeOutput, error)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.instead = f
}

func (r *rig) lastEvent() (e events.APIGatewayWebsocketProxyRequest) {
	r.t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := json.Unmarshal(r.events[len(r.events)-1], &e); err != nil {
		r.t.Fatal(err)
	}
	return e
}
