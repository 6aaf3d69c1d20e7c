package apigw_test

import (
	"errors"
	"net/http"
	"sync/atomic"
	"testing"

	"github.com/coder/websocket"

	"blindpost/shared/gateway"
	"blindpost/shared/proof/gatewaytest"
)

// The errors of @connections as the AWS client reads them off the wire.
func TestErrorsOverTheWire(t *testing.T) {
	rec := gatewaytest.NewRecorder()
	r := newRig(t, rec, true)
	ws, _, err := websocket.Dial(t.Context(), r.emulator.URL()+"/v1/ws", &websocket.DialOptions{
		HTTPClient: r.emulator.Client(), Subprotocols: []string{"one", "two"},
	})
	if err != nil {
		t.Fatal(err)
	}
	if ws.Subprotocol() != "one" {
		t.Errorf("subprotocol is %q", ws.Subprotocol())
	}
	c := rec.WaitConnects(t, 1)[0]
	if ip := rec.Events()[0].Connect.RemoteIP; ip.String() != "127.0.0.1" {
		t.Errorf("client's address is %v", ip)
	}
	for status, want := range map[int]error{
		http.StatusGone:                  gateway.ErrGone,
		http.StatusRequestEntityTooLarge: gateway.ErrTooLarge,
		http.StatusBadRequest:            gateway.ErrGone,
		http.StatusForbidden:             nil,
	} {
		r.emulator.Fail(func(string) int { return status })
		for _, action := range []string{"post", "close", "stat"} {
			err := actOn(t, r, c, action)
			if want != nil && !errors.Is(err, want) {
				t.Errorf("%d: %s: %v", status, action, err)
			}
			if want == nil && (err == nil || errors.Is(err, gateway.ErrGone)) {
				t.Errorf("%d: %s: %v", status, action, err)
			}
		}
	}
	var calls atomic.Int64
	for _, status := range []int{http.StatusTooManyRequests, http.StatusInternalServerError, http.StatusServiceUnavailable} {
		calls.Store(0)
		r.emulator.Fail(func(string) int {
			if calls.Add(1) > 2 {
				return 0
			}
			return status
		})
		if err := actOn(t, r, c, "post"); err != nil || calls.Load() != 3 {
			t.Errorf("%d: %v after %d calls", status, err, calls.Load())
		}
	}
	r.emulator.Fail(nil)
	for range 3 {
		if _, data, err := ws.Read(t.Context()); err != nil || string(data) != "eA==" {
			t.Fatalf("got %q, %v", data, err)
		}
	}
	if err := actOn(t, r, "not/anID@"+gateway.Conn(r.emulator.Callback()), "stat"); !errors.Is(err, gateway.ErrGone) {
		t.Errorf("id that cannot be one: %v", err)
	}
}

func actOn(t *testing.T, r *rig, c gateway.Conn, action string) (err error) {
	switch action {
	case "post":
		_, err = r.front.Post(t.Context(), c, gateway.Message{Data: []byte("x")})
	case "close":
		err = r.front.Close(t.Context(), c, gateway.CloseNormal, "")
	case "stat":
		_, err = r.front.Stat(t.Context(), c)
	}
	return err
}
