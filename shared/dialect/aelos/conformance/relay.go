package conformance

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	wire "blindpost/shared/dialect/aelos/peer"
)

// patience is how long a peer waits for what has to come. It is never waited
// for in full unless a test fails.
const patience = 20 * time.Second

// relay is the target as the stories see it.
type relay struct {
	Target
	direct *http.Transport
	serial atomic.Int64 // numbers boats, viewers and payloads

	mu      sync.Mutex
	secrets [][]byte // must not be in the log
}

func newRelay(t Target) *relay {
	r := &relay{Target: t}
	r.direct = r.transport("")
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
func (r *relay) address() string {
	u, err := url.Parse(r.URL)
	if err != nil {
		panic(fmt.Sprintf("Target.URL: %v", err))
	}
	return u.Host
}

// line says how a peer reaches the relay. The zero value is the straight way.
type line struct {
	through *proxy
	deaf    bool // answers no ping
}

// stranger opens a connection that has not said hello.
func (r *relay) stranger(t *testing.T, name string, l line) *peer {
	t.Helper()
	transport := r.direct
	if l.through != nil {
		transport = r.transport(l.through.address())
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

// secret makes a text known that must not turn up in the log.
func (r *relay) secret(text []byte) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.secrets = append(r.secrets, text)
}

// noise is what a ciphertext looks like from outside. It does not turn up in the
// log.
func (r *relay) noise(size int) []byte {
	b := make([]byte, size)
	_, _ = rand.Read(b)
	if size >= 16 {
		r.secret(b[:min(size, 48)])
	}
	return b
}

// wantSilentLog fails the test if the relay's log tells a secret: as it is, in
// hex, or in base64.
func (r *relay) wantSilentLog(t *testing.T) {
	t.Helper()
	log := r.Log()
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, s := range r.secrets {
		for _, form := range [][]byte{
			s, fmt.Appendf(nil, "%x", s), []byte(base64.RawStdEncoding.EncodeToString(s[:len(s)/3*3])),
		} {
			if bytes.Contains(log, form) {
				t.Fatalf("the relay's log tells a token or payload: %.60q", form)
			}
		}
	}
	t.Logf("searched %d bytes of log for %d secrets", len(log), len(r.secrets))
}
