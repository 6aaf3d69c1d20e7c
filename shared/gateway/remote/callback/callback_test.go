package callback_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"blindpost/shared/gateway"
	"blindpost/shared/gateway/remote/callback"
	"blindpost/shared/settings/secret"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	word = "a-secret-of-the-front-and-the-functions"
	id   = "Abc-_123="
)

// front is a gateway.Front that notes what is done to it.
type front struct {
	mu      sync.Mutex
	posted  []gateway.Message
	conn    gateway.Conn
	code    gateway.CloseCode
	reason  string
	outcome gateway.Outcome
	err     error
	hold    chan struct{} // posts wait for it, if it is not nil
	held    chan struct{} // takes one for each post that waits
}

func (f *front) note(c gateway.Conn) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.conn = c
	return f.err
}

func (f *front) Post(_ context.Context, c gateway.Conn, m gateway.Message) (gateway.Outcome, error) {
	if f.hold != nil {
		f.held <- struct{}{}
		<-f.hold
	}
	if err := f.note(c); err != nil {
		return 0, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.posted = append(f.posted, gateway.Message{Data: bytes.Clone(m.Data), Text: m.Text, Droppable: m.Droppable})
	return f.outcome, nil
}

func (f *front) Close(_ context.Context, c gateway.Conn, code gateway.CloseCode, reason string) error {
	f.code, f.reason = code, reason
	return f.note(c)
}

var (
	opened = time.Date(2026, 9, 24, 9, 12, 20, 118e6, time.UTC)
	active = opened.Add(time.Minute)
)

func (f *front) Stat(_ context.Context, c gateway.Conn) (gateway.Stat, error) {
	return gateway.Stat{ConnectedAt: opened, LastActiveAt: active}, f.note(c)
}

func (f *front) Gone(gateway.Conn) bool { return false }

// stage is a front with its handler, and what it has logged and counted.
type stage struct {
	*front
	url    string
	secret string
	log    bytes.Buffer
	mu     sync.Mutex
	calls  []int
	client *callback.Client
	http   *http.Transport
}

func open(t *testing.T, o callback.HandlerOptions) *stage {
	s := &stage{front: &front{outcome: gateway.Pending}, secret: word, http: callback.NewTransport()}
	o.Front = s.front
	o.Check = func(_ context.Context, value string) (bool, error) {
		if s.secret == "" {
			return false, errors.New("secret is out of reach")
		}
		return value == s.secret, nil
	}
	o.Identity = func(gateway.Conn) (string, string) { return "203.0.113.7", "Skald/2.4" }
	o.Log = slog.New(slog.NewTextHandler(&s.log, nil))
	o.OnRequest = func(_ string, status int, _ time.Duration) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.calls = append(s.calls, status)
	}
	server := httptest.NewServer(callback.NewHandler(o))
	t.Cleanup(func() { s.http.CloseIdleConnections(); server.Close() })
	s.url = server.URL + o.Prefix
	s.client = callback.NewClient(s.url, shared(word), s.http)
	return s
}

func shared(w string) *secret.Rotating {
	return secret.New(secret.Options{Read: func(context.Context) (string, error) { return w, nil }})
}

func TestClientAndHandler(t *testing.T) {
	for _, prefix := range []string{"", "/relay/front"} {
		s, ctx := open(t, callback.HandlerOptions{Prefix: prefix}), context.Background()
		for _, m := range []gateway.Message{
			{Data: []byte{0, 0xff, 0xfe, '\n'}}, {Data: []byte("zwölf €"), Text: true}, {Data: []byte{}, Text: true},
			{Data: bytes.Repeat([]byte{0x80}, 512<<10)}, {Data: []byte("late is nothing"), Text: true, Droppable: true},
		} {
			outcome, err := s.client.Post(ctx, id, m)
			got := s.posted[len(s.posted)-1]
			if err != nil || outcome != gateway.Sent || s.conn != id || !bytes.Equal(got.Data, m.Data) || got.Text != m.Text || got.Droppable != m.Droppable {
				t.Errorf("%v, %v: %d bytes, text %v, droppable %v", outcome, err, len(got.Data), got.Text, got.Droppable)
			}
		}
		stat, err := s.client.Stat(ctx, id)
		if err != nil || !stat.ConnectedAt.Equal(opened) || !stat.LastActiveAt.Equal(active) {
			t.Errorf("%+v, %v", stat, err)
		}
		if err := s.client.Close(ctx, id, gateway.CloseRevoked, "revoked & gone"); err != nil || s.code != gateway.CloseRevoked || s.reason != "revoked & gone" {
			t.Errorf("%v: %d %q", err, s.code, s.reason)
		}
		s.outcome = gateway.Dropped
		if outcome, err := s.client.Post(ctx, id, gateway.Message{Droppable: true}); err != nil || outcome != gateway.Dropped {
			t.Errorf("%v, %v", outcome, err)
		}
	}
}

