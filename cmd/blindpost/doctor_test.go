package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gobwas/ws"

	"blindpost/shared/dialect/skald/skaldpb"
	"blindpost/shared/standalone"
)

// diagnosis is what the doctor has said.
type diagnosis struct {
	t      *testing.T
	status int
	out    string
	errout string
	OK     bool    `json:"ok"`
	Relay  string  `json:"relay"`
	Checks []check `json:"checks"`
}

func consult(ctx context.Context, t *testing.T, args ...string) *diagnosis {
	t.Helper()
	var out, errout bytes.Buffer
	d := &diagnosis{t: t}
	d.status = runDoctor(ctx, env{stdout: &out, stderr: &errout}, append([]string{"--json"}, args...))
	d.out, d.errout = out.String(), errout.String()
	if err := json.Unmarshal(out.Bytes(), d); err != nil {
		t.Fatalf("no JSON: %v\n%s%s", err, d.out, d.errout)
	}
	if d.OK != (d.status == 0) {
		t.Errorf("ok is %v with status %d", d.OK, d.status)
	}
	return d
}

// want checks the outcome: which checks failed, which were skipped, and texts in the
// first failure.
func (d *diagnosis) want(failed, skipped string, said ...string) {
	d.t.Helper()
	var names, gotFailed, gotSkipped []string
	first := check{}
	for _, c := range d.Checks {
		names = append(names, c.Name)
		switch c.Status {
		case checkFailed:
			gotFailed = append(gotFailed, c.Name)
			if first.Name == "" {
				first = c
			}
			if c.Advice == "" {
				d.t.Errorf("%s has failed, and there is no advice", c.Name)
			}
		case checkSkipped:
			gotSkipped = append(gotSkipped, c.Name)
		case checkOK:
			if c.Advice != "" {
				d.t.Errorf("%s is well, and the advice is %q", c.Name, c.Advice)
			}
		}
		if c.Detail == "" {
			d.t.Errorf("%s: nothing is said", c.Name)
		}
	}
	all := "name, TCP, TLS, HTTP, clock, WebSocket, challenge, authentication, round trip"
	if got := strings.Join(names, ", "); got != all {
		d.t.Errorf("checked %s, want %s", got, all)
	}
	if strings.Join(gotFailed, ", ") != failed || strings.Join(gotSkipped, ", ") != skipped {
		d.t.Errorf("failed %v, skipped %v; want [%s], [%s]\n%s", gotFailed, gotSkipped, failed, skipped, d.out)
	}
	if wantStatus := map[bool]int{true: 0, false: 1}[failed == ""]; d.status != wantStatus {
		d.t.Errorf("status %d, want %d", d.status, wantStatus)
	}
	for _, s := range said {
		if !strings.Contains(first.Detail+"\n"+first.Advice, s) {
			d.t.Errorf("about %s it said %q and advised %q, want %q", first.Name, first.Detail, first.Advice, s)
		}
	}
}

const (
	afterWebSocket = "challenge, authentication, round trip"
	afterTCP       = "TLS, HTTP, clock, WebSocket, " + afterWebSocket
)

func TestDoctorFindsAHealthyRelayWell(t *testing.T) {
	a := newTestAuthority(t)
	r := startDoctorRelay(t, func(c *standalone.Config) { c.TLS = a.good() })
	d := consult(t.Context(), t, "--relay", "wss://"+r.addr+"/v1/ws", "--ca", a.file)
	d.want("", "")
	if !strings.Contains(r.log.String(), "namespace created") {
		t.Error("no agent has authenticated")
	}
	if d.Relay != "wss://"+r.addr+"/v1/ws" {
		t.Errorf("the relay is %s", d.Relay)
	}
	// A host alone is enough.
	consult(t.Context(), t, "--ca", a.file, r.addr).want("", "")
}

func TestDoctorKeepsOutIfAsked(t *testing.T) {
	a := newTestAuthority(t)
	r := startDoctorRelay(t, func(c *standalone.Config) { c.TLS = a.good() })
	consult(t.Context(), t, "--relay", r.addr, "--ca", a.file, "--no-auth").want("", "authentication")
	if strings.Contains(r.log.String(), "namespace created") {
		t.Error("the relay has made a namespace")
	}
}

