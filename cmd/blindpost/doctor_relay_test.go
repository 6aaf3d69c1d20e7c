package main

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"io"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/gobwas/ws"
	"google.golang.org/protobuf/proto"

	"blindpost/shared/dialect/skald/skaldpb"
	"blindpost/shared/proof/rig"
	"blindpost/shared/proof/wire"
	"blindpost/shared/standalone"
)

// testAuthority issues certificates.
type testAuthority struct {
	t    *testing.T
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	file string // PEM
}

func newTestAuthority(t *testing.T) *testAuthority {
	a := &testAuthority{t: t}
	c := &x509.Certificate{
		Subject: pkix.Name{CommonName: "Test Authority"}, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
		NotBefore: time.Now().Add(-1000 * time.Hour), NotAfter: time.Now().Add(1000 * time.Hour),
	}
	made := a.sign(c)
	a.cert, a.key = made.Leaf, made.PrivateKey.(*ecdsa.PrivateKey)
	a.file = filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(a.file, encodePEM("CERTIFICATE", a.cert.Raw), 0o600); err != nil {
		t.Fatal(err)
	}
	return a
}

// sign makes a certificate; the first one is signed by itself.
func (a *testAuthority) sign(c *x509.Certificate) tls.Certificate {
	a.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		a.t.Fatal(err)
	}
	parent, parentKey := c, key
	if a.cert != nil && !c.IsCA {
		parent, parentKey = a.cert, a.key
	}
	c.SerialNumber = big.NewInt(time.Now().UnixNano())
	der, err := x509.CreateCertificate(rand.Reader, c, parent, key.Public(), parentKey)
	if err != nil {
		a.t.Fatal(err)
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		a.t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key, Leaf: leaf}
}

// issue makes a certificate for a server.
func (a *testAuthority) issue(name string, from, to time.Duration) *tls.Config {
	c := &x509.Certificate{
		Subject: pkix.Name{CommonName: name}, DNSNames: []string{name}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		NotBefore: time.Now().Add(from), NotAfter: time.Now().Add(to),
	}
	if name == "127.0.0.1" {
		c.DNSNames, c.IPAddresses = nil, []net.IP{net.IPv4(127, 0, 0, 1)}
	}
	return &tls.Config{Certificates: []tls.Certificate{a.sign(c)}}
}

func (a *testAuthority) good() *tls.Config { return a.issue("127.0.0.1", -time.Hour, 90*24*time.Hour) }

// doctorRelay is a whole relay, and what it logs.
type doctorRelay struct {
	addr string
	log  *rig.Log
}

func startDoctorRelay(t *testing.T, change func(*standalone.Config)) *doctorRelay {
	t.Helper()
	r := &doctorRelay{log: &rig.Log{}}
	cfg := standalone.Config{DataDir: t.TempDir(), Limits: standalone.DefaultLimits(), Log: slog.New(slog.NewTextHandler(r.log, nil))}
	change(&cfg)
	node, err := standalone.Open(cfg)
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r.addr = l.Addr().String()
	served := make(chan error, 1)
	go func() { served <- node.Serve(context.Background(), l) }()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		defer cancel()
		if err := node.Shutdown(ctx, 0); err != nil {
			t.Errorf("failed to shut down: %v", err)
		}
		if err := <-served; err != nil {
			t.Errorf("failed to serve: %v", err)
		}
	})
	return r
}

// script is one side of a conversation with a WebSocket client.
type script struct {
	t *testing.T
	c net.Conn
}

// say sends a frame of the protocol.
func (s *script) say(f *skaldpb.RelayFrame) { s.sayBytes(ws.OpBinary, s.encode(f)) }

func (s *script) encode(f *skaldpb.RelayFrame) []byte {
	b, err := proto.Marshal(f)
	if err != nil {
		s.t.Error(err)
	}
	return b
}

func (s *script) sayBytes(op ws.OpCode, b []byte) {
	_ = ws.WriteFrame(s.c, ws.NewFrame(op, true, b)) // the client may be gone
}

// sayText sends a frame as API Gateway does: base64 in text.
func (s *script) sayText(f *skaldpb.RelayFrame) {
	s.sayBytes(ws.OpText, []byte(base64.StdEncoding.EncodeToString(s.encode(f))))
}

// hear returns the next frame that is no control frame; it answers pings if
// asked to. False is the end.
func (s *script) hear(pong bool) (ws.Frame, bool) {
	for {
		f, err := wire.Read(s.c)
		if err != nil || f.Header.OpCode == ws.OpClose {
			return f, false
		}
		switch {
		case f.Header.OpCode == ws.OpPing && pong:
			s.sayBytes(ws.OpPong, f.Payload)
		case !f.Header.OpCode.IsControl():
			return f, true
		}
	}
}

// deaf reads until the client is gone, without any answer.
func (s *script) deaf() {
	for ok := true; ok; {
		_, ok = s.hear(false)
	}
}

func challengeFrame(n int) *skaldpb.RelayFrame {
	return &skaldpb.RelayFrame{Frame: &skaldpb.RelayFrame_Challenge{Challenge: &skaldpb.Challenge{Nonce: bytes.Repeat([]byte{7}, n)}}}
}

// startScript is an HTTPS server with a WebSocket at /v1/ws that follows a script.
func startScript(t *testing.T, a *testAuthority, follow func(*script)) string {
	t.Helper()
	return startServer(t, a.good(), http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/v1/ws" {
			_, _ = io.WriteString(w, "ok")
			return
		}
		c, _, _, err := ws.UpgradeHTTP(r, w)
		if err != nil {
			t.Error(err)
			return
		}
		defer c.Close()
		follow(&script{t: t, c: c})
	}))
}

// startServer serves a handler; without TLS if c is nil.
func startServer(t *testing.T, c *tls.Config, h http.Handler) string {
	t.Helper()
	s := httptest.NewUnstartedServer(h)
	s.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelDebug)
	if s.TLS = c; c != nil {
		s.StartTLS()
	} else {
		s.Start()
	}
	t.Cleanup(s.Close)
	return s.Listener.Addr().String()
}

// startListener hands each connection to a function, which owns it.
func startListener(t *testing.T, handle func(net.Conn)) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go handle(c)
		}
	}()
	return l.Addr().String()
}

func trusting(cidr string) []netip.Prefix { return []netip.Prefix{netip.MustParsePrefix(cidr)} }
