package server

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"blindpost/shared/gateway"
	"blindpost/shared/proof/gatewaytest"
)

// ask sends a raw request on a new connection and reads the answer.
func ask(t *testing.T, addr net.Addr, request string) (*http.Response, string) {
	t.Helper()
	nc, err := net.Dial("tcp", addr.String())
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	if err := nc.SetDeadline(time.Now().Add(20 * time.Second)); err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(nc, request); err != nil {
		t.Fatal(err)
	}
	res, err := http.ReadResponse(bufio.NewReader(nc), nil)
	if err != nil {
		t.Fatalf("no answer: %v", err)
	}
	body, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res, string(body)
}

// upgradeWith is the upgrade request with some header lines changed: a line of
// the same name is replaced, or removed if it has no value.
func upgradeWith(lines ...string) string {
	req := upgradeRequest
	for _, l := range lines {
		name, value, _ := strings.Cut(l, ":")
		if i := strings.Index(req, "\r\n"+name+":"); i >= 0 {
			end := i + 2 + strings.Index(req[i+2:], "\r\n")
			req = req[:i] + req[end:]
		}
		if value != "" {
			req = strings.TrimSuffix(req, "\r\n") + l + "\r\n\r\n"
		}
	}
	return req
}

func TestHandshakeIsChecked(t *testing.T) {
	rec := gatewaytest.NewRecorder()
	addr := serve(t, newServer(t, rec))
	for _, c := range []struct {
		name, request string
		status        int
	}{
		{"as it should be", upgradeRequest, 101},
		{"other case, more tokens", upgradeWith("Connection: keep-alive, upGrade", "Upgrade: WebSocket"), 101},
		{"compression offered", upgradeWith("Sec-WebSocket-Extensions: permessage-deflate; client_max_window_bits"), 101},
		{"no version", upgradeWith("Sec-WebSocket-Version:"), 426},
		{"version 8", upgradeWith("Sec-WebSocket-Version: 8"), 426},
		{"no key", upgradeWith("Sec-WebSocket-Key:"), 400},
		{"short key", upgradeWith("Sec-WebSocket-Key: c2hvcnQ="), 400},
		{"key not base64", upgradeWith("Sec-WebSocket-Key: !!!!aGlzIHNhbXBsZSBub25jZQ=="), 400},
		{"two keys", upgradeWith("Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ=="), 400},
		{"with a body", upgradeWith("Content-Length: 1") + "x", 400},
		{"HTTP/1.0", strings.Replace(upgradeWith("Connection: Upgrade"), "HTTP/1.1", "HTTP/1.0", 1), 400},
		{"no Connection", upgradeWith("Connection:"), 404},
		{"no Upgrade", upgradeWith("Upgrade:"), 404},
		{"POST", strings.Replace(upgradeRequest, "GET", "POST", 1), 404},
		{"header too long", upgradeWith("X-Long: " + repeat(30000)), 431},
	} {
		t.Run(c.name, func(t *testing.T) {
			before := len(rec.WaitConnects(t, 0))
			res, _ := ask(t, addr, c.request)
			if res.StatusCode != c.status {
				t.Fatalf("status is %d, want %d", res.StatusCode, c.status)
			}
			if c.status == 101 && res.Header.Get("Sec-WebSocket-Extensions") != "" {
				t.Error("an extension was accepted")
			}
			if c.status == 426 && res.Header.Get("Sec-WebSocket-Version") != "13" {
				t.Error("the answer does not name the version")
			}
			if c.status != 101 && len(rec.WaitConnects(t, 0)) != before {
				t.Error("the handler was asked")
			}
		})
	}
}