func TestDoctorJudgesCertificates(t *testing.T) {
	a, other := newTestAuthority(t), newTestAuthority(t)
	own, err := newSelfSigned(t.TempDir(), []string{"127.0.0.1"}, time.Now, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	selfSigned := &tls.Config{GetCertificate: own.GetCertificate}
	for _, c := range []struct {
		name string
		tls  *tls.Config
		said []string
	}{
		{"ended", a.issue("127.0.0.1", -100*time.Hour, -50*time.Hour), []string{"it ended 2 days ago", "Renew"}},
		{"to come", a.issue("127.0.0.1", time.Hour, 2*time.Hour), []string{"not valid yet", "clock"}},
		{"ends soon", a.issue("127.0.0.1", -time.Hour, 50*time.Hour), []string{"it ends in 2 days", "renews"}},
		{"another name", a.issue("relay.example", -time.Hour, 1000*time.Hour), []string{"certificate for relay.example", "for another name"}},
		{"another issuer", other.good(), []string{"Test Authority", "not trusted on this computer"}},
		{"signed by itself", selfSigned, []string{"signed by itself", "--insecure", "--ca"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := startDoctorRelay(t, func(cfg *standalone.Config) { cfg.TLS = c.tls })
			consult(t.Context(), t, "--relay", r.addr, "--ca", a.file).want("TLS", "", c.said...)
			d := consult(t.Context(), t, "--relay", r.addr, "--ca", a.file, "--insecure")
			if c.name == "ends soon" { // it is still good
				d.want("TLS", "")
				return
			}
			d.want("", "")
			if !strings.Contains(d.Checks[2].Detail, "--insecure") {
				t.Errorf("does not say what was accepted: %s", d.Checks[2].Detail)
			}
		})
	}
}

func TestDoctorOnWhatIsNoRelay(t *testing.T) {
	a := newTestAuthority(t)
	hello := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, "<html>") })
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	closed.Close()
	answer := func(status int, body string) string {
		return startServer(t, a.good(), http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/healthz" {
				return
			}
			w.Header().Set("Location", "https://elsewhere.example/")
			w.WriteHeader(status)
			_, _ = io.WriteString(w, body)
		}))
	}
	silent := startListener(t, func(c net.Conn) { _, _ = io.Copy(io.Discard, c) })
	for _, c := range []struct {
		name, relay     string
		failed, skipped string
		said            []string
	}{
		{"a closed port", closed.Addr().String(), "TCP", afterTCP, []string{"refuses", "blindpost serve"}},
		{"plain HTTP", startServer(t, nil, hello), "TLS", strings.TrimPrefix(afterTCP, "TLS, "), []string{"no TLS", "Something else than TLS"}},
		{"plain HTTP, asked for", "ws://" + startServer(t, nil, hello), "TLS, WebSocket", afterWebSocket, []string{"ws://", "Use wss://"}},
		{"silence", silent, "TLS", strings.TrimPrefix(afterTCP, "TLS, "), []string{"no TLS within", "says nothing"}},
		{"a web server", startServer(t, a.good(), hello), "WebSocket", afterWebSocket, []string{"/v1/ws answers 200 OK", "HTTP/1.1"}},
		{"another web server", answer(404, "no"), "WebSocket", afterWebSocket, []string{"404", "Is this the right host"}},
		{"one that sends on", answer(301, ""), "WebSocket", afterWebSocket, []string{"https://elsewhere.example/", "apps do not follow"}},
		{"a proxy without a relay", answer(502, ""), "WebSocket", afterWebSocket, []string{"502", "Does it run"}},
		{"a relay that is full", answer(503, `{"error":"too_many_connections","message":"full\u001b"}`), "WebSocket", afterWebSocket,
			[]string{"(too_many_connections: full?)"}},
		{"a teapot", answer(418, ""), "WebSocket", afterWebSocket, []string{"does not look like a relay"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel() // some wait for the timeout
			consult(t.Context(), t, "--relay", c.relay, "--ca", a.file, "--timeout", "2s").want(c.failed, c.skipped, c.said...)
		})
	}
}

func TestDoctorOnAWrongPath(t *testing.T) {
	a := newTestAuthority(t)
	r := startDoctorRelay(t, func(c *standalone.Config) { c.TLS = a.good() })
	consult(t.Context(), t, "--relay", "wss://"+r.addr+"/v2/ws", "--ca", a.file).
		want("WebSocket", afterWebSocket, "/v2/ws answers 404", "Relays are at /v1/ws")
}

