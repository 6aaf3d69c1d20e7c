package invoke_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	"github.com/aws/aws-sdk-go-v2/service/lambda/types"
	awssqs "github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/smithy-go"
	"github.com/coder/websocket"

	"blindpost/shared/gateway"
	"blindpost/shared/gateway/apigw"
	"blindpost/shared/gateway/gatewaytest"
	"blindpost/shared/gateway/invoke"
)

const patience = 20 * time.Second

func dial(t *testing.T, url string, more http.Header) (*websocket.Conn, *http.Response, error) {
	t.Helper()
	h := header()
	for name, v := range more {
		h[name] = v
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	ws, res, err := websocket.Dial(ctx, url, &websocket.DialOptions{HTTPHeader: h})
	if err == nil {
		ws.SetReadLimit(-1)
		t.Cleanup(func() { _ = ws.CloseNow() })
	}
	return ws, res, err
}

func mustDial(t *testing.T, url string, more http.Header) *websocket.Conn {
	t.Helper()
	ws, _, err := dial(t, url, more)
	if err != nil {
		t.Fatal(err)
	}
	return ws
}

func send(t *testing.T, ws *websocket.Conn, kind websocket.MessageType, data string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := ws.Write(ctx, kind, []byte(data)); err != nil {
		t.Fatal(err)
	}
}

func wantClose(t *testing.T, ws *websocket.Conn, code gateway.CloseCode) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	for {
		_, data, err := ws.Read(ctx)
		var ce websocket.CloseError
		if errors.As(err, &ce) {
			if ce.Code != websocket.StatusCode(code) {
				t.Errorf("closed with %d %q, want %d", ce.Code, ce.Reason, code)
			}
			return
		}
		if err != nil {
			t.Fatalf("no close frame: %v", err)
		}
		t.Logf("got %q", data)
	}
}

// The events have the shape of those of API Gateway: all that a real one has, and
// nothing that the events of API Gateway have no field for.
func TestEventsAreThoseOfAPIGateway(t *testing.T) {
	rec := gatewaytest.NewRecorder()
	r := open(t, rec, false, nil)
	ws := mustDial(t, r.url+"/v1/ws?p=/forged&q=1&q=2", http.Header{
		"User-Agent": {"Skald/2.4 (iPhone; iOS 19.1)"}, "X-Forwarded-For": {"198.51.100.1, 203.0.113.7"}, "Authorization": {"Bearer t"},
	})
	e := r.lastEvent()
	rc := e.RequestContext
	if rc.EventType != "CONNECT" || rc.RouteKey != "$connect" || rc.Identity.SourceIP != "203.0.113.7" || rc.ConnectionID == "" ||
		rc.Identity.UserAgent != "Skald/2.4 (iPhone; iOS 19.1)" || rc.MessageDirection != "IN" || rc.RequestID == "" || rc.ConnectedAt == 0 || rc.DomainName == "" || rc.Stage == "" {
		t.Errorf("context %+v", rc)
	}
	if e.QueryStringParameters["p"] != "/v1/ws" || !reflect.DeepEqual(e.MultiValueQueryStringParameters["p"], []string{"/v1/ws"}) ||
		!reflect.DeepEqual(e.MultiValueQueryStringParameters["q"], []string{"1", "2"}) || e.QueryStringParameters["q"] != "2" {
		t.Errorf("query %v", e.MultiValueQueryStringParameters)
	}
	if e.Headers["Authorization"] != "Bearer t" || !strings.HasSuffix(e.Headers["X-Forwarded-For"], ", 203.0.113.7") {
		t.Errorf("headers %v", e.Headers)
	}
	id := rec.WaitConnects(t, 1)[0]
	if want := gateway.Conn(rc.ConnectionID + "@front+" + r.callback); id != want {
		t.Errorf("the connection is %s, want %s", id, want)
	}

	send(t, ws, websocket.MessageBinary, "\x00\xff")
	rec.WaitFrames(t, id, 1)
	if e = r.lastEvent(); e.Body != "AP8=" || !e.IsBase64Encoded || e.RequestContext.EventType != "MESSAGE" || e.RequestContext.RouteKey != "$default" || len(e.Headers) != 0 {
		t.Errorf("binary frame: %+v", e)
	}
	first, _ := e.RequestContext.MessageID.(string)
	send(t, ws, websocket.MessageText, `{"it's": "AP8="}`)
	rec.WaitFrames(t, id, 2)
	e = r.lastEvent()
	if second, _ := e.RequestContext.MessageID.(string); e.Body != `{"it's": "AP8="}` || e.IsBase64Encoded || first == "" || second == first {
		t.Errorf("text frame: %+v", e)
	}
	if e.RequestContext.ConnectedAt != rc.ConnectedAt || e.RequestContext.Identity != rc.Identity {
		t.Errorf("text frame: %+v", e.RequestContext)
	}
	_ = ws.Close(4321, "done")
	rec.WaitDisconnect(t, id)
	if e = r.lastEvent(); e.RequestContext.EventType != "DISCONNECT" || e.RequestContext.DisconnectStatusCode != 4321 || *e.RequestContext.DisconnectReason != "done" {
		t.Errorf("disconnect: %+v", e)
	}
}