func TestPlainHTTP(t *testing.T) {
	ready := errors.New("the store is slow")
	s := newServer(t, gatewaytest.NewRecorder(), func(o *Options) {
		o.IsWebSocketPath = func(p string) bool { return p == "/v2/ws" }
		o.Ready = func(context.Context) error { return ready }
		o.HTTP = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path != "/v1/thing" {
				http.NotFound(w, r)
				return
			}
			ip, ok := RemoteIP(r.Context())
			_, _ = io.WriteString(w, ip.String())
			if !ok {
				t.Error("no address")
			}
		})
	})
	addr := serve(t, s)
	get := func(path string, header ...string) (*http.Response, string) {
		return ask(t, addr, "GET "+path+" HTTP/1.1\r\nHost: relay\r\nConnection: close\r\n"+strings.Join(append(header, ""), "\r\n")+"\r\n")
	}
	const https = "X-Forwarded-Proto: https"

	if res, body := get("/healthz"); res.StatusCode != 200 || body != "ok" {
		t.Errorf("healthz: %d %q", res.StatusCode, body)
	}
	if res, body := get("/readyz"); res.StatusCode != 503 || strings.Contains(body, "slow") {
		t.Errorf("readyz: %d %q", res.StatusCode, body)
	}
	ready = nil
	if res, body := get("/readyz"); res.StatusCode != 200 || body != "ok" {
		t.Errorf("readyz: %d %q", res.StatusCode, body)
	}
	if res, body := get("/v2/ws", https); res.StatusCode != 426 || res.Header.Get("Upgrade") != "websocket" || !strings.Contains(body, "upgrade_required") {
		t.Errorf("WebSocket path: %d %v %q", res.StatusCode, res.Header, body)
	}
	if res, body := get("/v1/thing", https, "X-Forwarded-For: 203.0.113.9"); res.StatusCode != 200 || body != "203.0.113.9" {
		t.Errorf("HTTP handler: %d %q", res.StatusCode, body)
	}
	if res, _ := get("/v1/thing"); res.StatusCode != 403 {
		t.Errorf("HTTP handler without TLS: %d", res.StatusCode)
	}
	if res, _ := get("/elsewhere", https); res.StatusCode != 404 {
		t.Errorf("elsewhere: %d", res.StatusCode)
	}
}

func TestTLSIsRequired(t *testing.T) {
	proxy := func(prefixes ...string) (ps []netip.Prefix) {
		for _, p := range prefixes {
			ps = append(ps, netip.MustParsePrefix(p))
		}
		return ps
	}
	for _, c := range []struct {
		name    string
		trusted []netip.Prefix
		request string
		status  int
	}{
		{"no trusted proxy", nil, upgradeRequest, 403},
		{"proxy elsewhere", proxy("10.0.0.0/8"), upgradeRequest, 403},
		{"trusted proxy, https", proxy("127.0.0.1/32"), upgradeRequest, 101},
		{"trusted proxy, wss", proxy("127.0.0.1/32"), upgradeWith("X-Forwarded-Proto: wss"), 101},
		{"trusted proxy, http", proxy("127.0.0.1/32"), upgradeWith("X-Forwarded-Proto: http"), 403},
		{"trusted proxy says nothing", proxy("127.0.0.1/32"), upgradeWith("X-Forwarded-Proto:"), 403},
		{"client says https, proxy appends http", proxy("127.0.0.1/32"), upgradeWith("X-Forwarded-Proto: https, http"), 403},
		{"client says http, proxy appends https", proxy("127.0.0.1/32"), upgradeWith("X-Forwarded-Proto: http, https"), 403},
		{"two lines", proxy("127.0.0.1/32"), upgradeWith("X-Forwarded-Proto: https\r\nX-Forwarded-Proto: http"), 403},
	} {
		t.Run(c.name, func(t *testing.T) {
			rec := gatewaytest.NewRecorder()
			addr := serve(t, newServer(t, rec, func(o *Options) { o.TrustedProxies = c.trusted }))
			res, body := ask(t, addr, c.request)
			if res.StatusCode != c.status {
				t.Fatalf("status is %d", res.StatusCode)
			}
			var says struct{ Error, Message string }
			if c.status == 403 {
				if json.Unmarshal([]byte(body), &says) != nil || says.Error != "tls_required" || !strings.Contains(says.Message, "TLS") {
					t.Errorf("body is %q", body)
				}
				if n := len(rec.Events()); n != 0 {
					t.Errorf("the handler was called %d times", n)
				}
			}
			// Health checks come from inside.
			if res, _ := ask(t, addr, "GET /healthz HTTP/1.1\r\nHost: relay\r\n\r\n"); res.StatusCode != 200 {
				t.Errorf("healthz: %d", res.StatusCode)
			}
		})
	}
}

