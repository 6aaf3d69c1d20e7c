package wiring_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"
	api "github.com/aws/aws-sdk-go-v2/service/apigatewaymanagementapi"
	"github.com/aws/aws-sdk-go-v2/service/apigatewaymanagementapi/types"
	"google.golang.org/protobuf/proto"

	"blindpost/functions/internal/wiring"
	"blindpost/shared/dialect/skald/skaldpb"
	"blindpost/shared/gateway/apigw"
	"blindpost/shared/proof/rig"
	"blindpost/shared/proof/sqstest"
	"blindpost/shared/push/sns"
	"blindpost/shared/queue/sqs"
	"blindpost/shared/relay"
	"blindpost/shared/table"
	"blindpost/shared/table/mem"
)

// The connection of the sample events, and when it was opened.
const (
	sampleID   = "eXt4mc2qFiACHgQ="
	sampleConn = sampleID + "@https://k3v9example.execute-api.eu-central-1.amazonaws.com/prod"
)

var sampleTime = time.UnixMilli(1790241140118)

// desk is one App with an AWS that does nothing by itself.
type desk struct {
	*wiring.App
	t             *testing.T
	sqs           *sqstest.Server
	jobs, ingress string // URLs
	table         *mem.Table
	writesOnly    bool // see writer
	peers         *peers
	log           rig.Log
	now           time.Time

	mu    sync.Mutex
	asked []string // what was asked for, each once, in order
	fail  map[string]error
}

func newDesk(t *testing.T, f wiring.Function, env ...string) *desk {
	d := &desk{t: t, sqs: sqstest.NewServer(1), peers: &peers{}, now: sampleTime, fail: map[string]error{}}
	d.table = mem.New(func() time.Time { return d.now })
	d.jobs = d.sqs.Create(sqstest.Queue{Name: "jobs"})
	d.ingress = d.sqs.Create(sqstest.Queue{Name: "ingress.fifo"})
	env = append([]string{"BLINDPOST_TABLE=t", "BLINDPOST_JOBS_QUEUE_URL=" + d.jobs, "BLINDPOST_INGRESS_QUEUE_URL=" + d.ingress}, env...)
	c, err := wiring.Load(env, f)
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	d.App = wiring.New(c, wiring.Backend{
		Table: func(context.Context) (table.Table, error) {
			if d.writesOnly {
				return writer{Table: d.table}, d.ask("table")
			}
			return d.table, d.ask("table")
		},
		SQS: func(context.Context) (sqs.API, error) { return d.sqs, d.ask("sqs") },
		SNS: func(context.Context) (sns.API, error) { return nil, d.ask("sns") },
		Connections: func(_ context.Context, endpoint string) (apigw.API, error) {
			return d.peers, d.ask("connections of " + endpoint)
		},
		Secret: func(context.Context, string) (string, error) { return edgeSecret, d.ask("secret") },
		Log:    slog.New(slog.NewJSONHandler(&d.log, nil)),
		Now:    func() time.Time { return d.now },
		Random: strings.NewReader(strings.Repeat("the challenge of 32 bytes length", 10)),
		NewID:  func() string { n++; return "id" + string(rune('0'+n)) },
	})
	return d
}

func (d *desk) ask(what string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !slices.Contains(d.asked, what) {
		d.asked = append(d.asked, what)
	}
	return d.fail[what]
}

// wantAsked expects that nothing else was connected to.
func (d *desk) wantAsked(want ...string) {
	d.t.Helper()
	if got := strings.Join(d.asked, ", "); got != strings.Join(want, ", ") {
		d.t.Errorf("connected to %s", got)
	}
}

// sample invokes a function with one of its sample events, changed in words.
func (d *desk) sample(f wiring.Function, name string, changes ...string) (string, error) {
	d.t.Helper()
	payload, err := os.ReadFile(filepath.Join("..", "..", string(f), "testdata", name))
	if err != nil {
		d.t.Fatal(err)
	}
	text := strings.NewReplacer(changes...).Replace(string(payload))
	out, err := d.Invoke(d.t.Context(), f, []byte(text))
	return string(out), err
}

// peers is @connections: it keeps what is posted.
type peers struct {
	posted []string
	closed int
	ended  []string // the ids of those that were closed
	err    error
}

func (p *peers) PostToConnection(_ context.Context, in *api.PostToConnectionInput, _ ...func(*api.Options)) (*api.PostToConnectionOutput, error) {
	if p.err == nil {
		p.posted = append(p.posted, *in.ConnectionId+" "+string(in.Data))
	}
	return &api.PostToConnectionOutput{}, p.err
}

