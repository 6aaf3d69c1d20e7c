package apigw_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/service/apigatewaymanagementapi/types"

	"blindpost/shared/gateway"
	"blindpost/shared/gateway/apigw"
	"blindpost/shared/gateway/apigw/record"
	"blindpost/shared/queue"
)

// handler answers what it is told to and remembers what it was asked.
type handler struct {
	gateway.Handler
	result  gateway.ConnectResult
	err     error
	connect gateway.ConnectEvent
	frames  []gateway.FrameEvent
	ends    []gateway.DisconnectEvent
}

func (h *handler) Connect(_ context.Context, e gateway.ConnectEvent) (gateway.ConnectResult, error) {
	h.connect = e
	return h.result, h.err
}

func (h *handler) Frame(_ context.Context, e gateway.FrameEvent) (gateway.FrameResult, error) {
	h.frames = append(h.frames, e)
	return gateway.FrameResult{}, h.err
}

func (h *handler) Disconnect(_ context.Context, e gateway.DisconnectEvent) error {
	h.ends = append(h.ends, e)
	return h.err
}

// jobs is a queue that only takes.
type jobs struct {
	taken []queue.Job
	err   error
}

func (q *jobs) Send(_ context.Context, j queue.Job) error {
	if q.err == nil {
		q.taken = append(q.taken, j)
	}
	return q.err
}

func connectEvent() events.APIGatewayWebsocketProxyRequest {
	var e events.APIGatewayWebsocketProxyRequest
	e.RequestContext.RouteKey, e.RequestContext.EventType = "$connect", "CONNECT"
	e.RequestContext.ConnectionID, e.RequestContext.Stage = connID, "prod"
	e.RequestContext.DomainName = "abc123.execute-api.eu-central-1.amazonaws.com"
	e.RequestContext.ConnectedAt, e.RequestContext.RequestTimeEpoch = 1705751697419, 1705751697420
	e.RequestContext.Identity.SourceIP = "198.51.100.7"
	return e
}

