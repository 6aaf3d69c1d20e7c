package apigw_test

import (
	"context"
	"errors"
	"net"
	"os"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-lambda-go/events"
	api "github.com/aws/aws-sdk-go-v2/service/apigatewaymanagementapi"

	"blindpost/shared/gateway"
	"blindpost/shared/gateway/apigw"
	"blindpost/shared/gateway/apigw/record"
	"blindpost/shared/gateway/remote/callback"
)

const ours = "https://front.example:8444"

// scriptedFront is a front of our own that does what it is told.
type scriptedFront struct {
	posts  []gateway.Message
	code   gateway.CloseCode
	reason string
	// answer is what each call comes to; nil is fine.
	answer func(ctx context.Context, call int) error
	calls  int
}

func (f *scriptedFront) next(ctx context.Context) error {
	f.calls++
	if f.answer == nil {
		return nil
	}
	return f.answer(ctx, f.calls)
}

func (f *scriptedFront) Post(ctx context.Context, _ string, m gateway.Message) (gateway.Outcome, error) {
	if err := f.next(ctx); err != nil {
		return 0, err
	}
	f.posts = append(f.posts, m)
	return gateway.Sent, nil
}

func (f *scriptedFront) Close(ctx context.Context, _ string, code gateway.CloseCode, reason string) error {
	f.code, f.reason = code, reason
	return f.next(ctx)
}

func (f *scriptedFront) Stat(ctx context.Context, _ string) (gateway.Stat, error) {
	return gateway.Stat{ConnectedAt: time.Unix(7, 0)}, f.next(ctx)
}

// withOwn is a front of the functions that knows one front of our own, and API Gateway.
func withOwn(own *scriptedFront, other apigw.API) *apigw.Front {
	return apigw.NewFront(apigw.FrontOptions{
		NewClient: func(context.Context, string) (apigw.API, error) { return other, nil },
		Allowed:   apigw.AllowEndpoints(""),
		Fronts:    []string{ours},
		NewRemote: func(context.Context, string) (apigw.RemoteFront, error) { return own, nil },
		Random:    func() float64 { return 0 },
	})
}

const remoteConn = gateway.Conn("abc-_1@front+" + ours)

func TestOwnFront(t *testing.T) {
	own, ctx := &scriptedFront{}, context.Background()
	f := withOwn(own, nil)
	large := make([]byte, 512<<10)
	large[0] = 0xff
	if outcome, err := f.Post(ctx, remoteConn, gateway.Message{Data: large}); outcome != gateway.Sent || err != nil {
		t.Errorf("%v, %v", outcome, err)
	}
	if len(own.posts) != 1 || len(own.posts[0].Data) != len(large) || own.posts[0].Text {
		t.Error("the message is not as it was")
	}
	if err := f.Close(ctx, remoteConn, gateway.CloseRevoked, "revoked"); err != nil || own.code != gateway.CloseRevoked || own.reason != "revoked" {
		t.Errorf("%v: %d %q", err, own.code, own.reason)
	}
	if s, err := f.Stat(ctx, remoteConn); err != nil || s.ConnectedAt.Unix() != 7 {
		t.Errorf("%v, %v", s, err)
	}
}

// untouchable is an API Gateway that the test must not call.
type untouchable struct{ t *testing.T }

func (u untouchable) PostToConnection(context.Context, *api.PostToConnectionInput, ...func(*api.Options)) (*api.PostToConnectionOutput, error) {
	u.t.Error("API Gateway was called")
	return nil, errors.New("called")
}

func (u untouchable) GetConnection(context.Context, *api.GetConnectionInput, ...func(*api.Options)) (*api.GetConnectionOutput, error) {
	u.t.Error("API Gateway was called")
	return nil, errors.New("called")
}

func (u untouchable) DeleteConnection(context.Context, *api.DeleteConnectionInput, ...func(*api.Options)) (*api.DeleteConnectionOutput, error) {
	u.t.Error("API Gateway was called")
	return nil, errors.New("called")
}