func (p *peers) DeleteConnection(_ context.Context, in *api.DeleteConnectionInput, _ ...func(*api.Options)) (*api.DeleteConnectionOutput, error) {
	p.closed++
	p.ended = append(p.ended, *in.ConnectionId)
	return &api.DeleteConnectionOutput{}, p.err
}

func (p *peers) GetConnection(context.Context, *api.GetConnectionInput, ...func(*api.Options)) (*api.GetConnectionOutput, error) {
	return &api.GetConnectionOutput{}, p.err
}

// frame reads what was posted.
func frame(t *testing.T, posted string) *skaldpb.RelayFrame {
	t.Helper()
	_, text, _ := strings.Cut(posted, " ")
	data, err := base64.StdEncoding.DecodeString(text)
	f := new(skaldpb.RelayFrame)
	if err != nil || proto.Unmarshal(data, f) != nil {
		t.Fatalf("%q is no frame", posted)
	}
	return f
}

// writer is a table that is written to, and is read for one item only: a connection
// without credentials costs one read, that of its own record, in case $connect is repeated.
type writer struct{ table.Table }

var errNoRight = errors.New("the role has no right to do that")

func (w writer) Get(ctx context.Context, k table.Key) (table.Item, error) {
	if strings.HasPrefix(k.Partition, relay.ConnPartition) {
		return w.Table.Get(ctx, k)
	}
	return table.Item{}, errNoRight
}
func (writer) Query(context.Context, table.Query) (table.Page, error) {
	return table.Page{}, errNoRight
}
func (writer) Transact(context.Context, []table.Op) error { return errNoRight }

func (w writer) Write(ctx context.Context, op table.Op) (table.Item, error) {
	if op.Action != table.Put && op.Action != table.Update {
		return table.Item{}, errNoRight
	}
	return w.Table.Write(ctx, op)
}

func TestSampleConnect(t *testing.T) {
	d := newDesk(t, wiring.Connect)
	d.writesOnly = true
	out, err := d.sample(wiring.Connect, "connect.json")
	if err != nil {
		t.Fatal(err)
	}
	var res events.APIGatewayProxyResponse
	if err := json.Unmarshal([]byte(out), &res); err != nil || res.StatusCode != 200 {
		t.Errorf("answer is %s", out)
	}
	// The challenge goes by the ordered queue, the timeout by the other.
	first, later := d.sqs.Bodies(d.ingress), d.sqs.Bodies(d.jobs)
	if len(first) != 1 || !strings.HasPrefix(first[0], `{"kind":"apigw.first","group":"`+sampleConn+`"`) {
		t.Errorf("ingress holds %q", first)
	}
	if len(later) != 1 || !strings.Contains(later[0], `"kind":"skald.timeout"`) || !strings.HasSuffix(later[0], `"at":1790241170118}`) {
		t.Errorf("jobs holds %q", later)
	}
	it, err := d.table.Get(t.Context(), table.Key{Partition: "c/" + sampleConn, Sort: "c"})
	if err != nil || !it.Expires.Equal(time.Unix(1790241140+2*3600+600, 0)) && !it.Expires.Equal(time.Unix(1790241141+2*3600+600, 0)) {
		t.Errorf("record %v, %v", it, err)
	}
	if _, err := d.table.Get(t.Context(), table.Key{Partition: "ip/203.0.113.77", Sort: "n"}); err != nil {
		t.Errorf("the address was not counted: %v", err)
	}
	d.wantAsked("table", "sqs")
}

func TestSampleConnectByTheEdge(t *testing.T) {
	d := newDesk(t, wiring.Connect, "BLINDPOST_ORIGIN_SECRET_ARN="+secretARN)
	out, err := d.sample(wiring.Connect, "connect-edge.json")
	if err != nil || !strings.Contains(out, `"Sec-WebSocket-Protocol":"relay.v1"`) {
		t.Errorf("answer is %s, %v", out, err)
	}
	if _, err := d.table.Get(t.Context(), table.Key{Partition: "ip/2001:db8:7::/64", Sort: "n"}); err != nil {
		t.Errorf("the client's address was not counted: %v", err)
	}
	if out, err = d.sample(wiring.Connect, "connect-edge.json", `"/v1/ws"`, `"/v9/none"`); err != nil || !strings.Contains(out, `"statusCode":404`) {
		t.Errorf("answer is %s, %v", out, err)
	}
	d = newDesk(t, wiring.Connect, "BLINDPOST_ORIGIN_SECRET_ARN="+secretARN)
	d.fail["secret"] = errors.New("no secrets today")
	if _, err := d.sample(wiring.Connect, "connect-edge.json"); err != nil {
		t.Errorf("without the secret: %v", err)
	}
	if _, err := d.table.Get(t.Context(), table.Key{Partition: "ip/130.176.0.1", Sort: "n"}); err != nil {
		t.Errorf("no address was counted: %v", err)
	}
}