func TestConnectEvent(t *testing.T) {
	const secret = "s3cret of the edge"
	type want struct {
		ip, path string
		query    string
		header   http.Header
	}
	plain := want{ip: "198.51.100.7", path: "/v1/ws", header: http.Header{}}
	for _, tt := range []struct {
		name   string
		change func(*events.APIGatewayWebsocketProxyRequest)
		want   func(*want)
	}{
		{"bare", func(*events.APIGatewayWebsocketProxyRequest) {}, func(*want) {}},
		{"lower case headers", func(e *events.APIGatewayWebsocketProxyRequest) {
			e.MultiValueHeaders = map[string][]string{"authorization": {"Bearer x"}, "x-Two": {"1", "2"}}
			e.Headers = map[string]string{"AUTHORIZATION": "Bearer x", "Only-Single": "y"}
		}, func(w *want) {
			w.header = http.Header{"Authorization": {"Bearer x"}, "X-Two": {"1", "2"}, "Only-Single": {"y"}}
		}},
		{"query", func(e *events.APIGatewayWebsocketProxyRequest) {
			e.MultiValueQueryStringParameters = map[string][]string{"q": {"1", "2"}}
			e.QueryStringParameters = map[string]string{"q": "2", "r": ""}
		}, func(w *want) { w.query = "q=1&q=2&r=" }},
		{"path", func(e *events.APIGatewayWebsocketProxyRequest) {
			e.QueryStringParameters = map[string]string{"p": "/v2/other", "q": "1"}
		}, func(w *want) { w.path, w.query = "/v2/other", "q=1" }},
		{"the last path is the edge's", func(e *events.APIGatewayWebsocketProxyRequest) {
			e.MultiValueQueryStringParameters = map[string][]string{"p": {"/mine", "/v1/ws"}}
		}, func(*want) {}},
		{"forwarded by anyone", func(e *events.APIGatewayWebsocketProxyRequest) {
			e.MultiValueHeaders = map[string][]string{"X-Forwarded-For": {"203.0.113.9"}}
		}, func(w *want) { w.header = http.Header{"X-Forwarded-For": {"203.0.113.9"}} }},
		{"forwarded by someone who guesses", func(e *events.APIGatewayWebsocketProxyRequest) {
			e.MultiValueHeaders = map[string][]string{"x-origin-secret": {"guess"}}
			e.Headers = map[string]string{"X-Forwarded-For": "203.0.113.9"}
		}, func(w *want) { w.header = http.Header{"X-Forwarded-For": {"203.0.113.9"}} }},
		{"forwarded by the edge, and one who sends the header twice", func(e *events.APIGatewayWebsocketProxyRequest) {
			e.MultiValueHeaders = map[string][]string{"X-Origin-Secret": {"x", secret}, "X-Forwarded-For": {"203.0.113.9"}}
		}, func(w *want) { w.header = http.Header{"X-Forwarded-For": {"203.0.113.9"}} }},
		{"forwarded by the edge", func(e *events.APIGatewayWebsocketProxyRequest) {
			e.MultiValueHeaders = map[string][]string{"X-Origin-Secret": {secret}, "X-Forwarded-For": {"10.0.0.1, 203.0.113.9, 198.51.100.7"}}
		}, func(w *want) {
			w.ip, w.header = "203.0.113.9", http.Header{"X-Forwarded-For": {"10.0.0.1, 203.0.113.9, 198.51.100.7"}}
		}},
		{"through CloudFront and a load balancer to our own front", func(e *events.APIGatewayWebsocketProxyRequest) {
			e.MultiValueHeaders = map[string][]string{"X-Origin-Secret": {secret}, "X-Forwarded-For": {"10.0.0.1, 203.0.113.9, 198.51.100.7, 198.51.100.7"}}
		}, func(w *want) {
			w.ip, w.header = "203.0.113.9", http.Header{"X-Forwarded-For": {"10.0.0.1, 203.0.113.9, 198.51.100.7, 198.51.100.7"}}
		}},
		{"forwarded by the edge, whose own address is not in the list", func(e *events.APIGatewayWebsocketProxyRequest) {
			e.MultiValueHeaders = map[string][]string{"X-Origin-Secret": {secret}, "X-Forwarded-For": {"10.0.0.1", "2001:db8::1"}}
		}, func(w *want) {
			w.ip, w.header = "2001:db8::1", http.Header{"X-Forwarded-For": {"10.0.0.1", "2001:db8::1"}}
		}},
		{"forwarded by the edge, unreadable", func(e *events.APIGatewayWebsocketProxyRequest) {
			e.MultiValueHeaders = map[string][]string{"X-Origin-Secret": {secret}, "X-Forwarded-For": {"10.0.0.1, unknown"}}
		}, func(w *want) { w.header = http.Header{"X-Forwarded-For": {"10.0.0.1, unknown"}} }},
		{"by the edge, not forwarded", func(e *events.APIGatewayWebsocketProxyRequest) {
			e.MultiValueHeaders = map[string][]string{"X-Origin-Secret": {secret}}
		}, func(*want) {}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h := &handler{}
			var log bytes.Buffer
			a := apigw.New(apigw.Options{
				Handler: h, OriginHeader: "x-origin-secret", Log: slog.New(slog.NewTextHandler(&log, nil)),
				Origin: func(_ context.Context, v string) (bool, error) {
					if v == "guess" {
						return false, errors.New("cannot be found out")
					}
					return v == secret, nil
				},
			})
			e, w := connectEvent(), plain
			tt.change(&e)
			tt.want(&w)
			res, err := a.Connect(t.Context(), e)
			if err != nil || res.StatusCode != 200 {
				t.Fatalf("got %v, %v", res, err)
			}
			got := h.connect
			if got.Conn != someConn || !got.At.Equal(time.UnixMilli(1705751697419)) {
				t.Errorf("got %s at %v", got.Conn, got.At)
			}
			if got.RemoteIP.String() != w.ip || got.Path != w.path || got.Query.Encode() != w.query {
				t.Errorf("got %v, %s?%s, want %+v", got.RemoteIP, got.Path, got.Query.Encode(), w)
			}
			if !reflect.DeepEqual(got.Header, w.header) {
				t.Errorf("header is %v, want %v", got.Header, w.header)
			}
			if strings.Contains(log.String(), "guess") || strings.Contains(log.String(), secret) {
				t.Errorf("logged: %s", log.String())
			}
		})
	}
}

