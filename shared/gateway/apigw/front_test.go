package apigw_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	awsclient "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	api "github.com/aws/aws-sdk-go-v2/service/apigatewaymanagementapi"
	"github.com/aws/aws-sdk-go-v2/service/apigatewaymanagementapi/types"
	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"blindpost/shared/gateway"
	"blindpost/shared/gateway/apigw"
)

const (
	connID   = "L0SM9cOFvHcCIhw="
	endpoint = "https://abc123.execute-api.eu-central-1.amazonaws.com/prod"
	someConn = gateway.Conn(connID + "@" + endpoint)
)

// script answers calls of @connections with its errors, one after another, then
// with success.
type script struct {
	answers []error
	times   []time.Time
	data    [][]byte
	ids     []string
}

func (s *script) next(id *string, data []byte) error {
	s.times, s.data, s.ids = append(s.times, time.Now()), append(s.data, data), append(s.ids, *id)
	if len(s.answers) == 0 {
		return nil
	}
	err := s.answers[0]
	s.answers = s.answers[1:]
	return err
}

func (s *script) PostToConnection(_ context.Context, in *api.PostToConnectionInput, _ ...func(*api.Options)) (*api.PostToConnectionOutput, error) {
	return &api.PostToConnectionOutput{}, s.next(in.ConnectionId, in.Data)
}

func (s *script) GetConnection(_ context.Context, in *api.GetConnectionInput, _ ...func(*api.Options)) (*api.GetConnectionOutput, error) {
	return &api.GetConnectionOutput{}, s.next(in.ConnectionId, nil)
}

func (s *script) DeleteConnection(_ context.Context, in *api.DeleteConnectionInput, _ ...func(*api.Options)) (*api.DeleteConnectionOutput, error) {
	return &api.DeleteConnectionOutput{}, s.next(in.ConnectionId, nil)
}

var _ apigw.API = (*script)(nil)

// answer is an error of the client as the SDK makes it.
func answer(status int, err error) error {
	return &smithy.OperationError{ServiceID: "ApiGatewayManagementApi", OperationName: "X", Err: &awsclient.ResponseError{
		RequestID: "r", ResponseError: &smithyhttp.ResponseError{
			Response: &smithyhttp.Response{Response: &http.Response{StatusCode: status}}, Err: err,
		},
	}}
}

func coded(status int, code string) error {
	return answer(status, &smithy.GenericAPIError{Code: code, Message: "secret text"})
}

func frontOver(s *script, asked *[]string) *apigw.Front {
	return apigw.NewFront(apigw.FrontOptions{
		Random: func() float64 { return 0.5 },
		NewClient: func(_ context.Context, endpoint string) (apigw.API, error) {
			if asked != nil {
				*asked = append(*asked, endpoint)
			}
			return s, nil
		},
	})
}