func TestDoctorOnARelayThatHasHadEnough(t *testing.T) {
	a := newTestAuthority(t)
	r := startDoctorRelay(t, func(c *standalone.Config) { c.TLS = a.good(); c.Limits.Relay.ConnectionsPerIP = 1 })
	consult(t.Context(), t, "--relay", r.addr, "--ca", a.file).want("", "")
	consult(t.Context(), t, "--relay", r.addr, "--ca", a.file).want("WebSocket", afterWebSocket, "429", "Wait a minute")
}

// A proxy ends TLS; the relay has to trust it.
func TestDoctorThroughAProxy(t *testing.T) {
	a := newTestAuthority(t)
	proxy := func(t *testing.T, to string) string {
		u := &url.URL{Scheme: "http", Host: to}
		return startServer(t, a.good(), &httputil.ReverseProxy{
			Rewrite:  func(r *httputil.ProxyRequest) { r.SetURL(u); r.SetXForwarded() },
			ErrorLog: slog.NewLogLogger(slog.DiscardHandler, slog.LevelDebug),
		})
	}
	t.Run("trusted", func(t *testing.T) {
		r := startDoctorRelay(t, func(c *standalone.Config) { c.TrustedProxies = trusting("127.0.0.1/32") })
		consult(t.Context(), t, "--relay", proxy(t, r.addr), "--ca", a.file).want("", "")
	})
	t.Run("not trusted", func(t *testing.T) {
		r := startDoctorRelay(t, func(c *standalone.Config) { c.TrustedProxies = trusting("192.0.2.1/32") })
		consult(t.Context(), t, "--relay", proxy(t, r.addr), "--ca", a.file).want("WebSocket", afterWebSocket, "403", "tls_required", "--behind-proxy")
	})
	t.Run("without a relay", func(t *testing.T) {
		consult(t.Context(), t, "--relay", proxy(t, "127.0.0.1:1"), "--ca", a.file).want("HTTP, WebSocket", afterWebSocket, "502")
	})
}

func TestDoctorListensToTheRelay(t *testing.T) {
	a := newTestAuthority(t)
	frame := func(f *skaldpb.RelayFrame) func(*script) { return func(s *script) { s.say(f); s.deaf() } }
	answer := func(f *skaldpb.RelayFrame) func(*script) {
		return func(s *script) {
			s.say(challengeFrame(32))
			if _, ok := s.hear(false); ok && f != nil {
				s.say(f)
			}
			s.deaf()
		}
	}
	for _, c := range []struct {
		name            string
		follow          func(*script)
		failed, skipped string
		said            []string
	}{
		{"never speaks", (*script).deaf, "challenge", "authentication, round trip", []string{"says nothing within 2s", "not the Skald protocol"}},
		{"hangs up", func(*script) {}, "challenge", "authentication, round trip", []string{"has ended"}},
		{"says goodbye", func(s *script) { s.sayBytes(ws.OpClose, ws.NewCloseFrameBody(1013, "later\x1b")) }, "challenge", "authentication, round trip",
			[]string{"1013"}},
		{"speaks another language", func(s *script) { s.sayBytes(ws.OpBinary, []byte{0xff, 1, 2}); s.deaf() }, "challenge", "authentication, round trip",
			[]string{"not of the Skald protocol"}},
		{"begins with something else", frame(&skaldpb.RelayFrame{Frame: &skaldpb.RelayFrame_AuthOk{AuthOk: &skaldpb.AuthOk{}}}), "challenge",
			"authentication, round trip", []string{"no challenge"}},
		{"challenges too little", frame(challengeFrame(31)), "challenge", "authentication, round trip", []string{"31 bytes instead of 32"}},
		{"does not answer", answer(nil), "authentication", "round trip", []string{"no answer within", "database"}},
		{"refuses", answer(&skaldpb.RelayFrame{Frame: &skaldpb.RelayFrame_AuthError{AuthError: &skaldpb.AuthError{Code: "invalid_signature", Message: "no\x1b[2J"}}}),
			"authentication", "round trip", []string{"invalid_signature: no?[2J"}},
		{"answers something else", answer(challengeFrame(32)), "authentication", "round trip", []string{"neither yes nor no"}},
		{"lets in elsewhere", answer(&skaldpb.RelayFrame{Frame: &skaldpb.RelayFrame_AuthOk{AuthOk: &skaldpb.AuthOk{NamespaceId: make([]byte, 32)}}}),
			"authentication", "round trip", []string{"another namespace"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel() // some wait for the timeout
			relay := startScript(t, a, c.follow)
			consult(t.Context(), t, "--relay", relay, "--ca", a.file, "--timeout", "2s").want(c.failed, c.skipped, c.said...)
		})
	}
	t.Run("answers no ping", func(t *testing.T) {
		relay := startScript(t, a, func(s *script) { s.say(challengeFrame(32)); s.deaf() })
		consult(t.Context(), t, "--relay", relay, "--ca", a.file, "--timeout", "2s", "--no-auth").
			want("round trip", "authentication", "no answer to a ping", "proxy")
	})
	t.Run("speaks base64, as API Gateway does", func(t *testing.T) {
		relay := startScript(t, a, func(s *script) { s.sayText(challengeFrame(32)); s.hear(true) })
		consult(t.Context(), t, "--relay", relay, "--ca", a.file, "--no-auth").want("", "authentication")
	})
}