// A name of a connection that somebody has forged has nobody called: not the metadata
// service, not another front, not another account's API under a made-up host.
func TestForgedConnections(t *testing.T) {
	own := &scriptedFront{}
	f := withOwn(own, untouchable{t})
	for _, c := range []gateway.Conn{
		"abc@front+http://169.254.169.254", "abc@front+" + ours + "/x", "abc@front+https://front.example", "abc@front+", "a/b@front+" + ours,
		"@front+" + ours, "abc@front", "abc@http://169.254.169.254/latest", "abc@https://api.example/prod", "abc@https://execute-api.example/prod",
		"abc@http://x.execute-api.eu-central-1.amazonaws.com/prod", "abc@https://x.execute-api.eu-central-1.amazonaws.com.example/prod",
		"abc@https://x.execute-api.eu-central-1.amazonaws.com:8443/prod", "abc@https://amazonaws.com/x.execute-api.y",
		"abc@https://evil.example/?x.execute-api.eu-central-1.amazonaws.com", "", "abc",
	} {
		if _, err := f.Post(context.Background(), c, gateway.Message{Text: true}); !errors.Is(err, gateway.ErrGone) {
			t.Errorf("%s: post: %v", c, err)
		}
		if err := f.Close(context.Background(), c, gateway.CloseNormal, ""); !errors.Is(err, gateway.ErrGone) {
			t.Errorf("%s: close: %v", c, err)
		}
		if _, err := f.Stat(context.Background(), c); !errors.Is(err, gateway.ErrGone) {
			t.Errorf("%s: stat: %v", c, err)
		}
	}
	if own.calls != 0 {
		t.Errorf("the front was called %d times", own.calls)
	}
}

func TestAllow(t *testing.T) {
	for endpoint, want := range map[string]bool{
		"https://k3v9.execute-api.eu-central-1.amazonaws.com/prod":  true,
		"https://k3v9.execute-api.cn-north-1.amazonaws.com.cn/prod": true,
		"https://k3v9-vpce-1.execute-api.eu-west-3.amazonaws.com/x": true,
		"https://relay.example.org/prod":                            false,
		"https://execute-api.eu-central-1.amazonaws.com/prod":       false,
	} {
		if got := apigw.AllowEndpoints("")(endpoint); got != want {
			t.Errorf("%s: %v", endpoint, got)
		}
	}
	only := apigw.AllowEndpoints("https://relay.example.org/prod")
	if !only("https://relay.example.org/prod") || only("https://k3v9.execute-api.eu-central-1.amazonaws.com/prod") {
		t.Error("an address that is set is not the only one")
	}
}

func TestCheckFront(t *testing.T) {
	for address, good := range map[string]bool{
		"https://front.example": true, "https://front.example:8444/relay": true, "http://127.0.0.1:8444": true, "http://[::1]:8444": true,
		"http://localhost:8444": true, "http://10.1.2.3:8444": true, "http://host.docker.internal:8444": true, "http://[fd00::1]:1": true,
		"http://front.example": false, "http://203.0.113.1": false, "https://front.example/": false, "https://u:p@front.example": false,
		"https://front.example?x": false, "ftp://front.example": false, "": false, "https://": false, "http://169.254.169.254": false,
	} {
		if err := apigw.CheckFront(address); (err == nil) != good {
			t.Errorf("%s: %v", address, err)
		}
	}
}

func TestGroupOfOwnConnections(t *testing.T) {
	if got := apigw.GroupID(string(remoteConn)); got != "abc-_1" {
		t.Errorf("group is %q", got)
	}
}

// refused is the error of a dial to a port without a listener.
func refused() error {
	return &net.OpError{Op: "dial", Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}
}

func TestOwnFrontThatFails(t *testing.T) {
	hang := func(ctx context.Context, _ int) error { <-ctx.Done(); return ctx.Err() }
	for name, tt := range map[string]struct {
		answer func(ctx context.Context, call int) error
		want   func(error) bool
		calls  int // at least
		within time.Duration
	}{
		"gone": {func(context.Context, int) error { return gateway.ErrGone },
			func(err error) bool { return errors.Is(err, gateway.ErrGone) }, 1, 0},
		"too large": {func(context.Context, int) error { return gateway.ErrTooLarge },
			func(err error) bool { return errors.Is(err, gateway.ErrTooLarge) }, 1, 0},
		"malformed, they say": {func(context.Context, int) error { return &callback.StatusError{Status: 400} },
			func(err error) bool { return err != nil && !errors.Is(err, gateway.ErrGone) }, 1, 0},
		"busy for a second": {func(_ context.Context, call int) error {
			if call < 5 {
				return &callback.StatusError{Status: 429}
			}
			return nil
		}, func(err error) bool { return err == nil }, 5, time.Second},
		"busy": {func(context.Context, int) error { return &callback.StatusError{Status: 429} },
			func(err error) bool { var s *callback.StatusError; return errors.As(err, &s) }, 5, 3 * time.Second},
		"no listener": {func(context.Context, int) error { return refused() },
			func(err error) bool { return errors.Is(err, gateway.ErrGone) }, 5, 3 * time.Second},
		"no listener for a moment": {func(_ context.Context, call int) error {
			if call < 3 {
				return refused()
			}
			return nil
		}, func(err error) bool { return err == nil }, 3, time.Second},
		"hangs": {hang, func(err error) bool {
			return err != nil && !errors.Is(err, gateway.ErrGone) && !errors.Is(err, context.DeadlineExceeded) && strings.Contains(err.Error(), "no answer")
		}, 2, 3200 * time.Millisecond},
		"hangs once": {func(ctx context.Context, call int) error {
			if call == 1 {
				return hang(ctx, call)
			}
			return nil
		}, func(err error) bool { return err == nil }, 2, 2 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				own, begin := &scriptedFront{answer: tt.answer}, time.Now()
				_, err := withOwn(own, nil).Post(context.Background(), remoteConn, gateway.Message{Data: []byte("x")})
				if !tt.want(err) || own.calls < tt.calls || time.Since(begin) > tt.within {
					t.Errorf("%v after %d calls and %v", err, own.calls, time.Since(begin))
				}
			})
		})
	}
}