func TestErrorsOfTheFront(t *testing.T) {
	for _, tt := range []struct {
		err    error
		want   error
		status int
		again  bool
	}{
		{gateway.ErrGone, gateway.ErrGone, 410, false},
		{gateway.ErrTooLarge, gateway.ErrTooLarge, 413, false},
		{errors.New("whatever it says"), nil, 500, true},
	} {
		s, ctx := open(t, callback.HandlerOptions{}), context.Background()
		s.err = tt.err
		_, post := s.client.Post(ctx, id, gateway.Message{Data: []byte("x")})
		_, stat := s.client.Stat(ctx, id)
		for _, err := range []error{post, stat, s.client.Close(ctx, id, gateway.CloseNormal, "")} {
			var status *callback.StatusError
			if tt.want != nil && !errors.Is(err, tt.want) || tt.want == nil && (!errors.As(err, &status) || status.Status != tt.status) || callback.Again(err) != tt.again {
				t.Errorf("%v: got %v, again %v", tt.err, err, callback.Again(err))
			}
		}
		for _, status := range s.calls {
			if status != tt.status {
				t.Errorf("%v: status %d", tt.err, status)
			}
		}
	}
	s := open(t, callback.HandlerOptions{})
	if _, err := s.client.Post(context.Background(), "no id/at all", gateway.Message{}); !errors.Is(err, gateway.ErrGone) || len(s.calls) != 0 {
		t.Errorf("%v after %v", err, s.calls)
	}
}

// What strangers send: the status, and that the front has seen nothing of it.
func TestHandlerRefuses(t *testing.T) {
	good := "Bearer " + word
	for _, tt := range []struct {
		name, method, path, auth, body string
		header                         http.Header
		chunked                        bool
		want                           int
	}{
		{name: "no secret", method: "POST", path: "/@connections/" + id, want: 403},
		{name: "wrong secret", method: "POST", path: "/@connections/" + id, auth: "Bearer no", want: 403},
		{name: "empty secret", method: "DELETE", path: "/@connections/" + id, auth: "Bearer ", want: 403},
		{name: "another scheme", method: "GET", path: "/@connections/" + id, auth: "Basic " + word, want: 403},
		{name: "no secret, no path", method: "GET", path: "/", want: 403},
		{name: "another path", method: "GET", path: "/connections/" + id, auth: good, want: 404},
		{name: "another verb", method: "PUT", path: "/@connections/" + id, auth: good, want: 405},
		{name: "no id", method: "POST", path: "/@connections/", auth: good, want: 400},
		{name: "malformed id", method: "POST", path: "/@connections/a%2Fb", auth: good, want: 400},
		{name: "long id", method: "GET", path: "/@connections/" + strings.Repeat("a", 129), auth: good, want: 400},
		{name: "no length", method: "POST", path: "/@connections/" + id, auth: good, body: "x", chunked: true, want: 411},
		{name: "too large", method: "POST", path: "/@connections/" + id, auth: good, body: strings.Repeat("x", 1025), want: 413},
		{name: "text that is none", method: "POST", path: "/@connections/" + id, auth: good, body: "\xff", want: 400},
		{name: "unknown kind", method: "POST", path: "/@connections/" + id, auth: good, body: "x", header: http.Header{callback.FrameHeader: {"ping"}}, want: 400},
		{name: "close code of nobody", method: "DELETE", path: "/@connections/" + id + "?code=999", auth: good, want: 400},
		{name: "close code that is none", method: "DELETE", path: "/@connections/" + id + "?code=x", auth: good, want: 400},
		{name: "malformed query", method: "DELETE", path: "/@connections/" + id + "?code=%zz", auth: good, want: 400},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := open(t, callback.HandlerOptions{MaxMessage: 1024})
			var body io.Reader = strings.NewReader(tt.body)
			if tt.chunked {
				body = io.MultiReader(body)
			}
			r, err := http.NewRequest(tt.method, s.url+tt.path, body)
			if err != nil {
				t.Fatal(err)
			}
			if tt.header != nil {
				r.Header = tt.header
			}
			if tt.auth != "" {
				r.Header.Set("Authorization", tt.auth)
			}
			res, err := s.http.RoundTrip(r)
			if err != nil {
				t.Fatal(err)
			}
			answer, _ := io.ReadAll(res.Body)
			res.Body.Close()
			if res.StatusCode != tt.want || s.conn != "" || res.Header.Get("X-Amzn-Errortype") == "" {
				t.Errorf("status %d, want %d; the front has seen %q; %v", res.StatusCode, tt.want, s.conn, res.Header)
			}
			if strings.Contains(string(answer)+s.log.String(), word) {
				t.Error("the secret is told")
			}
		})
	}
}