func TestAnswersOfTheAPI(t *testing.T) {
	gone, large, other := gateway.ErrGone, gateway.ErrTooLarge, error(nil)
	for _, tt := range []struct {
		name    string
		answers []error
		want    error // nil with fails: any other error
		fails   bool
		calls   int
	}{
		{"success", nil, nil, false, 1},
		{"gone", []error{answer(410, &types.GoneException{})}, gone, true, 1},
		{"gone without a body", []error{answer(410, errors.New("?"))}, gone, true, 1},
		{"too large", []error{answer(413, &types.PayloadTooLargeException{})}, large, true, 1},
		{"malformed id", []error{coded(400, "BadRequestException")}, gone, true, 1},
		{"bad signature", []error{coded(400, "IncompleteSignatureException")}, other, true, 1},
		{"forbidden", []error{answer(403, &types.ForbiddenException{})}, other, true, 1},
		{"no such route", []error{coded(404, "NotFoundException")}, other, true, 1},
		{"throttled twice", []error{answer(429, &types.LimitExceededException{}), answer(429, &types.LimitExceededException{})}, nil, false, 3},
		{"failing, then gone", []error{coded(500, "InternalServerError"), coded(503, ""), answer(410, &types.GoneException{})}, gone, true, 3},
		{"no answer, then success", []error{errors.New("connection reset")}, nil, false, 2},
		{"throttled for ever", slices.Repeat([]error{answer(429, &types.LimitExceededException{})}, 100), other, true, 8},
	} {
		for _, action := range []string{"post", "close", "stat"} {
			t.Run(tt.name+"/"+action, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					s := &script{answers: tt.answers}
					f := frontOver(s, nil)
					start := time.Now()
					err := act(t.Context(), f, action)
					if (err != nil) != tt.fails || (tt.want != nil && !errors.Is(err, tt.want)) {
						t.Errorf("error is %v", err)
					}
					if tt.want == nil && (errors.Is(err, gone) || errors.Is(err, large)) {
						t.Errorf("error is %v", err)
					}
					if len(s.times) != tt.calls {
						t.Errorf("%d calls", len(s.times))
					}
					if d := time.Since(start); d > 3*time.Second {
						t.Errorf("it took %v", d)
					}
					if err != nil && strings.Contains(err.Error(), "secret text") {
						t.Errorf("error repeats what the API said: %v", err)
					}
					for _, id := range s.ids {
						if id != connID {
							t.Errorf("called with id %q", id)
						}
					}
				})
			})
		}
	}
}

func act(ctx context.Context, f *apigw.Front, action string) (err error) {
	switch action {
	case "post":
		_, err = f.Post(ctx, someConn, gateway.Message{Data: []byte("x")})
	case "close":
		err = f.Close(ctx, someConn, gateway.CloseNormal, "")
	case "stat":
		_, err = f.Stat(ctx, someConn)
	}
	return err
}