// answer is what a function has answered.
func answer(payload string) (*lambda.InvokeOutput, error) {
	return &lambda.InvokeOutput{StatusCode: 200, Payload: []byte(payload)}, nil
}

func TestConnectThatCannotBeAsked(t *testing.T) {
	hang := make(chan struct{})
	defer close(hang)
	for name, tt := range map[string]struct {
		answer func() (*lambda.InvokeOutput, error)
		status int
		told   bool // functions/disconnect takes it back
	}{
		"throttled": {func() (*lambda.InvokeOutput, error) { return nil, &types.TooManyRequestsException{} }, 503, false},
		"function error": {func() (*lambda.InvokeOutput, error) {
			return &lambda.InvokeOutput{StatusCode: 200, FunctionError: aws.String("Unhandled")}, nil
		}, 502, false},
		"no JSON":       {func() (*lambda.InvokeOutput, error) { return answer(`Task timed out after 15.00 seconds`) }, 502, false},
		"no status":     {func() (*lambda.InvokeOutput, error) { return answer(`{}`) }, 502, false},
		"status of 700": {func() (*lambda.InvokeOutput, error) { return answer(`{"statusCode":700}`) }, 502, false},
		"queued":        {func() (*lambda.InvokeOutput, error) { return &lambda.InvokeOutput{StatusCode: 202}, nil }, 502, false},
		"unreachable":   {func() (*lambda.InvokeOutput, error) { return nil, errors.New("no route") }, 502, false},
		"no such name":  {func() (*lambda.InvokeOutput, error) { return nil, &types.ResourceNotFoundException{} }, 502, false},
		"refused": {func() (*lambda.InvokeOutput, error) {
			return answer(`{"statusCode":429,"body":"slow down","headers":{"Retry-After":"7"}}`)
		}, 429, false},
		"body is no text": {func() (*lambda.InvokeOutput, error) {
			return answer(`{"statusCode":403,"body":"*","isBase64Encoded":true}`)
		}, 502, false},
		"too late": {nil, 504, true},
	} {
		t.Run(name, func(t *testing.T) {
			r := open(t, gatewaytest.NewRecorder(), false, func(o *invoke.Options) {
				if tt.told {
					o.Timeout = 50 * time.Millisecond
					o.Lambda = late{o.Lambda}
				}
			})
			r.setInstead(func(name string, _ []byte) (*lambda.InvokeOutput, error) {
				if name == "c" && tt.answer != nil {
					return tt.answer()
				}
				return nil, nil
			})
			_, res, err := dial(t, r.url+"/v1/ws", nil)
			if err == nil || res == nil || res.StatusCode != tt.status {
				t.Fatalf("%v, %v, want status %d", res, err, tt.status)
			}
			if name == "refused" {
				body, _ := io.ReadAll(res.Body)
				if string(body) != "slow down" || res.Header.Get("Retry-After") != "7" {
					t.Errorf("refusal says %q, %v", body, res.Header)
				}
			}
			if told := r.lastEvent().RequestContext.EventType == "DISCONNECT"; told != tt.told {
				t.Errorf("taken back: %v", told)
			}
		})
	}
}

// late is Lambda whose function connect does not answer in time.
type late struct{ invoke.Lambda }