func TestPlainDeleteAndPostAreThoseOfAPIGateway(t *testing.T) {
	s := open(t, callback.HandlerOptions{})
	for method, want := range map[string]int{"POST": 200, "DELETE": 204} {
		r, _ := http.NewRequest(method, s.url+"/@connections/"+id, strings.NewReader("text"))
		r.Header.Set("Authorization", "Bearer "+word)
		r.Header.Set("Content-Type", "application/octet-stream")
		res, err := s.http.RoundTrip(r)
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		if res.StatusCode != want {
			t.Errorf("%s: %d", method, res.StatusCode)
		}
	}
	if len(s.posted) != 1 || !s.posted[0].Text || s.code != gateway.CloseNormal {
		t.Errorf("%v, %d", s.posted, s.code)
	}
}

func TestTooMuchAtOnce(t *testing.T) {
	s := open(t, callback.HandlerOptions{MaxMessage: 1000, MaxHeld: 1500})
	s.hold, s.held = make(chan struct{}), make(chan struct{}, 1)
	large := gateway.Message{Data: make([]byte, 1000)}
	first := make(chan error)
	go func() {
		_, err := s.client.Post(context.Background(), id, large)
		first <- err
	}()
	<-s.held
	_, err := s.client.Post(context.Background(), id, large)
	var status *callback.StatusError
	if !errors.As(err, &status) || status.Status != 429 || !callback.Again(err) {
		t.Errorf("error is %v", err)
	}
	close(s.hold)
	if err := <-first; err != nil {
		t.Errorf("the first: %v", err)
	}
	s.hold = nil
	if _, err := s.client.Post(context.Background(), id, large); err != nil {
		t.Errorf("when all is read: %v", err)
	}
}

func TestSecretThatWasRotated(t *testing.T) {
	s, now := open(t, callback.HandlerOptions{}), time.Unix(1e9, 0)
	shown := word
	c := callback.NewClient(s.url, secret.New(secret.Options{
		Read: func(context.Context) (string, error) { return shown, nil }, Now: func() time.Time { return now },
	}), s.http)
	post := func() error {
		_, err := c.Post(context.Background(), id, gateway.Message{Text: true})
		return err
	}
	if err := post(); err != nil {
		t.Fatal(err)
	}
	s.secret, shown = "another-word-for-both-of-them", "another-word-for-both-of-them"
	now = now.Add(time.Minute)
	if err := post(); err == nil || !callback.Again(err) {
		t.Errorf("the old word: %v", err)
	}
	if err := post(); err != nil {
		t.Errorf("the new word: %v", err)
	}
	shown, s.secret = "not-the-word-of-the-front-at-all", "a-third-word-for-the-front"
	now = now.Add(time.Minute)
	_ = post()
	if err := post(); err == nil || callback.Again(err) || strings.Contains(err.Error(), shown) {
		t.Errorf("a word that is wrong after it was read again: %v", err)
	}
	s.secret = ""
	if err := post(); err == nil || !callback.Again(err) {
		t.Errorf("a front that cannot read its secret: %v", err)
	}
}

func TestNoAnswer(t *testing.T) {
	s := open(t, callback.HandlerOptions{})
	s.hold, s.held = make(chan struct{}), make(chan struct{}, 1)
	defer close(s.hold)
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	_, err := s.client.Post(ctx, id, gateway.Message{Data: []byte("x")})
	if !errors.Is(err, context.DeadlineExceeded) || !callback.Again(err) {
		t.Errorf("error is %v", err)
	}
	nobody := callback.NewClient("http://127.0.0.1:1", shared(word), s.http)
	err = nobody.Close(context.Background(), id, gateway.CloseReplaced, "a reason of somebody")
	if err == nil || !callback.Again(err) || strings.Contains(err.Error(), "reason") {
		t.Errorf("error is %v", err)
	}
}

// A front that sends its callers elsewhere does not get the secret told there.
func TestNoRedirects(t *testing.T) {
	asked := false
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked = true }))
	defer other.Close()
	server := httptest.NewServer(http.RedirectHandler(other.URL, http.StatusTemporaryRedirect))
	defer server.Close()
	transport := callback.NewTransport()
	defer transport.CloseIdleConnections()
	c := callback.NewClient(server.URL, shared(word), transport)
	if _, err := c.Post(context.Background(), id, gateway.Message{}); err == nil || asked {
		t.Errorf("%v, asked %v", err, asked)
	}
}
