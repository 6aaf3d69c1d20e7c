package agentknock

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/coder/websocket"
)

// Relay is the address of a relay and how to dial it. It must not change while in use.
type Relay struct {
	// URL is scheme and host: "wss://relay.example", or ws:// behind a proxy that
	// ends TLS.
	URL string
	// HTTP is the base of the HTTP endpoints; default is the same host.
	HTTP string
	// TLS is the configuration to verify the relay; nil is that of the system.
	TLS *tls.Config
	// DialContext, if set, makes the connections.
	DialContext func(ctx context.Context, network, addr string) (net.Conn, error)
	// Header is added to every request.
	Header http.Header
	// Locate, if set, returns the URL of a WebSocket path.
	Locate func(path string) string

	once sync.Once
	http *http.Client
}

// UserAgent is the User-Agent of the peers, for diagnostics.
const UserAgent = "blindpost-peer/1.0.0 agentknock/1.0.0"

func (r *Relay) client() *http.Client {
	r.once.Do(func() {
		r.http = &http.Client{Transport: &http.Transport{
			TLSClientConfig:   r.TLS.Clone(),
			DialContext:       r.DialContext,
			DisableKeepAlives: true, // no goroutines that outlive a call
		}}
	})
	return r.http
}

func (r *Relay) header(token string) http.Header {
	h := r.Header.Clone()
	if h == nil {
		h = make(http.Header)
	}
	h.Set("User-Agent", UserAgent)
	if token != "" {
		h.Set("Authorization", "Bearer "+token)
	}
	return h
}

// Refusal is an error response of the relay.
type Refusal struct {
	Status     int
	Code       string
	Text       string
	Retryable  bool
	RetryAfter time.Duration
	Header     http.Header
	Body       []byte
}

func (e *Refusal) Error() string {
	return fmt.Sprintf("the relay answers %d %s: %s", e.Status, e.Code, e.Text)
}

// Final reports whether a retry cannot help.
func (e *Refusal) Final() bool {
	switch e.Status {
	case http.StatusRequestTimeout, http.StatusTooEarly, http.StatusTooManyRequests:
		return false
	}
	return e.Status < 500
}

// newRefusal reads the response. One that is no error of the protocol is only in Body.
func newRefusal(resp *http.Response, body []byte) *Refusal {
	e := &Refusal{Status: resp.StatusCode, Header: resp.Header, Body: body}
	if m, err := members(body); err == nil {
		r := reader{members: m}
		e.Code, e.Text = r.text("error", true), r.text("message", true)
		if m["retryable"] != nil {
			e.Retryable = r.flag("retryable")
		}
		e.RetryAfter = r.milliseconds("retry_after_ms")
		if r.fault != nil {
			e.Code = ""
		}
	}
	if s, err := strconv.Atoi(resp.Header.Get("Retry-After")); err == nil && e.RetryAfter == 0 {
		e.RetryAfter = time.Duration(s) * time.Second
	}
	return e
}

// Options are the settings of a connection.
type Options struct {
	// Deaf answers no pings.
	Deaf bool
	// OnFrame, if set, is called with every valid frame in order, by one goroutine, instead
	// of Next.
	OnFrame func(Frame)
}

// Dial opens a WebSocket as a peer of that role. An upgrade that is refused is a
// *Refusal.
func (r *Relay) Dial(ctx context.Context, role Role, path, token string, o Options) (*Conn, error) {
	u := r.URL + path
	if r.Locate != nil {
		u = r.Locate(path)
	}
	c := newConn(role, o)
	ws, resp, err := websocket.Dial(ctx, u, &websocket.DialOptions{
		HTTPClient:     r.client(),
		HTTPHeader:     r.header(token),
		OnPingReceived: c.onPing,
	})
	if err != nil {
		if resp == nil || resp.StatusCode == http.StatusSwitchingProtocols {
			return nil, fmt.Errorf("failed to dial: %w", err)
		}
		body, _ := io.ReadAll(resp.Body) // coder/websocket has read it
		return nil, newRefusal(resp, body)
	}
	c.start(ws)
	return c, nil
}

// Call sends any HTTP request and returns the answer with its body read.
func (r *Relay) Call(ctx context.Context, method, path string, header http.Header, body io.Reader) (*http.Response, []byte, error) {
	base := r.HTTP
	if base == "" {
		base = "http" + strings.TrimPrefix(r.URL, "ws")
	}
	req, err := http.NewRequestWithContext(ctx, method, base+path, body)
	if err != nil {
		return nil, nil, fmt.Errorf("failed to make a request: %w", err)
	}
	req.Header = header
	resp, err := r.client().Do(req)
	if err != nil {
		return nil, nil, fmt.Errorf("failed to call: %w", err)
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
	if err != nil {
		return nil, nil, fmt.Errorf("failed to read the answer: %w", err)
	}
	return resp, answer, nil
}

// Post calls an endpoint without a token; see [Device.Post].
func (r *Relay) Post(ctx context.Context, path string, in any) (map[string]json.RawMessage, error) {
	return r.post(ctx, path, "", in)
}

// post calls an endpoint with JSON and returns the members of its answer. A status other
// than 200 is a *Refusal.
func (r *Relay) post(ctx context.Context, path, token string, in any) (map[string]json.RawMessage, error) {
	body, err := json.Marshal(in)
	if err != nil {
		return nil, fmt.Errorf("failed to encode: %w", err)
	}
	h := r.header(token)
	h.Set("Content-Type", "application/json")
	resp, answer, err := r.Call(ctx, http.MethodPost, path, h, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	if resp.StatusCode != http.StatusOK {
		return nil, newRefusal(resp, answer)
	}
	if kind := resp.Header.Get("Content-Type"); !strings.HasPrefix(kind, "application/json") {
		return nil, fmt.Errorf("the answer is called %q", kind)
	}
	m, err := members(answer)
	if err != nil {
		return nil, fmt.Errorf("the answer %w", err)
	}
	return m, nil
}