func TestConnectAnswers(t *testing.T) {
	failure := errors.New("failed on purpose")
	for _, tt := range []struct {
		name   string
		result gateway.ConnectResult
		err    error
		queue  error
		offer  string
		want   events.APIGatewayProxyResponse
		fails  bool
	}{
		{name: "accepted", want: events.APIGatewayProxyResponse{StatusCode: 200}},
		{name: "accepted with 101", result: gateway.ConnectResult{Status: 101}, want: events.APIGatewayProxyResponse{StatusCode: 200}},
		{name: "accepted with a protocol", offer: " , one,two",
			want: events.APIGatewayProxyResponse{StatusCode: 200, Headers: map[string]string{"Sec-WebSocket-Protocol": "one"}}},
		{name: "refused", offer: "one",
			result: gateway.ConnectResult{Status: 429, Header: http.Header{"Retry-After": {"17"}, "None": {}}, Body: []byte("too fast")},
			want:   events.APIGatewayProxyResponse{StatusCode: 429, Headers: map[string]string{"Retry-After": "17"}, Body: "too fast"}},
		{name: "failed", err: failure, fails: true},
		{name: "first messages", result: gateway.ConnectResult{First: []gateway.Message{{Data: []byte("hi")}}},
			want: events.APIGatewayProxyResponse{StatusCode: 200}},
		{name: "first messages that cannot be sent", result: gateway.ConnectResult{First: []gateway.Message{{Data: []byte("hi")}}},
			queue: failure, fails: true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			q := &jobs{err: tt.queue}
			a := apigw.New(apigw.Options{Handler: &handler{result: tt.result, err: tt.err}, Queue: q})
			e := connectEvent()
			if tt.offer != "" {
				e.Headers = map[string]string{"sec-websocket-protocol": tt.offer}
			}
			got, err := a.Connect(t.Context(), e)
			if (err != nil) != tt.fails || !reflect.DeepEqual(got, tt.want) {
				t.Errorf("got %+v, %v", got, err)
			}
			if tt.fails && !errors.Is(err, failure) {
				t.Errorf("error is %v", err)
			}
			if (len(q.taken) == 1) != (len(tt.result.First) > 0 && !tt.fails) {
				t.Errorf("jobs: %v", q.taken)
			}
			for _, j := range q.taken {
				if j.Kind != apigw.JobFirst || j.Group != string(someConn) || !j.At.IsZero() {
					t.Errorf("job is %+v", j)
				}
			}
		})
	}
}

func TestBadConnectEvents(t *testing.T) {
	for name, change := range map[string]func(*events.APIGatewayWebsocketProxyRequest){
		"no id":          func(e *events.APIGatewayWebsocketProxyRequest) { e.RequestContext.ConnectionID = "" },
		"id with at":     func(e *events.APIGatewayWebsocketProxyRequest) { e.RequestContext.ConnectionID = "a@b" },
		"no domain":      func(e *events.APIGatewayWebsocketProxyRequest) { e.RequestContext.DomainName = "" },
		"no stage":       func(e *events.APIGatewayWebsocketProxyRequest) { e.RequestContext.Stage = "" },
		"domain of path": func(e *events.APIGatewayWebsocketProxyRequest) { e.RequestContext.DomainName = "a/b" },
	} {
		h := &handler{}
		e := connectEvent()
		change(&e)
		if res, err := apigw.New(apigw.Options{Handler: h}).Connect(t.Context(), e); err == nil || h.connect.Conn != "" {
			t.Errorf("%s: got %v, %v", name, res, h.connect)
		}
	}
}

func TestCallbackSetting(t *testing.T) {
	h := &handler{}
	a := apigw.New(apigw.Options{Handler: h, Callback: "http://127.0.0.1:3002"})
	e := connectEvent()
	e.RequestContext.DomainName, e.RequestContext.Stage = "ws.example.org", ""
	if _, err := a.Connect(t.Context(), e); err != nil || h.connect.Conn != connID+"@http://127.0.0.1:3002" {
		t.Errorf("got %s, %v", h.connect.Conn, err)
	}
}

// messageEvent is a $default event with all that it has.
func messageEvent(body string) events.APIGatewayWebsocketProxyRequest {
	e := connectEvent()
	e.RequestContext.RouteKey, e.RequestContext.EventType = "$default", "MESSAGE"
	e.RequestContext.MessageID, e.RequestContext.RequestID = "R1knPc2ntjMCFIA=", "R1knPH17NjMFftw="
	e.Body = body
	return e
}

