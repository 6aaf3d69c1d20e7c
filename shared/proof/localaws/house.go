//go:build unix

package localaws

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"sync"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"blindpost/shared/proof/sqstest"
	"blindpost/shared/table/dynamo"
)

// Options say what a house is like. Dynamo, Binaries, Fronts and SecretFile are
// required.
type Options struct {
	Dynamo *Dynamo
	// Binaries is the folder that Build has built into.
	Binaries string
	// Fronts are the callback addresses of the fronts, separated by commas, and
	// SecretFile the file with the secret that they want.
	Fronts     string
	SecretFile string
	// Env are further settings of the functions.
	Env []string
	// LambdaAddress is where the Invoke API listens; default is any port.
	LambdaAddress string
	// Direct is without the ingress queue.
	Direct bool
	// Processes is how many there are of each function at most; default 12.
	Processes int
	// Awake leaves processes running between two calls; they are frozen otherwise.
	Awake bool
	// IngressVisibility and JobsVisibility are the visibility timeouts of the queues,
	// by default those of the stack: 60 s and 150 s. IngressAttempts and JobsAttempts
	// are how often a message is tried, by default 5 and 8.
	IngressVisibility, JobsVisibility time.Duration
	IngressAttempts, JobsAttempts     int
	// Repeat is the share of jobs that are delivered twice.
	Repeat float64
	// SweepEvery is the time between two events of the schedule; default 5 min.
	SweepEvery time.Duration
	// Log gets what the functions write.
	Log io.Writer
}

// House is a running set of functions with all that is around them.
type House struct {
	Lambda *Lambda
	Queues *sqstest.Server
	// Jobs and Ingress are the queues as Queues knows them, IngressURL as clients do.
	Jobs, Ingress, IngressURL string
	// Table is the name of the table.
	Table string

	// Environment is what the functions are told.
	Environment []string

	o       Options
	table   *tableProxy
	sns     *snsServer
	url     string
	servers []*http.Server
	cancel  context.CancelFunc
	sources sync.WaitGroup
}

// Timeouts of the functions, as in the stack.
var timeouts = map[string]time.Duration{
	"Connect": 15 * time.Second, "Message": 30 * time.Second, "Disconnect": 10 * time.Second, "Sweeper": time.Minute,
}

// Open builds a house with a table of its own.
func Open(o Options) (_ *House, err error) {
	o = o.withDefaults()
	h := &House{o: o, Queues: sqstest.NewServer(1), sns: &snsServer{tokens: map[string]string{}}}
	defer func() {
		if err != nil {
			h.Close()
		}
	}()
	h.Table = fmt.Sprintf("blindpost-%d", time.Now().UnixNano())
	client := dynamodb.New(dynamodb.Options{
		Region: Region, BaseEndpoint: aws.String(o.Dynamo.URL), Credentials: credentials.NewStaticCredentialsProvider("local", "local", ""),
	})
	if err := dynamo.CreateTable(context.Background(), client, h.Table); err != nil {
		return nil, err
	}
	if h.table, err = newTableProxy(o.Dynamo.URL); err != nil {
		return nil, err
	}
	if h.Lambda, err = NewLambda(o.LambdaAddress, o.Log, !o.Awake); err != nil {
		return nil, err
	}
	h.Jobs = h.Queues.Create(sqstest.Queue{Name: "jobs", Visibility: o.JobsVisibility, MaxReceive: o.JobsAttempts, Repeat: o.Repeat})
	h.Ingress = h.Queues.Create(sqstest.Queue{Name: "ingress.fifo", Visibility: o.IngressVisibility, MaxReceive: o.IngressAttempts})
	tableURL, err := h.serve(h.table)
	if err != nil {
		return nil, err
	}
	if h.url, err = h.serve(h.services()); err != nil {
		return nil, err
	}
	h.IngressURL = h.url + "/" + account + "/ingress.fifo"
	h.Environment = h.environment(tableURL)
	for name, folder := range Names {
		h.Lambda.Add(FunctionSpec{
			Name: name, Binary: filepath.Join(o.Binaries, folder, "bootstrap"), Env: h.Environment,
			Timeout: timeouts[name], Processes: o.Processes,
		})
	}
	var ctx context.Context
	ctx, h.cancel = context.WithCancel(context.Background())
	h.source(ctx, h.Jobs, "Sweeper")
	h.source(ctx, h.Ingress, "Message")
	h.sources.Go(func() { h.schedule(ctx) })
	return h, nil
}

func (o Options) withDefaults() Options {
	if o.LambdaAddress == "" {
		o.LambdaAddress = "127.0.0.1:0"
	}
	if o.Processes == 0 {
		o.Processes = 12
	}
	if o.IngressVisibility == 0 {
		o.IngressVisibility = time.Minute
	}
	if o.JobsVisibility == 0 {
		o.JobsVisibility = 150 * time.Second
	}
	if o.IngressAttempts == 0 {
		o.IngressAttempts = 5
	}
	if o.JobsAttempts == 0 {
		o.JobsAttempts = 8
	}
	if o.SweepEvery == 0 {
		o.SweepEvery = 5 * time.Minute
	}
	if o.Log == nil {
		o.Log = io.Discard
	}
	return o
}

