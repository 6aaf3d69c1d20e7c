package dynamo

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"blindpost/shared/table"
)

// These tests are about what the SDK makes of the answers on the wire.

// wire is an endpoint that answers with what a test tells it to.
type wire struct {
	mu       sync.Mutex
	answers  []wireAnswer
	requests []string // "Operation body"
}

type wireAnswer struct {
	status int // 0: the connection is closed instead
	body   string
}

func (w *wire) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	_, operation, _ := strings.Cut(r.Header.Get("X-Amz-Target"), ".")
	w.mu.Lock()
	w.requests = append(w.requests, operation+" "+string(body))
	a := w.answers[min(len(w.requests), len(w.answers))-1]
	w.mu.Unlock()
	if a.status == 0 {
		conn, _, err := rw.(http.Hijacker).Hijack()
		if err == nil {
			conn.Close()
		}
		return
	}
	rw.Header().Set("Content-Type", "application/x-amz-json-1.0")
	rw.WriteHeader(a.status)
	io.WriteString(rw, a.body)
}

func newClient(endpoint string, h *http.Client) *dynamodb.Client {
	return dynamodb.New(dynamodb.Options{
		Region:       "eu-central-1",
		BaseEndpoint: &endpoint,
		Credentials:  credentials.NewStaticCredentialsProvider("key", "secret", ""),
		HTTPClient:   h,
	})
}

func wired(t *testing.T, answers ...wireAnswer) (*Table, *wire) {
	w := &wire{answers: answers}
	server := httptest.NewServer(w)
	t.Cleanup(server.Close)
	return New(newClient(server.URL, server.Client()), Options{Table: "T", Now: func() time.Time { return start }}), w
}

func fault(status int, code, rest string) wireAnswer {
	return wireAnswer{status, fmt.Sprintf(`{"__type":"com.amazonaws.dynamodb.v20120810#%s","message":"%s"%s}`, code, secret, rest)}
}

// sent are the requests so far.
func (w *wire) sent() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.requests)
}

func (w *wire) want(t *testing.T, operations string) {
	t.Helper()
	var got []string
	for _, r := range w.sent() {
		operation, _, _ := strings.Cut(r, " ")
		got = append(got, operation)
	}
	if strings.Join(got, " ") != operations {
		t.Errorf("the requests were %q, want %q", got, operations)
	}
}

func TestWriteWithoutAnAnswerIsSentOnce(t *testing.T) {
	for name, a := range map[string]wireAnswer{
		"connection closed": {},
		"internal error":    fault(500, "InternalServerError", ""),
		"not DynamoDB":      {502, "<html>"},
		"cut short":         {200, `{"Attributes":{"pk":{"S"`},
	} {
		t.Run(name, func(t *testing.T) {
			tbl, w := wired(t, a)
			_, err := tbl.Write(t.Context(), addOne)
			wantError(t, err, ErrUncertain)
			w.want(t, "UpdateItem")
		})
	}
}

func TestTransactionWithoutAnAnswerIsSentAgain(t *testing.T) {
	tbl, w := wired(t, wireAnswer{}, fault(500, "InternalServerError", ""), wireAnswer{200, "{}"})
	if err := tbl.Transact(t.Context(), twoPuts); err != nil {
		t.Fatal(err)
	}
	w.want(t, "TransactWriteItems TransactWriteItems TransactWriteItems")
	var sent [3]map[string]any
	for i, r := range w.sent() {
		_, body, _ := strings.Cut(r, " ")
		if err := json.Unmarshal([]byte(body), &sent[i]); err != nil {
			t.Fatal(err)
		}
	}
	if !reflect.DeepEqual(sent[0], sent[1]) || !reflect.DeepEqual(sent[0], sent[2]) || sent[0]["ClientRequestToken"] == nil {
		t.Error("the requests differ, or have no token")
	}
}

func TestReadWithoutAnAnswerIsSentAgain(t *testing.T) {
	tbl, w := wired(t, wireAnswer{}, fault(500, "InternalServerError", ""), wireAnswer{200, `{"Item":{"pk":{"S":"p"},"sk":{"S":"s"},"b":{"B":""},"n":{"N":"-5"}}}`})
	it, err := tbl.Get(t.Context(), key("s"))
	if err != nil || len(it.Attrs) != 2 || it.Attrs["b"].Kind() != table.KindBytes || it.Attrs["n"].Num() != -5 {
		t.Errorf("item %v, %v", it, err)
	}
	w.want(t, "GetItem GetItem GetItem")
}

func TestThrottlingOnTheWire(t *testing.T) {
	tbl, w := wired(t, fault(400, "ProvisionedThroughputExceededException", ""), fault(400, "ThrottlingException", ""),
		fault(400, "TransactionConflictException", ""), wireAnswer{200, "{}"})
	if _, err := tbl.Write(t.Context(), putOp); err != nil {
		t.Fatal(err)
	}
	w.want(t, "PutItem PutItem PutItem PutItem")
}

func TestUnreachable(t *testing.T) {
	// A port that was free a moment ago; nothing listens on it.
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	endpoint := "http://" + l.Addr().String()
	l.Close()
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	tbl := New(newClient(endpoint, &http.Client{Transport: transport}), Options{Table: "T", Rand: func() uint64 { return 0 }})
	_, err = tbl.Write(t.Context(), addOne)
	wantError(t, err, table.ErrBusy)
}