func TestDoctorComparesClocks(t *testing.T) {
	a := newTestAuthority(t)
	for _, c := range []struct {
		name            string
		date            func() string
		failed, skipped string
		said            string
	}{
		{"right", func() string { return time.Now().UTC().Format(http.TimeFormat) }, "", "", ""},
		{"a little off", func() string { return time.Now().Add(-20 * time.Second).UTC().Format(http.TimeFormat) }, "", "", ""},
		{"ahead", func() string { return time.Now().Add(time.Hour).UTC().Format(http.TimeFormat) }, "clock", "", "ahead"},
		{"behind", func() string { return time.Now().Add(-time.Hour).UTC().Format(http.TimeFormat) }, "clock", "", "behind"},
		{"nonsense", func() string { return "yesterday" }, "", "clock", ""},
	} {
		relay := startServer(t, a.good(), http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Date", c.date())
			w.WriteHeader(map[bool]int{true: 200, false: 404}[r.URL.Path == "/healthz"])
		}))
		d := consult(t.Context(), t, "--relay", relay, "--ca", a.file)
		clock := d.Checks[4]
		if (clock.Status == checkFailed) != (c.failed != "") || (clock.Status == checkSkipped) != (c.skipped != "") || !strings.Contains(clock.Detail, c.said) {
			t.Errorf("%s: %s: %s", c.name, clock.Status, clock.Detail)
		}
	}
}

func TestDoctorLooksUpNames(t *testing.T) {
	a := newTestAuthority(t)
	for _, c := range []struct {
		name   string
		addrs  []string
		err    error
		status checkStatus
		said   string
	}{
		{"known", []string{"192.0.2.1", "2001:db8::1"}, nil, checkOK, "192.0.2.1, 2001:db8::1"},
		{"unknown", nil, &net.DNSError{Err: "no such host", Name: "x", IsNotFound: true}, checkFailed, "there is no host relay.test"},
		{"offline", nil, errors.New("network is down"), checkFailed, "network is down"},
	} {
		d, err := newDoctor(doctorSettings{relay: "relay.test", timeout: time.Second, ca: a.file})
		if err != nil {
			t.Fatal(err)
		}
		d.look = func(_ context.Context, host string) ([]string, error) {
			if host != "relay.test" {
				t.Errorf("%s: looked up %q", c.name, host)
			}
			return c.addrs, c.err
		}
		if got := d.checkName(t.Context()); got.Status != c.status || !strings.Contains(got.Detail, c.said) || (c.status == checkFailed) != (got.Advice != "") {
			t.Errorf("%s: %+v", c.name, got)
		}
	}
}

func TestDoctorIsInterrupted(t *testing.T) {
	a := newTestAuthority(t)
	ctx, cancel := context.WithCancel(t.Context())
	relay := startScript(t, a, func(s *script) { cancel(); s.deaf() })
	d := consult(ctx, t, "--relay", relay, "--ca", a.file, "--timeout", "1h")
	if d.status != 1 || d.Checks[8].Detail != "interrupted" {
		t.Errorf("status %d, %+v", d.status, d.Checks[8])
	}
}

