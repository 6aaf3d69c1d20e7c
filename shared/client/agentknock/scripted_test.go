package agentknock

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coder/websocket"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// scripted is a relay that plays a script: one act for each upgrade, in order. It has
// failed if a peer comes more often than that.
type scripted struct {
	t    *testing.T
	acts []act

	mu   sync.Mutex
	next int
}

// act answers one upgrade: with a status if that is not 0, otherwise with a
// connection on which play goes on.
type act struct {
	status int
	header map[string]string
	play   func(s *stage)
}

// stage is one connection of the relay.
type stage struct {
	t  *testing.T
	ws *websocket.Conn
}

func (r *scripted) ServeHTTP(w http.ResponseWriter, q *http.Request) {
	r.mu.Lock()
	i := r.next
	r.next++
	r.mu.Unlock()
	if i >= len(r.acts) {
		w.WriteHeader(http.StatusGone)
		return
	}
	a := r.acts[i]
	if a.status != 0 {
		for name, v := range a.header {
			w.Header().Set(name, v)
		}
		w.WriteHeader(a.status)
		return
	}
	ws, err := websocket.Accept(w, q, nil)
	if err != nil {
		r.t.Error(err)
		return
	}
	defer func() { _ = ws.CloseNow() }()
	a.play(&stage{r.t, ws})
}

// run starts it and returns the way there.
func run(t *testing.T, acts ...act) *Relay {
	s := httptest.NewServer(&scripted{t: t, acts: acts})
	t.Cleanup(s.Close)
	return &Relay{URL: "ws" + strings.TrimPrefix(s.URL, "http")}
}

func (s *stage) say(fs ...Frame) {
	for _, f := range fs {
		if err := s.ws.Write(context.Background(), websocket.MessageText, f.Encode()); err != nil {
			s.t.Errorf("failed to say %s: %v", f, err)
		}
	}
}

// hear wants the next frame to be this one.
func (s *stage) hear(want Frame) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	_, data, err := s.ws.Read(ctx)
	if err != nil || string(data) != string(want.Encode()) {
		s.t.Errorf("heard %s, %v, not %s", data, err, want.Encode())
	}
}

// stay reads until the peer goes.
func (s *stage) stay() {
	for {
		if _, _, err := s.ws.Read(context.Background()); err != nil {
			return
		}
	}
}

func (s *stage) close(code int) { _ = s.ws.Close(websocket.StatusCode(code), "") }

func soon(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	t.Cleanup(cancel)
	return ctx
}

// The frames of the only exchange there is.
func frameOf(kind, of string) Frame {
	return Frame{Type: kind, ClientID: aClient, RequestID: aRequest, Kind: of}
}

func messageOf(kind string) Frame {
	f := frameOf(Message, kind)
	f.Payload = json.RawMessage(`"` + kind + `"`)
	return f
}

func stateOf(exchange, request, response, completion string) Frame {
	f := frameOf(State, "")
	f.Snapshot = Snapshot{exchange, request, response, completion}
	return f
}

func errorOf(code string, retryAfter time.Duration) Frame {
	f := frameOf(Error, "")
	f.Code, f.Text, f.Retryable, f.RetryAfter = code, "no", retryAfter > 0, retryAfter
	return f
}