// A message that may be dropped is, where another would be tried again.
func TestOwnFrontDrops(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		own, begin := &scriptedFront{answer: func(context.Context, int) error { return &callback.StatusError{Status: 429} }}, time.Now()
		outcome, err := withOwn(own, nil).Post(context.Background(), remoteConn, gateway.Message{Droppable: true})
		if err != nil || outcome != gateway.Dropped || time.Since(begin) > 100*time.Millisecond {
			t.Errorf("%v, %v after %v", outcome, err, time.Since(begin))
		}
	})
}

// The end of the caller's time is the caller's.
func TestOwnFrontAndTheCallersTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		own := &scriptedFront{answer: func(ctx context.Context, _ int) error { <-ctx.Done(); return ctx.Err() }}
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_, err := withOwn(own, nil).Post(ctx, remoteConn, gateway.Message{})
		if !errors.Is(err, context.DeadlineExceeded) || own.calls != 1 {
			t.Errorf("%v after %d calls", err, own.calls)
		}
	})
}

// An answer of API Gateway that does not come is tried again as well.
func TestAPIGatewayThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, begin := &triesInTime{}, time.Now()
		c := gateway.Conn("abc=@https://k3v9.execute-api.eu-central-1.amazonaws.com/prod")
		_, err := withOwn(nil, h).Post(context.Background(), c, gateway.Message{Text: true, Data: []byte("x")})
		if err == nil || errors.Is(err, context.DeadlineExceeded) || h.calls != 2 || time.Since(begin) > 3200*time.Millisecond {
			t.Errorf("%v after %d calls and %v", err, h.calls, time.Since(begin))
		}
	})
}

type triesInTime struct {
	apigw.API
	calls int
}

func (h *triesInTime) PostToConnection(ctx context.Context, _ *api.PostToConnectionInput, _ ...func(*api.Options)) (*api.PostToConnectionOutput, error) {
	h.calls++
	<-ctx.Done()
	return nil, ctx.Err()
}

func TestRecordOfAFrontOfOurOwn(t *testing.T) {
	event := func(variables map[string]string, body string, isBase64 bool) events.APIGatewayWebsocketProxyRequest {
		e := events.APIGatewayWebsocketProxyRequest{StageVariables: variables, Body: body, IsBase64Encoded: isBase64}
		e.RequestContext.EventType, e.RequestContext.ConnectionID, e.RequestContext.MessageID = record.Message, "abc", "m"
		return e
	}
	with := func(size string) map[string]string {
		v := map[string]string{record.CallbackVariable: ours}
		if size != "" {
			v[record.OversizeVariable] = size
		}
		return v
	}
	for name, tt := range map[string]struct {
		event events.APIGatewayWebsocketProxyRequest
		text  string // what is in the record
		want  record.Record
		bad   bool
	}{
		"binary":                {event(with(""), "/wA=", true), "\xff\x00", record.Record{Binary: true}, false},
		"text that is base64":   {event(with(""), "/wA=", false), "/wA=", record.Record{}, false},
		"too large":             {event(with("600000"), "", true), "", record.Record{Binary: true, Oversize: 600000}, false},
		"size that is none":     {event(with("-1"), "", true), "", record.Record{}, true},
		"size that is too much": {event(with("99999999999999999999"), "", true), "", record.Record{}, true},
		"size from API Gateway": {event(map[string]string{record.OversizeVariable: "7"}, "eA==", false), "eA==", record.Record{}, false},
	} {
		r, err := apigw.RecordOf(tt.event)
		if err != nil || tt.bad {
			if (err != nil) != tt.bad {
				t.Errorf("%s: %v", name, err)
			}
			continue
		}
		text, err := r.Text()
		if err != nil || text != tt.text || r.Binary != tt.want.Binary || r.Oversize != tt.want.Oversize {
			t.Errorf("%s: %q, %v, %+v", name, text, err, r)
		}
	}
}