// Close ends everything.
func (h *House) Close() {
	if h.cancel != nil {
		h.cancel()
	}
	if h.Lambda != nil {
		h.Lambda.Close()
	}
	h.sources.Wait()
	for _, s := range h.servers {
		_ = s.Close()
	}
	if h.table != nil {
		h.table.proxy.Transport.(*http.Transport).CloseIdleConnections()
	}
}

// FailTable has requests to the table go wrong as f says, which gets the operation and
// the request; nil ends that.
func (h *House) FailTable(f func(operation string, request []byte) TableFault) { h.table.fail(f) }

// FailQueues has the queues answer with 503 where f is true; nil ends that.
func (h *House) FailQueues(f func(action string) bool) {
	if f == nil {
		h.Queues.Fail(nil)
		return
	}
	h.Queues.Fail(func(action string) error {
		if f(action) {
			return errUnavailable
		}
		return nil
	})
}

// Pushes are what was pushed so far.
func (h *House) Pushes() []Push { return h.sns.all() }

// Sweep is one event of the schedule.
func (h *House) Sweep(ctx context.Context) error {
	event := events.CloudWatchEvent{
		Version: "0", ID: "sweep", DetailType: "Scheduled Event", Source: "aws.events", AccountID: account, Region: Region,
		Time: time.Now(), Resources: []string{"arn:aws:events:" + Region + ":" + account + ":rule/blindpost-sweep"}, Detail: json.RawMessage("{}"),
	}
	payload, err := json.Marshal(event)
	if err != nil {
		return err
	}
	res, err := h.Lambda.Invoke(ctx, "Sweeper", payload)
	if err == nil && res.Error != "" {
		err = errors.New("the sweep failed")
	}
	return err
}

// environment is what the functions are told, all the same.
func (h *House) environment(tableURL string) []string {
	env := []string{
		"AWS_ENDPOINT_URL_DYNAMODB=" + tableURL, "AWS_ENDPOINT_URL_SQS=" + h.url, "AWS_ENDPOINT_URL_SNS=" + h.url + "/sns",
		"BLINDPOST_TABLE=" + h.Table, "BLINDPOST_JOBS_QUEUE_URL=" + h.url + "/" + account + "/jobs",
		"BLINDPOST_FRONTS=" + h.o.Fronts, "BLINDPOST_FRONT_SECRET_FILE=" + h.o.SecretFile,
		"BLINDPOST_SNS_IOS_ARN=" + IOSApplication, "BLINDPOST_SNS_ANDROID_ARN=" + AndroidApplication,
		"BLINDPOST_LOG_LEVEL=debug", fmt.Sprintf("BLINDPOST_INGRESS_ATTEMPTS=%d", h.o.IngressAttempts),
	}
	if !h.o.Direct {
		env = append(env, "BLINDPOST_INGRESS_QUEUE_URL="+h.IngressURL)
	}
	return append(env, h.o.Env...)
}

func (h *House) services() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("/sns/", h.sns)
	mux.Handle("/sns", h.sns)
	mux.Handle("/", &sqsServer{h.Queues, map[string]string{"jobs": h.Jobs, "ingress.fifo": h.Ingress}})
	return mux
}

func (h *House) serve(handler http.Handler) (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", fmt.Errorf("failed to listen: %w", err)
	}
	s := &http.Server{Handler: handler, ReadHeaderTimeout: time.Minute}
	h.servers = append(h.servers, s)
	go func() { _ = s.Serve(l) }()
	return "http://" + l.Addr().String(), nil
}

// source makes a function of a queue. Lambda waits longer than the function may take.
func (h *House) source(ctx context.Context, queue, function string) {
	h.sources.Go(func() {
		h.Queues.Poll(ctx, queue, 10*time.Minute, func(ctx context.Context, e events.SQSEvent) (out events.SQSEventResponse, err error) {
			payload, err := json.Marshal(e)
			if err != nil {
				return out, err
			}
			res, err := h.Lambda.Invoke(ctx, function, payload)
			if err != nil {
				return out, err
			}
			if res.Error != "" {
				return out, errors.New("the function failed")
			}
			return out, json.Unmarshal(res.Payload, &out)
		})
	})
}

func (h *House) schedule(ctx context.Context) {
	t := time.NewTicker(h.o.SweepEvery)
	defer t.Stop()
	for {
		select {
		case <-t.C:
			if err := h.Sweep(ctx); err != nil && ctx.Err() == nil {
				_, _ = fmt.Fprintln(h.o.Log, "sweep:", err)
			}
		case <-ctx.Done():
			return
		}
	}
}