func TestDoctorPrintsLines(t *testing.T) {
	a := newTestAuthority(t)
	relay := startServer(t, a.issue("127.0.0.1", -time.Hour, -time.Minute), http.NotFoundHandler())
	var out, errout bytes.Buffer
	status := runDoctor(t.Context(), env{stdout: &out, stderr: &errout}, []string{"--relay", relay, "--ca", a.file})
	if status != 1 || errout.Len() > 0 {
		t.Errorf("status %d, %s", status, errout.String())
	}
	lines := strings.Split(out.String(), "\n")
	if lines[0] != "Checking wss://"+relay+"/v1/ws" {
		t.Errorf("begins with %q", lines[0])
	}
	for _, want := range []string{"ok       TCP ", "FAILED   TLS ", "-> Renew the certificate", "FAILED   WebSocket ", "skipped  challenge ", "Not all is well"} {
		if !slices.ContainsFunc(lines, func(l string) bool { return strings.HasPrefix(strings.TrimLeft(l, " "), want) }) {
			t.Errorf("no line begins with %q:\n%s", want, out.String())
		}
	}
}

func TestDoctorURL(t *testing.T) {
	for _, c := range []struct{ in, want, err string }{
		{"relay.example", "wss://relay.example/v1/ws", ""},
		{"relay.example:8443", "wss://relay.example:8443/v1/ws", ""},
		{"[2001:db8::1]:8443", "wss://[2001:db8::1]:8443/v1/ws", ""},
		{"https://relay.example/", "wss://relay.example/v1/ws", ""},
		{"http://relay.example", "ws://relay.example/v1/ws", ""},
		{"wss://relay.example/a/b?c=d#e", "wss://relay.example/a/b?c=d", ""},
		{"ftp://relay.example", "", "not ftp://"},
		{"wss://", "", "no host"},
		{"wss://:8443", "", "no host"},
		{"wss://me:secret@relay.example", "", "no user"},
		{"wss://relay.example:port", "", "cannot be read"},
		{"wss://relay\x00.example", "", "cannot be read"},
	} {
		u, err := doctorURL(c.in)
		switch {
		case c.err != "":
			if err == nil || !strings.Contains(err.Error(), c.err) || strings.Contains(err.Error(), "secret") {
				t.Errorf("%q: got %v, want %q", c.in, err, c.err)
			}
		case err != nil || u.String() != c.want:
			t.Errorf("%q: got %v, %v, want %s", c.in, u, err, c.want)
		}
	}
}

func TestDoctorFlags(t *testing.T) {
	for _, c := range []struct {
		args   string
		status int
		said   string
	}{
		{"--help", 0, "--no-auth"},
		{"", 2, "no relay to check"},
		{"--relay a b", 2, `unexpected argument "b"`},
		{"a b", 2, `unexpected argument "a"`},
		{"--relay gopher://a", 2, "wss://"},
		{"--relay a --timeout 0s", 2, "--timeout"},
		{"--relay a --ca /does/not/exist", 2, "certificate"},
		{"--bogus", 2, "bogus"},
	} {
		var out, errout bytes.Buffer
		status := runDoctor(t.Context(), env{stdout: &out, stderr: &errout}, strings.Fields(c.args))
		if status != c.status || !strings.Contains(out.String()+errout.String(), c.said) || (status == 0) != (errout.Len() == 0) {
			t.Errorf("%q: status %d, %s%s", c.args, status, out.String(), errout.String())
		}
	}
	if _, err := parseDoctor([]string{"-h"}, io.Discard); !errors.Is(err, flag.ErrHelp) {
		t.Errorf("-h: %v", err)
	}
}

func TestPrintable(t *testing.T) {
	for in, want := range map[string]string{"a b": "a b", "a\x1b[31mb\n": "a?[31mb?", "\x7f\u009b": "??", "käse": "käse"} {
		if got := printable(in); got != want {
			t.Errorf("%q: got %q", in, got)
		}
	}
	if got := span(1234567 * time.Nanosecond); got != "1.23ms" {
		t.Errorf("span: %s", got)
	}
	if got := fmt.Sprint(days(25*time.Hour), ", ", days(49*time.Hour)); got != "1 day, 2 days" {
		t.Errorf("days: %s", got)
	}
}