func TestPlainClientOnTLSPort(t *testing.T) {
	serverTLS, clientTLS := testCert()
	s := newServer(t, gatewaytest.NewRecorder(), func(o *Options) { o.TLS = serverTLS })
	addr := serve(t, s)
	res, body := ask(t, addr, upgradeRequest)
	if res.StatusCode != 400 || !strings.Contains(body, "HTTPS") {
		t.Errorf("answer is %d %q", res.StatusCode, body)
	}
	// And HTTP/2 is not offered, as WebSocket could not come over it.
	cfg := clientTLS.Clone()
	cfg.NextProtos = []string{"h2", "http/1.1"}
	nc, err := tls.Dial("tcp", addr.String(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	if p := nc.ConnectionState().NegotiatedProtocol; p != "http/1.1" {
		t.Errorf("negotiated %q", p)
	}
}

func TestClientAddress(t *testing.T) {
	s := newServer(t, nil, func(o *Options) {
		o.TrustedProxies = []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("fd00::/8")}
	})
	for _, c := range []struct {
		peer string
		xff  []string
		want string
	}{
		{"198.51.100.1:4000", nil, "198.51.100.1"},
		{"198.51.100.1:4000", []string{"1.2.3.4"}, "198.51.100.1"}, // not a proxy of ours
		{"10.0.0.1:4000", nil, "10.0.0.1"},
		{"10.0.0.1:4000", []string{"1.2.3.4"}, "1.2.3.4"},
		{"10.0.0.1:4000", []string{"6.6.6.6, 1.2.3.4"}, "1.2.3.4"}, // 6.6.6.6 is what the client claims
		{"10.0.0.1:4000", []string{"6.6.6.6, 1.2.3.4, 10.9.9.9"}, "1.2.3.4"},
		{"10.0.0.1:4000", []string{"6.6.6.6", "1.2.3.4,10.9.9.9"}, "1.2.3.4"},
		{"10.0.0.1:4000", []string{"10.1.1.1, 10.2.2.2"}, "10.1.1.1"}, // a client of our own
		{"10.0.0.1:4000", []string{"nonsense, 1.2.3.4"}, "1.2.3.4"},
		{"10.0.0.1:4000", []string{"1.2.3.4, nonsense"}, "10.0.0.1"},
		{"10.0.0.1:4000", []string{"1.2.3.4, unknown, 10.9.9.9"}, "10.0.0.1"},
		{"10.0.0.1:4000", []string{""}, "10.0.0.1"},
		{"10.0.0.1:4000", []string{"1.2.3.4,"}, "10.0.0.1"},
		{"10.0.0.1:4000", []string{"1.2.3.4:5678"}, "1.2.3.4"},
		{"10.0.0.1:4000", []string{"2001:db8::7"}, "2001:db8::7"},
		{"10.0.0.1:4000", []string{"[2001:db8::7]"}, "2001:db8::7"},
		{"10.0.0.1:4000", []string{"[2001:db8::7]:443"}, "2001:db8::7"},
		{"10.0.0.1:4000", []string{"::ffff:1.2.3.4"}, "1.2.3.4"},
		{"[::ffff:10.0.0.1]:4000", []string{"1.2.3.4"}, "1.2.3.4"},
		{"[fd00::1%eth0]:4000", []string{"1.2.3.4"}, "1.2.3.4"},
		{"[2001:db8::1]:4000", []string{"1.2.3.4"}, "2001:db8::1"},
		{"@", []string{"1.2.3.4"}, "invalid IP"}, // a Unix socket
	} {
		r := &http.Request{RemoteAddr: c.peer, Header: http.Header{"X-Forwarded-For": c.xff}}
		if got := s.originOf(r).ip.String(); got != c.want {
			t.Errorf("%s %q: got %s, want %s", c.peer, c.xff, got, c.want)
		}
	}
}

func TestMaxConns(t *testing.T) {
	rec := gatewaytest.NewRecorder()
	addr := serve(t, newServer(t, rec, func(o *Options) { o.MaxConns = 2 }))
	a := dialRaw(t, addr)
	dialRaw(t, addr)
	if res, body := ask(t, addr, upgradeRequest); res.StatusCode != 503 || !strings.Contains(body, "too_many_connections") {
		t.Errorf("answer is %d %q", res.StatusCode, body)
	}
	if n := len(rec.WaitConnects(t, 2)); n != 2 {
		t.Errorf("%d connects", n)
	}
	a.goAway(1000)
	// The place is free when Disconnect has returned, a moment later.
	rec.WaitDisconnect(t, rec.WaitConnects(t, 2)[0])
	for start := time.Now(); ; {
		res, _ := ask(t, addr, upgradeRequest)
		if res.StatusCode == 101 {
			break
		}
		if time.Since(start) > 20*time.Second {
			t.Fatalf("status is still %d", res.StatusCode)
		}
	}
}

// TestSlowLoris holds connections open with as little as possible.
func TestSlowLoris(t *testing.T) {
	serverTLS, _ := testCert()
	for _, c := range []struct {
		name   string
		tls    *tls.Config
		speaks string
	}{
		{"says nothing", nil, ""},
		{"never ends its header", nil, "GET / HTTP/1.1\r\nHost: relay\r\nX-A: "},
		{"no TLS handshake", serverTLS, ""},
		{"half a TLS record", serverTLS, "\x16\x03\x01\x02\x00"},
		{"never ends its body", nil, "POST /x HTTP/1.1\r\nHost: relay\r\nX-Forwarded-Proto: https\r\nContent-Length: 1000\r\n\r\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				_, l := bubbleListener(t, gatewaytest.NewRecorder(), func(o *Options) {
					o.TLS = c.tls
					o.HTTP = http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { _, _ = io.Copy(io.Discard, r.Body) })
				})
				start := time.Now()
				nc := l.dial()
				defer nc.Close()
				go func() { _, _ = io.WriteString(nc, c.speaks) }()
				_, _ = io.Copy(io.Discard, nc) // until the server hangs up
				if d := time.Since(start); d < 10*time.Second || d > 31*time.Second {
					t.Errorf("held for %v", d)
				}
			})
		})
	}
}

// An escaped slash separates nothing: it stays as it is in the path of an upgrade.
func TestEscapedSlashOfAnUpgrade(t *testing.T) {
	rec := gatewaytest.NewRecorder()
	came := make(chan string, 1)
	rec.OnConnect = func(_ context.Context, e gateway.ConnectEvent) (gateway.ConnectResult, error) {
		came <- e.Path
		return gateway.ConnectResult{}, nil
	}
	addr := serve(t, newServer(t, rec))
	for _, c := range []struct{ asked, path string }{
		{"/v1/thing%2Fpart", "/v1/thing%2Fpart"},
		{"/v1%2fthing", "/v1%2fthing"},
		{"/v1/th%69ng", "/v1/thing"},
	} {
		ask(t, addr, strings.Replace(upgradeRequest, strings.Fields(upgradeRequest)[1], c.asked, 1))
		if got := <-came; got != c.path {
			t.Errorf("%s comes as %s, want %s", c.asked, got, c.path)
		}
	}
}