func TestFrames(t *testing.T) {
	long := strings.Repeat("AAAA", 8) // 24 bytes
	for _, tt := range []struct {
		name, body string
		binary     bool
		want       gateway.FrameEvent
		bad        bool
	}{
		{name: "base64", body: "AAH/", want: gateway.FrameEvent{Data: []byte{0, 1, 0xff}}},
		{name: "base64 with padding", body: "AA==", want: gateway.FrameEvent{Data: []byte{0}}},
		{name: "base64 by API Gateway", body: "AA==", binary: true, want: gateway.FrameEvent{Data: []byte{0}}},
		{name: "no base64 by API Gateway", body: "A", binary: true, bad: true},
		{name: "without its padding", body: "AA", want: gateway.FrameEvent{Data: []byte("AA"), Text: true}},
		{name: "with bits to spare", body: "AB==", want: gateway.FrameEvent{Data: []byte("AB=="), Text: true}},
		{name: "other alphabet", body: "AAH_", want: gateway.FrameEvent{Data: []byte("AAH_"), Text: true}},
		{name: "lines", body: "AAAA\nAAAA", want: gateway.FrameEvent{Data: []byte("AAAA\nAAAA"), Text: true}},
		{name: "text", body: `{"a":"'ä"}`, want: gateway.FrameEvent{Data: []byte(`{"a":"'ä"}`), Text: true}},
		{name: "nothing", body: "", want: gateway.FrameEvent{Data: []byte{}}},
		{name: "as large as allowed", body: long[:28], want: gateway.FrameEvent{Data: make([]byte, 21)}},
		{name: "too large", body: long, want: gateway.FrameEvent{Oversize: true, Size: 24}},
		{name: "too large text", body: strings.Repeat("-", 22), want: gateway.FrameEvent{Oversize: true, Size: 22, Text: true}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h, s := &handler{}, &script{}
			a := apigw.New(apigw.Options{Handler: h, Front: frontOver(s, nil), MaxFrame: 21})
			e := messageEvent(tt.body)
			e.IsBase64Encoded = tt.binary
			r, err := apigw.RecordOf(e)
			if err != nil {
				t.Fatal(err)
			}
			err = a.Handle(t.Context(), r, "")
			if tt.bad {
				if err == nil || len(h.frames) != 0 {
					t.Errorf("got %v, %v", h.frames, err)
				}
				return
			}
			if err != nil || len(h.frames) != 1 {
				t.Fatalf("got %v, %v", h.frames, err)
			}
			want := tt.want
			want.Conn, want.ID, want.At = someConn, "R1knPc2ntjMCFIA=", time.UnixMilli(1705751697420)
			if !reflect.DeepEqual(h.frames[0], want) {
				t.Errorf("got %+v\nwant %+v", h.frames[0], want)
			}
			if closed := len(s.ids) == 1; closed != want.Oversize {
				t.Errorf("closed: %v", closed)
			}
		})
	}
}

func TestFrameIDs(t *testing.T) {
	h := &handler{}
	a := apigw.New(apigw.Options{Handler: h})
	e := messageEvent("AAAA")
	e.RequestContext.MessageID = nil // its type is loose
	r, err := apigw.RecordOf(e)
	if err != nil || a.Handle(t.Context(), r, "queue's") != nil {
		t.Fatal(err)
	}
	r.MessageID = ""
	if err := a.Handle(t.Context(), r, "queue's"); err != nil {
		t.Fatal(err)
	}
	if h.frames[0].ID != "R1knPH17NjMFftw=" || h.frames[1].ID != "queue's" {
		t.Errorf("ids are %q and %q", h.frames[0].ID, h.frames[1].ID)
	}
}

