package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coder/websocket"

	"blindpost/shared/gateway"
	"blindpost/shared/gateway/remote/callback"
	"blindpost/shared/proof/port"
	"blindpost/shared/proof/rig"
	"blindpost/shared/settings"
	"blindpost/shared/settings/secret"
)

func TestLambdaSettings(t *testing.T) {
	front := func(more ...string) []string { return append([]string{"--lambda", "http://127.0.0.1:3001"}, more...) }
	for _, tt := range []struct {
		args []string
		want string // "" is fine
	}{
		{front(), ""},
		{front("--callback-listen", "10.0.0.5:8444"), ""},
		{front("--callback-listen", ":8444", "--callback-url", "https://f.example", "--callback-tls-cert", "c", "--callback-tls-key", "k"), ""},
		{front("--callback-listen", ":8444", "--callback-url", "https://f.example", "--behind-proxy", "10.0.0.0/8"), ""},
		{front("--lambda-ingress", "https://sqs.eu-central-1.amazonaws.com/1/i.fifo"), ""},
		{[]string{"--lambda", "lambda.eu-central-1.amazonaws.com"}, `--lambda "lambda.eu-central-1.amazonaws.com": it must be a URL`},
		{[]string{"--callback-url", "https://f.example"}, `--callback-url "https://f.example": it means nothing without lambda`},
		{[]string{"--lambda-message", "m"}, `--lambda-message "m": it means nothing without lambda`},
		{front("--lambda-message", " "), `--lambda-message " ": it must be text that is not empty`},
		{front("--lambda-ingress", "https://sqs.eu-central-1.amazonaws.com/1/jobs"), `jobs": it must be the URL of a FIFO queue`},
		{front("--lambda-timeout", "0s"), "--lambda-timeout"},
		{front("--max-live-frame", "5MiB", "--send-buffer", "6MiB"), `--max-live-frame "5MiB": a call of a function carries at most`},
		{front("--callback-listen", "8444"), "--callback-listen"},
		{front("--callback-listen", ":8444", "--callback-url", "https://f.example"), "in the clear"},
		{front("--callback-listen", "203.0.113.1:8444"), "in the clear"},
		{front("--callback-listen", "127.0.0.1:0"), "callback-url: it is needed"},
		{front("--callback-url", "http://f.example"), `--callback-url "http://f.example": callback address is not https`},
		{front("--callback-url", "https://f.example/"), `--callback-url "https://f.example/": it must be a URL such as https://relay.example.org, with no more than a host and a path, and no slash`},
		{front("--callback-tls-cert", "c"), `--callback-tls-cert "c": it needs callback-tls-key`},
		{front("--callback-secret-file", "f", "--callback-secret-arn", "arn:x"), `--callback-secret-file: it excludes`},
		{front("--callback-secret-arn", "the secret itself"), "not the secret itself"},
	} {
		_, err := ParseSettings(tt.args, io.Discard)
		if (err == nil) != (tt.want == "") || (err != nil && !strings.Contains(err.Error(), tt.want)) {
			t.Errorf("%v: %v, want %q", tt.args, err, tt.want)
		}
	}
}

// Without --lambda no other setting of its group is taken, so that none is ignored.
func TestLambdaGroupNeedsLambda(t *testing.T) {
	said := lines(t)
	said["callback-secret-arn"] = "arn:x"
	for _, s := range settings.All(settings.Binary) {
		if s.Group != settings.Lambda.Group || s.Name == settings.Lambda.Name {
			continue
		}
		_, err := parse(t, "", settings.Flag(s.Name), said[s.Name])
		if err == nil || !strings.HasSuffix(err.Error(), ": it means nothing without lambda") {
			t.Errorf("%s: %v", s.Name, err)
		}
	}
}

// lambdaAPI stands in for Lambda: it writes down what is invoked.
type lambdaAPI struct {
	mu    sync.Mutex
	calls []string // function and body
	ids   []string // connections
	more  chan struct{}
}

func (l *lambdaAPI) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var e struct {
		Body           string
		RequestContext struct{ ConnectionID string }
	}
	b, _ := io.ReadAll(r.Body)
	_ = json.Unmarshal(b, &e)
	l.mu.Lock()
	l.calls = append(l.calls, strings.Split(r.URL.Path, "/")[3]+" "+e.Body)
	l.ids = append(l.ids, e.RequestContext.ConnectionID)
	l.mu.Unlock()
	l.more <- struct{}{}
	_, _ = io.WriteString(w, `{"statusCode":200}`)
}

