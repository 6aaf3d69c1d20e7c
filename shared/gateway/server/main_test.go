package server

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"io"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"net/netip"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"blindpost/shared/gateway"
	"blindpost/shared/proof/gatewaytest"
)

func TestMain(m *testing.M) {
	if mode := os.Getenv(idleChildEnv); mode != "" {
		idleChild(mode)
		return
	}
	goleak.VerifyTestMain(m)
}

// ids makes ids that are unique in the test.
func ids() func() gateway.Conn {
	var n atomic.Int64
	return func() gateway.Conn { return gateway.Conn(fmt.Sprintf("c%d", n.Add(1))) }
}

var loopback = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("::1/128")}

// behindProxy is what a TLS proxy on the same machine adds to a request.
var behindProxy = http.Header{"X-Forwarded-Proto": {"https"}}

func quiet() *slog.Logger { return slog.New(slog.NewTextHandler(io.Discard, nil)) }

// newServer makes a server that trusts a proxy on loopback and logs nothing.
func newServer(t testing.TB, h gateway.Handler, change ...func(*Options)) *Server {
	t.Helper()
	o := Options{NewConn: ids(), TrustedProxies: loopback, Logger: quiet()}
	for _, f := range change {
		f(&o)
	}
	s, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	s.Handle(h)
	return s
}

// serve serves on a loopback port until the end of the test.
func serve(t testing.TB, s *Server) net.Addr {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	serveOn(t, s, l)
	return l.Addr()
}

func serveOn(t testing.TB, s *Server, l net.Listener) {
	done := make(chan error, 1)
	go func() { done <- s.Serve(context.Background(), l) }()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		defer cancel()
		if err := s.Shutdown(ctx, 0); err != nil {
			t.Errorf("shutdown: %v", err)
		}
		if err := <-done; err != nil {
			t.Errorf("serve: %v", err)
		}
		if err := s.check(); err != nil {
			t.Error(err)
		}
	})
}

// testCert is a certificate for 127.0.0.1, made once, and who trusts it.
var testCert = sync.OnceValues(func() (*tls.Config, *tls.Config) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		panic(err)
	}
	tmpl := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test"}, NotAfter: time.Date(2100, 1, 1, 0, 0, 0, 0, time.UTC),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, tmpl, tmpl, &key.PublicKey, key)
	if err != nil {
		panic(err)
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		panic(err)
	}
	pool := x509.NewCertPool()
	pool.AddCert(leaf)
	return &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}},
		&tls.Config{RootCAs: pool, ServerName: "127.0.0.1"}
})

// everything is a harness of a front that can do all.
func everything(s *Server) gatewaytest.Harness {
	return gatewaytest.Harness{
		Front: s, Paths: true, RefusalBody: true, CloseCodes: true, KnowsEnds: true,
		ClosesOnError: true, ReadLimits: true, Confirms: true, MaxMessage: 4<<20 - 10,
	}
}

func TestContractPlain(t *testing.T) {
	gatewaytest.Run(t, func(t *testing.T, h gateway.Handler) gatewaytest.Harness {
		s := newServer(t, h)
		hn := everything(s)
		hn.URL = "ws://" + serve(t, s).String()
		hn.Header = behindProxy.Clone()
		return hn
	})
}

func TestContractTLS(t *testing.T) {
	serverTLS, clientTLS := testCert()
	gatewaytest.Run(t, func(t *testing.T, h gateway.Handler) gatewaytest.Harness {
		s := newServer(t, h, func(o *Options) { o.TLS, o.TrustedProxies = serverTLS, nil })
		hn := everything(s)
		hn.URL = "wss://" + serve(t, s).String()
		tr := &http.Transport{TLSClientConfig: clientTLS.Clone()}
		t.Cleanup(tr.CloseIdleConnections)
		hn.Client = &http.Client{Transport: tr}
		return hn
	})
}