func (l late) Invoke(ctx context.Context, in *lambda.InvokeInput, o ...func(*lambda.Options)) (*lambda.InvokeOutput, error) {
	if *in.FunctionName == "c" {
		_, _ = l.Lambda.Invoke(ctx, in, o...)
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return l.Lambda.Invoke(ctx, in, o...)
}

// A frame that was not handled ends its connection; nothing of what comes after it is
// handled.
func TestFrameThatFails(t *testing.T) {
	for name, out := range map[string]func() (*lambda.InvokeOutput, error){
		"throttled": func() (*lambda.InvokeOutput, error) { return nil, &types.TooManyRequestsException{} },
		"function error": func() (*lambda.InvokeOutput, error) {
			return &lambda.InvokeOutput{StatusCode: 200, FunctionError: aws.String("Unhandled")}, nil
		},
		"emulator that says a timeout as an answer": func() (*lambda.InvokeOutput, error) { return answer(`Task timed out after 30.00 seconds`) },
		"answer of somebody else":                   func() (*lambda.InvokeOutput, error) { return answer(`{"statusCode":500}`) },
	} {
		t.Run(name, func(t *testing.T) {
			rec := gatewaytest.NewRecorder()
			r := open(t, rec, false, nil)
			ws := mustDial(t, r.url, nil)
			id := rec.WaitConnects(t, 1)[0]
			r.setInstead(func(name string, payload []byte) (*lambda.InvokeOutput, error) {
				if name == "m" && strings.Contains(string(payload), "bad") {
					return out()
				}
				return nil, nil
			})
			for _, text := range []string{"good", "bad", "never"} {
				send(t, ws, websocket.MessageText, text)
			}
			wantClose(t, ws, gateway.CloseInternal)
			rec.WaitDisconnect(t, id)
			if frames := rec.WaitFrames(t, id, 1); len(frames) != 1 || string(frames[0].Data) != "good" {
				t.Errorf("frames %v", frames)
			}
		})
	}
}

func TestFrameOverTheLimit(t *testing.T) {
	for _, ingress := range []bool{false, true} {
		rec := gatewaytest.NewRecorder()
		r := open(t, rec, ingress, func(o *invoke.Options) { o.Server.ReadLimit = 1000 })
		rec.OnFrame = func(ctx context.Context, e gateway.FrameEvent) (gateway.FrameResult, error) {
			time.Sleep(50 * time.Millisecond) // a queue is not the fastest
			_, err := r.actions.Post(ctx, e.Conn, gateway.Message{Data: []byte("too large, sorry"), Text: true})
			return gateway.FrameResult{}, err
		}
		ws := mustDial(t, r.url, nil)
		id := rec.WaitConnects(t, 1)[0]
		send(t, ws, websocket.MessageBinary, strings.Repeat("x", 1001))
		f := rec.WaitFrames(t, id, 1)[0]
		if !f.Oversize || f.Size != 1001 || f.Data != nil {
			t.Errorf("ingress %v: oversize %v, size %d, %d bytes", ingress, f.Oversize, f.Size, len(f.Data))
		}
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		if _, data, err := ws.Read(ctx); string(data) != "too large, sorry" {
			t.Errorf("ingress %v: got %q, %v", ingress, data, err)
		}
		wantClose(t, ws, gateway.CloseTooLarge)
		rec.WaitDisconnect(t, id)
	}
}

// What the queue finds too large is too large: no less is known about it before.
func TestFrameThatTheQueueRefuses(t *testing.T) {
	rec := gatewaytest.NewRecorder()
	r := open(t, rec, true, nil)
	r.refuse = func(in *awssqs.SendMessageInput) error {
		if len(*in.MessageBody) > 10_000 {
			return &smithy.GenericAPIError{Code: "InvalidParameterValue", Message: "One or more parameters are invalid. Reason: Message must be shorter"}
		}
		return nil
	}
	ws := mustDial(t, r.url, nil)
	id := rec.WaitConnects(t, 1)[0]
	send(t, ws, websocket.MessageBinary, "first")
	send(t, ws, websocket.MessageBinary, strings.Repeat("x", 10_000))
	f := rec.WaitFrames(t, id, 2)
	if f[0].Oversize || !f[1].Oversize || f[1].Size != 10_000 {
		t.Errorf("oversize %v %v, size %d", f[0].Oversize, f[1].Oversize, f[1].Size)
	}
	wantClose(t, ws, gateway.CloseTooLarge)
	rec.WaitDisconnect(t, id)
}

func TestQueueThatFails(t *testing.T) {
	rec := gatewaytest.NewRecorder()
	r := open(t, rec, true, nil)
	r.refuse = func(*awssqs.SendMessageInput) error { return &smithy.GenericAPIError{Code: "KmsDisabled"} }
	ws := mustDial(t, r.url, nil)
	send(t, ws, websocket.MessageBinary, "x")
	wantClose(t, ws, gateway.CloseInternal)
}

// The functions call no address that they were not told, whatever an event says.
func TestForgedCallback(t *testing.T) {
	rec := gatewaytest.NewRecorder()
	r := open(t, rec, false, nil)
	for _, address := range []string{"http://169.254.169.254", r.callback + "/", "https://front.example", "file:///etc"} {
		e := events.APIGatewayWebsocketProxyRequest{StageVariables: map[string]string{"blindpostCallback": address}}
		e.RequestContext.ConnectionID, e.RequestContext.EventType = "abc", "MESSAGE"
		if _, err := r.adapter.Connect(context.Background(), e); err == nil {
			t.Errorf("%s: connect was handled", address)
		}
		recd, err := apigw.RecordOf(e)
		if err != nil {
			t.Fatal(err)
		}
		if err := r.adapter.Handle(context.Background(), recd, ""); err == nil {
			t.Errorf("%s: a frame was handled", address)
		}
		c := gateway.Conn("abc@front+" + address)
		if _, err := r.actions.Post(context.Background(), c, gateway.Message{}); !errors.Is(err, gateway.ErrGone) {
			t.Errorf("%s: post: %v", address, err)
		}
	}
}

// Several fronts share the functions: each connection is answered by its own.
func TestTwoFronts(t *testing.T) {
	rec := gatewaytest.NewRecorder()
	a := open(t, rec, false, nil)
	b := open(t, rec, false, nil)
	wa := mustDial(t, a.url, nil)
	ca := rec.WaitConnects(t, 1)[0]
	wb := mustDial(t, b.url, nil)
	cb := rec.WaitConnects(t, 2)[1]
	ctx := context.Background()
	if _, err := a.actions.Post(ctx, ca, gateway.Message{Data: []byte("to a"), Text: true}); err != nil {
		t.Fatal(err)
	}
	if _, err := a.actions.Post(ctx, cb, gateway.Message{Data: []byte("to b"), Text: true}); !errors.Is(err, gateway.ErrGone) {
		t.Errorf("a front that is not allowed was called: %v", err)
	}
	if _, err := b.actions.Post(ctx, cb, gateway.Message{Data: []byte("to b"), Text: true}); err != nil {
		t.Fatal(err)
	}
	for ws, want := range map[*websocket.Conn]string{wa: "to a", wb: "to b"} {
		if _, data, err := ws.Read(ctx); err != nil || string(data) != want {
			t.Errorf("got %q, %v, want %q", data, err, want)
		}
	}
}

func TestPlainHTTP(t *testing.T) {
	r := open(t, gatewaytest.NewRecorder(), false, nil)
	var got events.APIGatewayV2HTTPRequest
	r.setInstead(func(name string, payload []byte) (*lambda.InvokeOutput, error) {
		got = events.APIGatewayV2HTTPRequest{}
		if err := json.Unmarshal(payload, &got); err != nil || name != "c" {
			t.Errorf("%s: %v", name, err)
		}
		if strings.HasSuffix(got.RawPath, "/broken") {
			return answer(`"Task timed out"`)
		}
		return answer(`{"statusCode":201,"headers":{"content-type":"application/json","content-length":"999"},"body":"eyJvayI6dHJ1ZX0=","isBase64Encoded":true}`)
	})
	url := "http" + strings.TrimPrefix(r.url, "ws")
	post := func(path, body string) (int, string, string) {
		q, err := http.NewRequest("POST", url+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		q.Header = header()
		q.Header.Add("X-Forwarded-For", "203.0.113.7")
		q.Header.Add("X-Two", "1")
		q.Header.Add("X-Two", "2")
		q.Close = true
		res, err := http.DefaultClient.Do(q)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		b, _ := io.ReadAll(res.Body)
		return res.StatusCode, res.Header.Get("Content-Type"), string(b)
	}
	status, kind, body := post("/v1/device/a%2Fb/claim?x=1&x=2", `{"a":1}`)
	if status != 201 || kind != "application/json" || body != `{"ok":true}` {
		t.Errorf("%d %s %s", status, kind, body)
	}
	rc := got.RequestContext.HTTP
	if got.Version != "2.0" || got.RawPath != "/v1/device/a%2Fb/claim" || got.RawQueryString != "x=1&x=2" || got.Headers["x-two"] != "1,2" ||
		got.Body != `{"a":1}` || rc.Method != "POST" || rc.SourceIP != "203.0.113.7" || rc.Path != "/v1/device/a/b/claim" {
		t.Errorf("event %+v", got)
	}
	if post("/v1/x", "\xff"); got.Body != "/w==" || !got.IsBase64Encoded {
		t.Errorf("event %+v", got)
	}
	if status, _, _ := post("/broken", ""); status != 502 {
		t.Errorf("status %d", status)
	}
	if status, _, _ := post("/v1/x", strings.Repeat("x", 2<<20)); status != 413 {
		t.Errorf("status %d", status)
	}
}

func TestShutdownTellsTheFunctions(t *testing.T) {
	rec := gatewaytest.NewRecorder()
	r := open(t, rec, false, nil)
	ws := mustDial(t, r.url, nil)
	id := rec.WaitConnects(t, 1)[0]
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	down := make(chan error, 1)
	go func() { down <- r.front.Shutdown(ctx, 0) }()
	wantClose(t, ws, gateway.CloseGoingAway)
	if err := <-down; err != nil {
		t.Fatal(err)
	}
	if e := rec.WaitDisconnect(t, id); e.Code != gateway.CloseGoingAway {
		t.Errorf("disconnect says %d", e.Code)
	}
	// Nobody listens any more: the connections of that address are gone.
	if _, err := r.actions.Post(ctx, id, gateway.Message{Text: true}); !errors.Is(err, gateway.ErrGone) {
		t.Errorf("post: %v", err)
	}
}

func TestOptions(t *testing.T) {
	good := invoke.Options{
		Lambda: &rig{}, Functions: invoke.Functions{Connect: "c", Message: "m", Disconnect: "d"},
		Callback: "https://front.example/x", Check: words(word).Check,
	}
	if _, err := invoke.New(good); err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(*invoke.Options){
		"no Lambda":             func(o *invoke.Options) { o.Lambda = nil },
		"no secret":             func(o *invoke.Options) { o.Check = nil },
		"no name":               func(o *invoke.Options) { o.Functions.Message = "" },
		"queue without address": func(o *invoke.Options) { o.Ingress = &rig{} },
		"no callback":           func(o *invoke.Options) { o.Callback = "" },
		"callback in the clear": func(o *invoke.Options) { o.Callback = "http://front.example" },
		"too large to invoke":   func(o *invoke.Options) { o.Server.ReadLimit = 5 << 20 },
	} {
		o := good
		change(&o)
		if _, err := invoke.New(o); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

func TestClients(t *testing.T) {
	for address, want := range map[string]struct{ aws, good bool }{
		"https://lambda.eu-central-1.amazonaws.com":               {true, true},
		"https://vpce-1-2.lambda.eu-central-1.vpce.amazonaws.com": {true, true},
		"https://lambda.cn-north-1.amazonaws.com.cn":              {true, true},
		"http://127.0.0.1:3001":                                   {false, true},
		"http://lambda.eu-central-1.amazonaws.com":                {false, true}, // never signed in the clear
		"https://amazonaws.com.example":                           {false, true},
		"lambda.eu-central-1.amazonaws.com":                       {false, false},
		"https://u:p@127.0.0.1":                                   {false, false},
		"":                                                        {false, false},
		"https://sqs.eu-central-1.amazonaws.com/123/ingress.fifo": {true, true},
	} {
		if got := invoke.IsAWS(address); got != want.aws {
			t.Errorf("%s: AWS %v", address, got)
		}
		if err := invoke.CheckAddress(address); (err == nil) != want.good {
			t.Errorf("%s: %v", address, err)
		}
	}
	ctx := context.Background()
	c, err := invoke.Clients{}.Lambda(ctx, "https://vpce-1-2.lambda.eu-west-3.vpce.amazonaws.com")
	if err != nil {
		t.Fatal(err)
	}
	if c.Options().Region != "eu-west-3" {
		t.Errorf("%v, %v", c.Options().Region, err)
	}
	if _, err := (invoke.Clients{}).Secret(ctx, "the secret itself"); err == nil || strings.Contains(err.Error(), "itself\"") {
		t.Errorf("%v", err)
	}
}