func TestFailedFrame(t *testing.T) {
	failure := errors.New("failed on purpose")
	h, s := &handler{err: failure}, &script{answers: []error{nil, answer(410, &types.GoneException{})}}
	a := apigw.New(apigw.Options{Handler: h, Front: frontOver(s, nil)})
	r, err := apigw.RecordOf(messageEvent("AAAA"))
	if err != nil {
		t.Fatal(err)
	}
	if err := a.Handle(t.Context(), r, ""); !errors.Is(err, failure) {
		t.Errorf("error is %v", err)
	}
	if len(s.ids) != 0 {
		t.Error("the first failure closed the connection")
	}
	for range 2 { // open, then gone
		if err := a.GiveUp(t.Context(), r, r.ConnectionID); err != nil {
			t.Error(err)
		}
	}
	if len(s.ids) != 2 {
		t.Errorf("%d closes", len(s.ids))
	}
}

// What cannot be read says its message group, at the address of the API; a front of our
// own is not at that address.
func TestGiveUpByGroup(t *testing.T) {
	for name, tt := range map[string]struct {
		record   *record.Record
		callback string
		ends     bool
	}{
		"no record":            {nil, "https://d.example/prod", true},
		"no connection in it":  {&record.Record{Event: "MESSAGE"}, "https://d.example/prod", true},
		"no address":           {nil, "", false},
		"a front of our own":   {&record.Record{Event: "MESSAGE", ConnectionID: "c", Callback: "https://f.example"}, "https://d.example/prod", false},
		"the end is not given": {&record.Record{Event: "DISCONNECT"}, "https://d.example/prod", false},
	} {
		s := &script{}
		a := apigw.New(apigw.Options{Handler: &handler{}, Front: frontOver(s, nil), Callback: tt.callback})
		err := a.GiveUp(t.Context(), tt.record, "Cgroup=")
		if ended := slices.Equal(s.ids, []string{"Cgroup="}); ended != tt.ends || len(s.ids) != 0 && !ended {
			t.Errorf("%s: ended %q, %v", name, s.ids, err)
		}
		if quiet := tt.ends || tt.record != nil && tt.record.Event == "DISCONNECT"; (err == nil) != quiet {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestDisconnect(t *testing.T) {
	reason := "Going away"
	for _, tt := range []struct {
		code   int64
		reason *string
		want   gateway.DisconnectEvent
	}{
		{1001, &reason, gateway.DisconnectEvent{Code: 1001, Reason: reason}},
		{4321, nil, gateway.DisconnectEvent{Code: 4321}},
		{0, nil, gateway.DisconnectEvent{Code: gateway.CloseAbnormal}},
		{-1, nil, gateway.DisconnectEvent{Code: gateway.CloseAbnormal}},
		{70000, nil, gateway.DisconnectEvent{Code: gateway.CloseAbnormal}},
	} {
		h, s := &handler{}, &script{}
		a := apigw.New(apigw.Options{Handler: h, Front: frontOver(s, nil)})
		e := connectEvent()
		e.RequestContext.EventType = "DISCONNECT"
		e.RequestContext.DisconnectStatusCode, e.RequestContext.DisconnectReason = tt.code, tt.reason
		r, err := apigw.RecordOf(e)
		if err != nil {
			t.Fatal(err)
		}
		if err := a.Handle(t.Context(), r, ""); err != nil {
			t.Fatal(err)
		}
		tt.want.Conn, tt.want.At = someConn, time.UnixMilli(1705751697420)
		if len(h.ends) != 1 || h.ends[0] != tt.want {
			t.Errorf("got %+v, want %+v", h.ends, tt.want)
		}
		if err := a.GiveUp(t.Context(), r, r.ConnectionID); err != nil || len(s.ids) != 0 {
			t.Errorf("giving up a disconnect: %v, %d calls", err, len(s.ids))
		}
	}
}

func TestRecordOfRefuses(t *testing.T) {
	e := connectEvent()
	if r, err := apigw.RecordOf(e); err == nil {
		t.Errorf("a $connect became %v", r)
	}
	e.RequestContext.EventType, e.RequestContext.ConnectionID = "MESSAGE", ""
	if r, err := apigw.RecordOf(e); err == nil {
		t.Errorf("an event without a connection became %v", r)
	}
	a := apigw.New(apigw.Options{Handler: &handler{}})
	for _, r := range []record.Record{
		{}, {Event: "MESSAGE"}, {Event: "MESSAGE", ConnectionID: "c", DomainName: "d", Stage: "s", Body: "!"},
		{Event: "OTHER", ConnectionID: "c", DomainName: "d", Stage: "s"},
	} {
		if err := a.Handle(t.Context(), &r, ""); err == nil {
			t.Errorf("%+v was handled", r)
		}
	}
}

// firstJob is the job that a Connect with two first messages sends.
func firstJob(t *testing.T, at time.Time) queue.Job {
	t.Helper()
	q := &jobs{}
	a := apigw.New(apigw.Options{Queue: q, Handler: &handler{result: gateway.ConnectResult{
		First: []gateway.Message{{Data: []byte{0xff, 0}}, {Data: []byte("hi"), Text: true}},
	}}})
	e := connectEvent()
	e.RequestContext.ConnectedAt = at.UnixMilli()
	if _, err := a.Connect(t.Context(), e); err != nil || len(q.taken) != 1 {
		t.Fatalf("got %v, %v", q.taken, err)
	}
	return q.taken[0]
}

func TestFirstWords(t *testing.T) {
	gone, busy := answer(410, &types.GoneException{}), answer(403, &types.ForbiddenException{})
	many := func(n int) (es []error) {
		for range n {
			es = append(es, gone)
		}
		return es
	}
	for _, tt := range []struct {
		name    string
		answers []error
		age     time.Duration
		want    []string
		fails   bool
		unasked bool // FirstWanted says no
	}{
		{name: "open already", want: []string{"/wA=", "hi"}},
		{name: "opens soon", answers: many(3), want: []string{"/wA=", "/wA=", "/wA=", "/wA=", "hi"}},
		{name: "does not open soon", answers: many(100), want: strings.Split(strings.Repeat("/wA= ", 7), " ")[:7], fails: true},
		{name: "does not open", answers: many(100), age: 20 * time.Second, want: []string{"/wA="}},
		{name: "closes in between", answers: append([]error{nil}, many(100)...), age: 20 * time.Second, want: []string{"/wA=", "hi"}},
		{name: "cannot be posted to", answers: []error{busy}, want: []string{"/wA="}, fails: true},
		{name: "not wanted any more", unasked: true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				j := firstJob(t, time.Now().Add(-tt.age))
				s := &script{answers: tt.answers}
				a := apigw.New(apigw.Options{Front: frontOver(s, nil), FirstWanted: func(_ context.Context, c gateway.Conn) (bool, error) {
					return !tt.unasked && c == someConn, nil
				}})
				next := errors.New("it went to the next handler")
				run := a.Job(func(context.Context, queue.Job) error { return next })
				start := time.Now()
				err := run(t.Context(), j)
				if (err != nil) != tt.fails || errors.Is(err, next) {
					t.Errorf("error is %v", err)
				}
				if d := time.Since(start); d > time.Second {
					t.Errorf("it held up the queue for %v", d)
				}
				var got []string
				for _, d := range s.data {
					got = append(got, string(d))
				}
				if !reflect.DeepEqual(got, tt.want) {
					t.Errorf("posted %q, want %q", got, tt.want)
				}
				if err := run(t.Context(), queue.Job{Kind: "push"}); !errors.Is(err, next) {
					t.Errorf("another job: %v", err)
				}
			})
		})
	}
}

func TestFirstWordsThatCannotBeRead(t *testing.T) {
	a := apigw.New(apigw.Options{Front: frontOver(&script{}, nil)})
	run := a.Job(nil)
	for _, body := range []string{"", "{", `{"m":[{"d":"?"}]}`} {
		if err := run(t.Context(), queue.Job{Kind: apigw.JobFirst, Body: []byte(body)}); err == nil {
			t.Errorf("%q was read", body)
		}
	}
	// A connection that cannot be one is gone; the job is old and over.
	b, _ := json.Marshal(map[string]any{"c": "nobody", "m": []any{map[string]any{"d": "AA=="}}})
	if err := run(t.Context(), queue.Job{Kind: apigw.JobFirst, Body: b}); err != nil {
		t.Error(err)
	}
	failure := errors.New("failed on purpose")
	a = apigw.New(apigw.Options{FirstWanted: func(context.Context, gateway.Conn) (bool, error) { return true, failure }})
	if err := a.Job(nil)(t.Context(), firstJob(t, time.Now())); !errors.Is(err, failure) {
		t.Errorf("error is %v", err)
	}
}
