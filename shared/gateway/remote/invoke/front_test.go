package invoke_test

import (
	"context"
	"errors"
	"io"
	"net"
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
	"blindpost/shared/gateway/remote/invoke"
	"blindpost/shared/proof/gatewaytest"
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
	// No process listens at that address any more, so its connections are gone.
	if _, err := r.actions.Post(ctx, id, gateway.Message{Text: true}); !errors.Is(err, gateway.ErrGone) {
		t.Errorf("post: %v", err)
	}
}

// A connection that a function has opened and not used yet is nothing to wait for.
func TestShutdownWaitsForNoUnusedConnection(t *testing.T) {
	r := open(t, gatewaytest.NewRecorder(), false, nil)
	c, err := net.Dial("tcp", strings.TrimPrefix(r.callback, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	// When this is answered, that one has been accepted.
	res, err := http.Get(r.callback)
	if err != nil {
		t.Fatal(err)
	}
	_ = res.Body.Close()
	http.DefaultClient.CloseIdleConnections()
	ctx, cancel := context.WithTimeout(context.Background(), 4*time.Second) // net/http gives them five
	defer cancel()
	if err := r.front.Shutdown(ctx, 0); err != nil {
		t.Fatal(err)
	}
}