func TestSampleConnectIsRefused(t *testing.T) {
	d := newDesk(t, wiring.Connect, "BLINDPOST_CONNECTIONS_PER_IP=1")
	for i, want := range []string{`"statusCode":200`, `"statusCode":429,"headers":{"Content-Type":"application/json","Retry-After":"60"}`} {
		out, err := d.sample(wiring.Connect, "connect.json", "eXt4mc2qFiACHgQ=", "connection"+string(rune('0'+i)))
		if err != nil || !strings.Contains(out, want) {
			t.Errorf("answer %d is %s, %v", i, out, err)
		}
	}
}

func TestSampleDisconnect(t *testing.T) {
	d := newDesk(t, wiring.Disconnect)
	out, err := d.sample(wiring.Disconnect, "disconnect.json")
	if err != nil || !strings.Contains(out, `"statusCode":200`) {
		t.Errorf("answer is %s, %v", out, err)
	}
	want := `{"event":"DISCONNECT","connectionId":"eXt4mc2qFiACHgQ=","domainName":"k3v9example.execute-api.eu-central-1.amazonaws.com","stage":"prod","requestTimeEpoch":1790241151007,"code":1001,"reason":"Going away"}`
	if got := d.sqs.Bodies(d.ingress); len(got) != 1 || got[0] != want {
		t.Errorf("ingress holds %q", got)
	}
	d.wantAsked("sqs") // it has no rights to anything else
	d.sqs.Fail(func(string) error { return errors.New("no queues today") })
	if _, err := d.sample(wiring.Disconnect, "disconnect.json"); err == nil {
		t.Error("a disconnect was lost without an error")
	}
}

// The sample of the ingress queue has a frame, a job and the end of a connection
// that does not exist: the frame closes it, the others find nothing to do.
func TestSampleIngress(t *testing.T) {
	d := newDesk(t, wiring.Message)
	out, err := d.sample(wiring.Message, "ingress.json")
	if err != nil || out != `{"batchItemFailures":[]}` {
		t.Errorf("answer is %s, %v", out, err)
	}
	if d.peers.closed != 1 || len(d.peers.posted) != 0 {
		t.Errorf("closed %d, posted %q", d.peers.closed, d.peers.posted)
	}
	d.wantAsked("table", "connections of "+strings.TrimPrefix(sampleConn, sampleID+"@"))
}

// After the sample $connect, the sample job says the challenge, and the sample
// frame, which is no Auth, is refused.
func TestSamplesInARow(t *testing.T) {
	d := newDesk(t, wiring.Message)
	if _, err := d.sample(wiring.Connect, "connect.json"); err != nil {
		t.Fatal(err)
	}
	first := d.sqs.Bodies(d.ingress)[0]
	quoted, _ := json.Marshal(first)
	record := `{"Records":[{"messageId":"m","receiptHandle":"r","attributes":{"ApproximateReceiveCount":"1","MessageGroupId":"` + sampleID + `"},"body":` + string(quoted) + `}]}`
	for range 2 { // SQS may deliver twice
		out, err := d.Invoke(t.Context(), wiring.Message, []byte(record))
		if err != nil || string(out) != `{"batchItemFailures":[]}` {
			t.Fatalf("answer is %s, %v", out, err)
		}
	}
	for _, posted := range d.peers.posted { // twice is harmless
		if f := frame(t, posted); len(f.GetChallenge().GetNonce()) != 32 || !strings.HasPrefix(posted, sampleID+" ") {
			t.Errorf("posted %s, %v", posted, f)
		}
	}
	d.peers.posted = nil
	if out, err := d.sample(wiring.Message, "frame-direct.json"); err != nil || !strings.Contains(out, `"statusCode":200`) {
		t.Errorf("answer is %s, %v", out, err)
	}
	if len(d.peers.posted) != 1 || frame(t, d.peers.posted[0]).GetAuthError().GetCode() != "bad_request" || d.peers.closed != 1 {
		t.Errorf("posted %q, closed %d", d.peers.posted, d.peers.closed)
	}
	d.now = d.now.Add(31 * time.Second)
	d.peers.posted = nil
	if out, err := d.sample(wiring.Sweeper, "jobs.json"); err != nil || out != `{"batchItemFailures":[]}` {
		t.Errorf("answer is %s, %v", out, err)
	}
	if len(d.peers.posted) != 1 || frame(t, d.peers.posted[0]).GetAuthError().GetCode() != "challenge_timeout" {
		t.Errorf("posted %q", d.peers.posted)
	}
	if _, err := d.sample(wiring.Message, "ingress.json"); err != nil { // ends in its disconnect
		t.Fatal(err)
	}
	if it, err := d.table.Get(t.Context(), table.Key{Partition: "c/" + sampleConn, Sort: "c"}); !errors.Is(err, table.ErrNotFound) {
		t.Errorf("the record is still there: %v, %v", it, err)
	}
	for _, a := range d.asked {
		if a == "sns" {
			t.Error("SNS was connected to, and nothing was pushed")
		}
	}
}