// The answer never comes; the context ends as soon as the request has arrived.
func TestCancelledOnTheWire(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	release := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		cancel()
		<-release
	}))
	defer server.Close()
	defer close(release)
	tbl := New(newClient(server.URL, server.Client()), Options{Table: "T"})
	_, err := tbl.Write(ctx, addOne)
	wantError(t, err, ErrUncertain)
	if !errors.Is(err, context.Canceled) {
		t.Errorf("error %v does not tell why", err)
	}

	_, err = tbl.Write(ctx, addOne) // not even sent
	wantError(t, err, context.Canceled)
}

// early is an HTTP client that answers before it has looked whether the body of the
// request goes on, as net/http may on a busy machine.
type early struct {
	body io.ReadCloser
}

func (c *early) Do(r *http.Request) (*http.Response, error) {
	if _, err := io.CopyN(io.Discard, r.Body, r.ContentLength); err != nil {
		return nil, err
	}
	c.body = r.Body
	return &http.Response{StatusCode: 200, Header: http.Header{}, Body: io.NopCloser(strings.NewReader("{}")), Request: r}, nil
}

func TestAnswerThatIsEarlierThanTheEndOfTheBody(t *testing.T) {
	c := &early{}
	client := dynamodb.New(dynamodb.Options{Region: "eu-central-1", Credentials: credentials.NewStaticCredentialsProvider("key", "secret", ""), HTTPClient: c})
	tbl := New(client, Options{Table: "T"})
	if _, err := tbl.Write(t.Context(), putOp); err != nil {
		t.Fatal(err)
	}
	if n, err := io.Copy(io.Discard, c.body); n != 0 || err != nil {
		t.Errorf("the body goes on with %d bytes and %v; net/http would close the connection", n, err)
	}
}

func wireItem(t *testing.T, m attributes) string {
	t.Helper()
	item := map[string]map[string]string{}
	for name, v := range m {
		kind := map[byte]string{'"': "S", '0': "B"}[spellValue(v)[0]]
		if kind == "" {
			kind = "N"
		}
		item[name] = map[string]string{kind: strings.Trim(spellValue(v), `"`)}
	}
	b, err := json.Marshal(item)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestFailedConditionsOnTheWire(t *testing.T) {
	tbl, w := wired(t, fault(400, "ConditionalCheckFailedException", `,"Item":`+wireItem(t, gone)), wireAnswer{200, "{}"})
	if _, err := tbl.Write(t.Context(), addOne); err != nil {
		t.Fatal(err)
	}
	w.want(t, "UpdateItem PutItem")

	tbl, w = wired(t, fault(400, "ConditionalCheckFailedException", ""))
	_, err := tbl.Write(t.Context(), table.Op{Action: table.Put, Key: key("s"), Conds: []table.Cond{table.IfAbsent()}})
	wantError(t, err, table.ErrCondition)
	w.want(t, "PutItem")
}

func TestCancellationsOnTheWire(t *testing.T) {
	ops := []table.Op{addOne, {Action: table.Put, Key: key("t"), Conds: []table.Cond{table.IfAbsent()}}}
	tbl, w := wired(t,
		fault(400, "TransactionCanceledException", `,"CancellationReasons":[{"Code":"None"},{"Code":"TransactionConflict","Message":"m"}]`),
		fault(400, "TransactionCanceledException", `,"CancellationReasons":[{"Code":"ConditionalCheckFailed","Message":"m","Item":`+wireItem(t, gone)+`},{"Code":"None"}]`),
		wireAnswer{200, "{}"})
	if err := tbl.Transact(t.Context(), ops); err != nil {
		t.Fatal(err)
	}
	w.want(t, "TransactWriteItems TransactWriteItems TransactWriteItems")
	if sent := w.sent(); !strings.Contains(sent[1], `"Update"`) || strings.Contains(sent[2], `"Update"`) {
		t.Error("the update was not replaced")
	}

	tbl, _ = wired(t, fault(400, "TransactionCanceledException", `,"CancellationReasons":[{"Code":"None"},{"Code":"ConditionalCheckFailed","Message":"m"}]`))
	err := tbl.Transact(t.Context(), ops)
	wantError(t, err, table.ErrCondition)
	if err.Error() != (&table.ConditionError{Op: 1}).Error() {
		t.Error(err)
	}
}

// The table counts on the client's options being per call: a client with many
// retries of its own does not use them.
func TestClientWithRetriesOfItsOwn(t *testing.T) {
	w := &wire{answers: []wireAnswer{fault(500, "InternalServerError", "")}}
	server := httptest.NewServer(w)
	defer server.Close()
	client := newClient(server.URL, server.Client())
	stubborn := dynamodb.New(client.Options(), func(o *dynamodb.Options) {
		o.RetryMaxAttempts = 10
		o.RetryMode = aws.RetryModeAdaptive
	})
	_, err := New(stubborn, Options{Table: "T"}).Write(t.Context(), putOp)
	wantError(t, err, ErrUncertain)
	w.want(t, "PutItem")
}
