package conformance

import (
	"context"
	"crypto/rand"
	"net"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	wire "blindpost/shared/client/aelos"
	"blindpost/shared/proof/suite"
	"blindpost/shared/proof/tcpproxy"
)

// patience is how long a peer waits for what has to come. It is never waited
// for in full unless a test fails.
const patience = 20 * time.Second

// relay is the target as the stories see it.
type relay struct {
	Target
	direct  *http.Transport
	secrets *suite.Secrets
	serial  atomic.Int64 // numbers boats, viewers and payloads
}

// newRelay looks at what the relay has logged when t is over.
func newRelay(t *testing.T, target Target) *relay {
	r := &relay{Target: target, secrets: suite.NewSecrets()}
	r.direct = r.transport("")
	if r.Log != nil {
		t.Cleanup(func() { r.secrets.WantSilentLog(t, r.Log()) })
	}
	return r
}

// transport dials the relay, through the TCP address via if that is not empty.
func (r *relay) transport(via string) *http.Transport {
	return &http.Transport{
		TLSClientConfig: r.TLS.Clone(),
		DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
			if via != "" {
				addr = via
			}
			var d net.Dialer
			return d.DialContext(ctx, network, addr)
		},
	}
}

// address is the relay's host and port.
func (r *relay) address() string { return suite.Address(r.URL) }

// proxy is a stretch of network in front of the relay that can fail.
func (r *relay) proxy(t *testing.T) *tcpproxy.Proxy {
	t.Helper()
	return tcpproxy.New(t, r.address())
}

// line says how a peer reaches the relay. The zero value is the straight way.
type line struct {
	through *tcpproxy.Proxy
	deaf    bool // answers no ping
}

// stranger opens a connection that has not said hello.
func (r *relay) stranger(t *testing.T, name string, l line) *peer {
	t.Helper()
	transport := r.direct
	if l.through != nil {
		transport = r.transport(l.through.Address())
	}
	p := &peer{t: t, r: r, name: name, news: make(chan struct{}, 1)}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	conn, _, err := wire.Dial(ctx, r.URL, wire.DialOptions{
		Client: &http.Client{Transport: transport},
		Base64: r.Base64,
		OnPing: func() bool { p.pings.Add(1); return !l.deaf },
	})
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	p.start(conn)
	return p
}

// number returns the next number of this run.
func (r *relay) number() int64 { return r.serial.Add(1) }

// noise is what a ciphertext looks like from outside. It does not turn up in the
// log.
func (r *relay) noise(size int) []byte {
	b := make([]byte, size)
	_, _ = rand.Read(b)
	if size >= 16 {
		r.secrets.Add("a payload", b[:min(size, 48)])
	}
	return b
}
