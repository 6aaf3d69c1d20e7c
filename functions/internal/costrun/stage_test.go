package costrun

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/apigatewaymanagementapi"
	awssqs "github.com/aws/aws-sdk-go-v2/service/sqs"

	"blindpost/functions/internal/wiring"
	"blindpost/shared/gateway/apigw"
	"blindpost/shared/proof/apigwtest"
	"blindpost/shared/proof/cost"
	"blindpost/shared/proof/meter"
	"blindpost/shared/proof/sqstest"
	"blindpost/shared/push/sns"
	"blindpost/shared/queue/sqs"
	"blindpost/shared/settings"
	"blindpost/shared/table"
	"blindpost/shared/table/mem"
)

const (
	// maxAge is when API Gateway ends a connection.
	maxAge = 2 * time.Hour
	// sweepEvery is the schedule of the stack.
	sweepEvery = time.Minute
	androidApp = "arn:aws:sns:eu-central-1:000000000000:app/GCM/blindpost"
)

// stage is the stack in one process and in the time of a bubble, with meters on all
// that AWS charges for.
type stage struct {
	t        *testing.T
	api      *apigwtest.Emulator
	queues   *queues
	server   *sqstest.Server
	jobs     string // URL
	ingress  string
	table    *meter.Table
	bytes    *sizes
	provider *provider
	log      *logbook
	config   settings.Values
	stop     chan struct{} // ends the schedule
	stopped  chan struct{}

	mu         sync.Mutex
	free       map[wiring.Function][]process
	made       int
	functions  map[string]cost.Function
	logged     int // by Lambda itself
	disconnect int // how many were told
}

// process is one that does nothing.
type process struct {
	app   *wiring.App
	since time.Time
}

// open builds a stage. connectionAge is when API Gateway ends a connection.
func open(t *testing.T, connectionAge time.Duration) *stage {
	s := &stage{
		t: t, server: sqstest.NewServer(1), provider: &provider{}, log: &logbook{},
		free: map[wiring.Function][]process{}, functions: map[string]cost.Function{},
		stop: make(chan struct{}), stopped: make(chan struct{}),
	}
	s.bytes = newSizes(mem.New(time.Now))
	s.table = meter.New(s.bytes)
	s.jobs = s.server.Create(sqstest.Queue{Name: "jobs", MaxReceive: 8, Visibility: 150 * time.Second})
	s.ingress = s.server.Create(sqstest.Queue{Name: "ingress.fifo", MaxReceive: 5, Visibility: time.Minute})
	s.queues = &queues{API: s.server, names: map[string]string{s.jobs: "jobs", s.ingress: "ingress"}, use: map[string]cost.Queue{}}
	var err error
	s.config, err = wiring.Load([]string{
		"BLINDPOST_TABLE=a table", "BLINDPOST_JOBS_QUEUE_URL=" + s.jobs, "BLINDPOST_INGRESS_QUEUE_URL=" + s.ingress,
		"BLINDPOST_SNS_ANDROID_ARN=" + androidApp,
	}, wiring.Message)
	if err != nil {
		t.Fatal(err)
	}
	s.server.Serve(t, s.jobs, time.Minute, s.source(wiring.Sweeper, s.jobs))
	s.server.Serve(t, s.ingress, 30*time.Second, s.source(wiring.Message, s.ingress))
	s.api = apigwtest.Start(t, apigwtest.Config{
		Connect: s.function(wiring.Connect), Disconnect: s.function(wiring.Disconnect), Integration: s.sendToIngress,
		InMemory: true, MaxAge: connectionAge,
	})
	// Its address is none of API Gateway's own.
	if err := s.config.Set("", settings.Variable, "api-callback-url", s.api.Callback()); err != nil {
		t.Fatal(err)
	}
	go s.schedule()
	t.Cleanup(func() {
		close(s.stop)
		<-s.stopped
		s.api.Client().Transport.(*http.Transport).CloseIdleConnections()
	})
	return s
}

