// Package apigwtest stands in for the WebSocket API of API Gateway in tests: real
// WebSocket connections come in, functions are called with the events of API
// Gateway, and @connections takes the calls of the AWS client.
//
// Where API Gateway promises nothing, the emulator is kind: it hands over the
// frames of one connection one after another, and $disconnect comes always and
// last. Its limits are those of API Gateway, but for that on single frames.
package apigwtest

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"blindpost/shared/gateway/apigw/record"
)

// Stage is the stage of the API.
const Stage = "prod"

// Function is a Lambda function: it takes and gives JSON.
type Function func(ctx context.Context, payload []byte) ([]byte, error)

// Config says what is behind the routes.
type Config struct {
	Connect    Function
	Disconnect Function
	// Default is the function of the $default route. Integration, if set, stands
	// there instead: it gets the form that record.Template makes.
	Default     Function
	Integration func(ctx context.Context, form url.Values) error

	// Edge, if not empty, is the shared secret of a CloudFront in front of the
	// API: any path is served and comes as the query parameter "p", and requests
	// have the header X-Origin-Secret.
	Edge string
	// Binary makes it a front that can carry binary messages: they are base64 only
	// between it and the functions.
	Binary bool

	// MaxAge is when a connection is closed, whatever happens on it; API Gateway
	// has two hours. 0 is never.
	MaxAge time.Duration
	// InMemory has no network: peers dial through Client alone, and the whole runs
	// in a testing/synctest bubble.
	InMemory bool
}

// EdgeAddress is the address that the emulated CloudFront comes from.
const EdgeAddress = "130.176.0.1"

// Emulator is a running API.
type Emulator struct {
	cfg    Config
	server *httptest.Server
	ctx    context.Context
	wg     sync.WaitGroup

	mu     sync.Mutex
	conns  map[string]*conn
	ending bool
	posts  int
	// traffic leaves out how long the connections in conns have been open.
	traffic Traffic
	// fault, if set, answers calls of @connections instead.
	fault func(method string) int
}

// Start starts an emulator that ends with the test, after all its functions have
// returned.
func Start(t testing.TB, cfg Config) *Emulator {
	ctx, cancel := context.WithCancel(context.Background())
	e := &Emulator{cfg: cfg, ctx: ctx, conns: make(map[string]*conn)}
	e.server = httptest.NewUnstartedServer(http.HandlerFunc(e.serve))
	if cfg.InMemory {
		_ = e.server.Listener.Close()
		network := newPipes()
		e.server.Listener = network
		defer func() { e.Client().Transport.(*http.Transport).DialContext = network.dial }()
	}
	e.server.StartTLS()
	t.Cleanup(func() {
		e.mu.Lock()
		e.ending = true
		for _, c := range e.conns {
			c.drop()
		}
		e.mu.Unlock()
		e.wg.Wait()
		cancel()
		e.server.Close()
	})
	return e
}

// URL is where clients dial, without a path: wss://127.0.0.1:PORT. Without Edge
// the only path is "/prod".
func (e *Emulator) URL() string { return "wss" + strings.TrimPrefix(e.server.URL, "https") }

// Client trusts the certificate of the emulator.
func (e *Emulator) Client() *http.Client { return e.server.Client() }

// Callback is the callback address of all connections.
func (e *Emulator) Callback() string { return e.server.URL + "/" + Stage }

func (e *Emulator) domain() string { return strings.TrimPrefix(e.server.URL, "https://") }

// Fail has all calls of @connections answered with the status that f returns, 0
// for none. Nil ends that.
func (e *Emulator) Fail(f func(method string) int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.fault = f
}

// Vanish cuts all connections without a $disconnect, and without @connections
// knowing: the network of the peers is gone.
func (e *Emulator) Vanish() {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, c := range e.conns {
		c.vanish()
	}
}

// Posts is how many messages have been posted to peers.
func (e *Emulator) Posts() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.posts
}

func (e *Emulator) serve(w http.ResponseWriter, r *http.Request) {
	if rest, ok := strings.CutPrefix(r.URL.EscapedPath(), "/"+Stage+"/@connections/"); ok {
		e.serveConnections(w, r, rest)
		return
	}
	if e.cfg.Edge == "" && r.URL.Path != "/"+Stage {
		http.Error(w, `{"message":"Forbidden"}`, http.StatusForbidden)
		return
	}
	e.upgrade(w, r)
}

// invoke calls a function as Lambda does: a panic is an error.
func (e *Emulator) invoke(f Function, event any) (out []byte, err error) {
	if f == nil {
		return []byte("{}"), nil
	}
	defer func() {
		if recover() != nil {
			err = errors.New("the function panicked")
		}
	}()
	payload, err := marshal(event)
	if err != nil {
		return nil, err
	}
	return f(e.ctx, payload)
}

func (e *Emulator) integrate(c *conn, messageID, text string, at int64) error {
	return e.cfg.Integration(e.ctx, Render(record.Template, map[string]string{
		"connectionId": c.id, "domainName": e.domain(), "stage": Stage,
		"messageId": messageID, "requestTimeEpoch": itoa(at),
	}, text))
}

// newID makes an id that looks like those of API Gateway.
func newID() string {
	var b [11]byte
	_, _ = rand.Read(b[:]) // never fails
	return base64.URLEncoding.EncodeToString(b[:])
}

func hostOf(addr string) string {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return addr
	}
	return host
}