func TestPausesGrowAndEndWithTheContext(t *testing.T) {
	throttled := slices.Repeat([]error{answer(429, &types.LimitExceededException{})}, 100)
	synctest.Test(t, func(t *testing.T) {
		s := &script{answers: slices.Clone(throttled)}
		start := time.Now()
		_ = act(t.Context(), frontOver(s, nil), "post")
		var got []string
		for _, at := range s.times {
			got = append(got, at.Sub(start).String())
		}
		// 50, 100, 200, 400, 800, 1000 and 1000 ms, a quarter less each
		if want := "0s 37.5ms 112.5ms 262.5ms 562.5ms 1.1625s 1.9125s 2.6625s"; strings.Join(got, " ") != want {
			t.Errorf("tries at %v", got)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
		defer cancel()
		s := &script{answers: slices.Clone(throttled)}
		start := time.Now()
		if err := act(ctx, frontOver(s, nil), "post"); err == nil || !strings.Contains(err.Error(), "429") {
			t.Errorf("error is %v", err)
		}
		if d := time.Since(start); d >= 500*time.Millisecond || len(s.times) != 4 {
			t.Errorf("%d tries in %v", len(s.times), d)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		s := &script{answers: slices.Clone(throttled)}
		time.AfterFunc(200*time.Millisecond, cancel)
		if err := act(ctx, frontOver(s, nil), "post"); !errors.Is(err, context.Canceled) {
			t.Errorf("error is %v", err)
		}
		if len(s.times) != 3 {
			t.Errorf("%d tries", len(s.times))
		}
	})
}

func TestWhatIsPosted(t *testing.T) {
	for _, tt := range []struct {
		m    gateway.Message
		want string
		err  bool
	}{
		{gateway.Message{Data: []byte{0, 1, 0xff}}, "AAH/", false},
		{gateway.Message{Data: []byte("grüße"), Text: true}, "grüße", false},
		{gateway.Message{Data: nil}, "", false},
		{gateway.Message{Data: []byte{0xff}, Text: true}, "", true},
		{gateway.Message{Data: make([]byte, apigw.MaxMessage+1), Text: true}, "", true},
	} {
		s := &script{}
		out, err := frontOver(s, nil).Post(t.Context(), someConn, tt.m)
		if (err != nil) != tt.err || (err == nil && out != gateway.Sent) {
			t.Errorf("%.20q: %v, %v", tt.m.Data, out, err)
		}
		if err == nil && string(s.data[0]) != tt.want {
			t.Errorf("%.20q was posted as %q", tt.m.Data, s.data[0])
		}
		if err != nil && len(s.data) != 0 {
			t.Errorf("%.20q was posted", tt.m.Data)
		}
	}
}

func TestConnectionsOfOtherFronts(t *testing.T) {
	var asked []string
	s := &script{}
	f := frontOver(s, &asked)
	for _, c := range []gateway.Conn{"", "01J.1", "@https://a/b", "id@", "id@ftp://a/b", "id@https://", "id@https://a/b?c", "i d@https://a/b", "id@https://a/b/", connID} {
		if _, err := f.Post(t.Context(), c, gateway.Message{}); !errors.Is(err, gateway.ErrGone) {
			t.Errorf("%q: %v", c, err)
		}
		if f.Gone(c) {
			t.Errorf("%q is known to be gone", c)
		}
	}
	if len(s.times)+len(asked) != 0 {
		t.Errorf("%d calls, clients for %q", len(s.times), asked)
	}
}

func TestOneClientForEachAddress(t *testing.T) {
	var asked []string
	f := frontOver(&script{}, &asked)
	for i := range 6 {
		c := gateway.Conn(fmt.Sprintf("id%d@https://host%d.example/prod", i, i%2))
		if err := f.Close(t.Context(), c, 0, ""); err != nil {
			t.Fatal(err)
		}
	}
	if !slices.Equal(asked, []string{"https://host0.example/prod", "https://host1.example/prod"}) {
		t.Errorf("clients for %q", asked)
	}
	broken := apigw.NewFront(apigw.FrontOptions{NewClient: func(context.Context, string) (apigw.API, error) {
		return nil, errors.New("no credentials")
	}})
	if _, err := broken.Stat(t.Context(), someConn); err == nil || errors.Is(err, gateway.ErrGone) {
		t.Errorf("error is %v", err)
	}
}

func TestGroupID(t *testing.T) {
	for group, want := range map[string]string{
		string(someConn): connID, "": "", "a group": "a group", "a@b": "a@b",
	} {
		if got := apigw.GroupID(group); got != want {
			t.Errorf("%q became %q", group, got)
		}
	}
}

// What may be dropped is tried once: the boat that sends it must not wait for a
// viewer that API Gateway cannot reach now.
func TestDroppableIsTriedOnce(t *testing.T) {
	busy := answer(429, &types.LimitExceededException{})
	for _, tt := range []struct {
		name    string
		answer  error
		outcome gateway.Outcome
		want    error
	}{
		{"success", nil, gateway.Sent, nil},
		{"buffer is full", busy, gateway.Dropped, nil},
		{"failing", coded(500, "InternalServerError"), gateway.Dropped, nil},
		{"no answer", errors.New("connection reset"), gateway.Dropped, nil},
		{"gone", answer(410, &types.GoneException{}), 0, gateway.ErrGone},
		{"too large", answer(413, &types.PayloadTooLargeException{}), 0, gateway.ErrTooLarge},
	} {
		synctest.Test(t, func(t *testing.T) {
			s := &script{answers: []error{tt.answer, busy, busy}}
			start := time.Now()
			outcome, err := frontOver(s, nil).Post(context.Background(), someConn, gateway.Message{Data: []byte{1}, Droppable: true})
			if outcome != tt.outcome || !errors.Is(err, tt.want) || len(s.times) != 1 || time.Since(start) != 0 {
				t.Errorf("%s: %v, %v after %d calls and %v", tt.name, outcome, err, len(s.times), time.Since(start))
			}
		})
	}
}