func (l *lambdaAPI) wait(t *testing.T) (what, id string) {
	t.Helper()
	select {
	case <-l.more:
	case <-time.After(20 * time.Second):
		t.Fatal("no function is invoked")
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.calls[len(l.calls)-1], l.ids[len(l.ids)-1]
}

// The front as it is started: it makes its certificate and its secret, invokes the
// functions, takes their calls, and ends in good order.
func TestServeLambda(t *testing.T) {
	api := &lambdaAPI{more: make(chan struct{}, 100)}
	server := httptest.NewServer(api)
	defer server.Close()
	dir := filepath.Join(t.TempDir(), "data")
	listen, callbacks := port.Reserve(t), port.Reserve(t)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	log := &rig.Log{}
	done := make(chan int, 1)
	go func() {
		done <- runServe(ctx, env{stdout: io.Discard, stderr: log}, []string{
			"--lambda", server.URL, "--listen", listen, "--callback-listen", callbacks, "--data-dir", dir,
			"--metrics-listen", "off", "--shutdown-spread", "0s", "--lambda-message", "the-message",
		})
	}()
	secretFile := filepath.Join(dir, "callback-secret")
	tlsConfig := trust(t, filepath.Join(dir, tlsFolder, "localhost.crt"), done, log)
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: tlsConfig}}
	defer client.CloseIdleConnections()

	_, port, _ := net.SplitHostPort(listen)
	ws := dialUntil(t, "wss://localhost:"+port+"/v1/ws", client)
	defer ws.CloseNow()
	what, id := api.wait(t)
	if what != "Connect " || id == "" {
		t.Fatalf("invoked %q", what)
	}
	if err := ws.Write(ctx, websocket.MessageBinary, []byte{0xff, 0}); err != nil {
		t.Fatal(err)
	}
	if what, _ = api.wait(t); what != "the-message /wA=" {
		t.Errorf("invoked %q", what)
	}

	transport := callback.NewTransport()
	defer transport.CloseIdleConnections()
	shared := secret.New(secret.Options{Read: secret.File(secretFile), Long: true})
	c := callback.NewClient("http://"+callbacks, shared, transport)
	if _, err := c.Post(ctx, id, gateway.Message{Data: []byte{0, 0xfe}}); err != nil {
		t.Fatal(err)
	}
	if kind, data, err := ws.Read(ctx); err != nil || kind != websocket.MessageBinary || !bytes.Equal(data, []byte{0, 0xfe}) {
		t.Errorf("got %v %q, %v", kind, data, err)
	}
	res, err := http.Get("http://" + callbacks + "/@connections/" + id)
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	if res.StatusCode != http.StatusForbidden {
		t.Errorf("a stranger gets %d", res.StatusCode)
	}
	http.DefaultClient.CloseIdleConnections()

	cancel()
	go func() { _, _, _ = ws.Read(context.Background()) }() // answers the close
	if what, _ = api.wait(t); what != "Disconnect " {
		t.Errorf("invoked %q", what)
	}
	if status := <-done; status != 0 {
		t.Errorf("ended with %d:\n%s", status, log.String())
	}
	current, err := shared.Current(context.Background())
	if err != nil || strings.Contains(log.String(), current) || !strings.Contains(log.String(), secretFile) {
		t.Errorf("%v; the log must name the file of the secret and not the secret:\n%s", err, log.String())
	}
	if info, err := os.Stat(secretFile); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
}

// trust waits for a certificate in a file.
func trust(t *testing.T, name string, done <-chan int, log *rig.Log) *tls.Config {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		roots := x509.NewCertPool()
		if pem, err := os.ReadFile(name); err == nil && roots.AppendCertsFromPEM(pem) {
			return &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}
		}
		if len(done) > 0 || time.Now().After(end) {
			t.Fatalf("no certificate:\n%s", log.String())
		}
	}
}

func dialUntil(t *testing.T, url string, client *http.Client) *websocket.Conn {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		ws, _, err := websocket.Dial(context.Background(), url, &websocket.DialOptions{HTTPClient: client})
		if err == nil {
			return ws
		}
		if time.Now().After(end) {
			t.Fatal(err)
		}
	}
}