// A frame that fails comes again; after its last attempt the connection is closed,
// so that the peer learns of it.
func TestFailingFrames(t *testing.T) {
	d := newDesk(t, wiring.Message, "BLINDPOST_INGRESS_ATTEMPTS=3")
	d.fail["table"] = errors.New("no tables today")
	if out, err := d.sample(wiring.Message, "ingress.json"); err == nil {
		t.Errorf("answer is %s", out)
	}
	delete(d.fail, "table")
	d.peers.err = &types.ForbiddenException{} // the connection is unknown and cannot be closed
	for attempt, want := range map[string]string{
		"1": `{"batchItemFailures":[{"itemIdentifier":"0d5c2f0e-6c0e-4c53-9f0e-6f8f6d2f1a01"},{"itemIdentifier":"0d5c2f0e-6c0e-4c53-9f0e-6f8f6d2f1a02"},{"itemIdentifier":"0d5c2f0e-6c0e-4c53-9f0e-6f8f6d2f1a03"}]}`,
		// The last attempt does not take the others with it.
		"3": `{"batchItemFailures":[{"itemIdentifier":"0d5c2f0e-6c0e-4c53-9f0e-6f8f6d2f1a01"}]}`,
	} {
		d.peers.closed = 0
		out, err := d.sample(wiring.Message, "ingress.json", `"ApproximateReceiveCount": "1"`, `"ApproximateReceiveCount": "`+attempt+`"`)
		if err != nil || out != want {
			t.Errorf("attempt %s: %s, %v", attempt, out, err)
		}
		// The frame itself has the connection closed; it is run three times at its last
		// delivery, and then given up.
		if want := map[string]int{"1": 1, "3": 4}[attempt]; d.peers.closed != want {
			t.Errorf("attempt %s: tried to close %d times", attempt, d.peers.closed)
		}
	}
	if strings.Contains(string(d.log.Bytes()), "cgA=") || strings.Contains(string(d.log.Bytes()), "Y2dBPQ==") {
		t.Errorf("the log has a frame in it: %s", d.log.Bytes())
	}
}

func TestSampleSchedule(t *testing.T) {
	d := newDesk(t, wiring.Sweeper)
	if out, err := d.sample(wiring.Sweeper, "schedule.json"); err != nil || out != "{}" {
		t.Errorf("answer is %s, %v", out, err)
	}
	d.wantAsked("table")
}

func TestEventsThatAreNone(t *testing.T) {
	d := newDesk(t, wiring.Message)
	for _, f := range []wiring.Function{wiring.Connect, wiring.Message, wiring.Disconnect, wiring.Sweeper, "other"} {
		for _, payload := range []string{"", "x", "[]", "7", "null", "{}", `{"Records":7}`, `{"Records":[7]}`, `{"requestContext":{"connectionId":7}}`, `{"source":"aws.s3"}`} {
			out, err := d.Invoke(t.Context(), f, []byte(payload))
			if err == nil {
				t.Errorf("%s takes %q and answers %s", f, payload, out)
			}
		}
	}
	// A message of no known kind goes to the dead letters in the end.
	for _, body := range []string{"", "x", "{}", `{"event":"CONNECT"}`, `{"kind":"nothing that there is"}`, `{"kind":"pump","body":"!"}`} {
		quoted, _ := json.Marshal(body)
		for _, f := range []wiring.Function{wiring.Message, wiring.Sweeper} {
			out, err := d.Invoke(t.Context(), f, []byte(`{"Records":[{"messageId":"m","body":`+string(quoted)+`}]}`))
			if err != nil || string(out) != `{"batchItemFailures":[{"itemIdentifier":"m"}]}` {
				t.Errorf("%s takes %q and answers %s, %v", f, body, out, err)
			}
		}
	}
}

func TestPanicsBecomeErrors(t *testing.T) {
	d := newDesk(t, wiring.Connect)
	d.sqs.Fail(func(string) error { panic("secret of the panic") })
	if out, err := d.sample(wiring.Connect, "connect.json"); err == nil || strings.Contains(err.Error(), "secret") {
		t.Errorf("answer is %s, %v", out, err)
	}
	if log := string(d.log.Bytes()); strings.Contains(log, "secret") || !strings.Contains(log, "samples_test.go") {
		t.Errorf("logged %s", log)
	}
}