func (s *stage) backend(process int) wiring.Backend {
	var ids atomic.Uint64
	return wiring.Backend{
		Table: func(context.Context) (table.Table, error) { return slowTable{s.table}, nil },
		SQS:   func(context.Context) (sqs.API, error) { return s.queues, nil },
		SNS:   func(context.Context) (sns.API, error) { return s.provider, nil },
		Connections: func(_ context.Context, endpoint string) (apigw.API, error) {
			return slowConnections{apigatewaymanagementapi.New(apigatewaymanagementapi.Options{
				BaseEndpoint: &endpoint, Region: "eu-central-1", HTTPClient: s.api.Client(),
				Credentials: credentials.NewStaticCredentialsProvider("id", "key", ""),
			})}, nil
		},
		Log: slog.New(slog.NewJSONHandler(s.log, &slog.HandlerOptions{Level: slog.LevelInfo})),
		Now: time.Now, Random: rand.Reader,
		NewID: func() string { return fmt.Sprintf("process%d.%d", process, ids.Add(1)) },
	}
}

// function is a Lambda function: the process that was used last, or a new one.
func (s *stage) function(f wiring.Function) apigwtest.Function {
	return func(ctx context.Context, payload []byte) ([]byte, error) {
		begin := time.Now()
		app, cold := s.take(f)
		if cold {
			time.Sleep(initTime)
		}
		time.Sleep(workTime)
		out, err := app.Invoke(ctx, f, payload)
		s.release(f, app, cold, time.Since(begin))
		return out, err
	}
}

func (s *stage) take(f wiring.Function) (app *wiring.App, cold bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := s.free[f]
	for len(list) > 0 && time.Since(list[0].since) > idleLife {
		list = list[1:]
	}
	if n := len(list); n > 0 {
		s.free[f] = list[:n-1]
		return list[n-1].app, false
	}
	s.free[f] = nil
	s.made++
	return wiring.New(s.config, s.backend(s.made)), true
}

func (s *stage) release(f wiring.Function, app *wiring.App, cold bool, took time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.free[f] = append(s.free[f], process{app, time.Now()})
	u := s.functions[string(f)]
	u.Calls++
	u.Milliseconds += float64((took + time.Millisecond - 1) / time.Millisecond)
	if cold {
		u.Cold++
	}
	s.functions[string(f)] = u
	s.logged += platformLog
	if f == wiring.Disconnect {
		s.disconnect++
	}
}

// source makes a function of a queue. A batch was received with one request, and is
// deleted with another.
func (s *stage) source(f wiring.Function, url string) sqstest.Function {
	call := s.function(f)
	return func(ctx context.Context, e events.SQSEvent) (res events.SQSEventResponse, err error) {
		payload, err := json.Marshal(e)
		if err != nil {
			return res, err
		}
		bytes := 0
		for _, r := range e.Records {
			bytes += len(r.Body)
		}
		s.queues.count(url, func(u *cost.Queue) { u.Receives += requests(bytes) })
		out, err := call(ctx, payload)
		if err != nil {
			return res, err
		}
		if err := json.Unmarshal(out, &res); err != nil {
			return res, err
		}
		if len(res.BatchItemFailures) < len(e.Records) {
			s.queues.count(url, func(u *cost.Queue) { u.Deletes++ })
		}
		return res, nil
	}
}

// sendToIngress is SQS as the integration of API Gateway calls it.
func (s *stage) sendToIngress(ctx context.Context, form url.Values) error {
	group, id, body := form.Get("MessageGroupId"), form.Get("MessageDeduplicationId"), form.Get("MessageBody")
	_, err := s.queues.put(ctx, &awssqs.SendMessageInput{
		QueueUrl: &s.ingress, MessageGroupId: &group, MessageDeduplicationId: &id, MessageBody: &body,
	})
	return err
}

func (s *stage) schedule() {
	defer close(s.stopped)
	tick := time.NewTicker(sweepEvery)
	defer tick.Stop()
	sweep := s.function(wiring.Sweeper)
	for {
		select {
		case <-s.stop:
			return
		case <-tick.C:
			if _, err := sweep(context.Background(), []byte(`{"source":"aws.events"}`)); err != nil {
				s.t.Errorf("the sweeper failed: %v", err)
			}
		}
	}
}
