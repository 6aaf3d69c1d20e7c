package conformance

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coder/websocket"

	"blindpost/shared/dialect/skald/skaldpb"
	"blindpost/shared/proof/suite"
	"blindpost/shared/proof/tcpproxy"
)

// patience is how long a peer waits for what has to come. It is never waited
// for in full unless a test fails.
const patience = 20 * time.Second

// relay is the target as the stories see it.
type relay struct {
	Target
	secrets *suite.Secrets
	direct  *http.Transport
	serial  atomic.Int64 // numbers peers and parcels
}

// newRelay looks at what the relay has logged when t is over.
func newRelay(t *testing.T, target Target) *relay {
	r := &relay{Target: target, secrets: suite.NewSecrets()}
	r.direct = r.transport("", "")
	if r.Log != nil {
		t.Cleanup(func() { r.secrets.WantSilentLog(t, r.Log()) })
	}
	return r
}

// transport dials the relay, through the TCP address via if that is not empty,
// from the local IP address from if that is not empty.
func (r *relay) transport(via, from string) *http.Transport {
	return &http.Transport{
		TLSClientConfig: r.TLS.Clone(),
		DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
			if via != "" {
				addr = via
			}
			d := net.Dialer{}
			if from != "" {
				d.LocalAddr = &net.TCPAddr{IP: net.ParseIP(from)}
			}
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

// httpURL is an address for plain HTTP requests on the relay's host.
func (r *relay) httpURL(path string) string { return "https://" + r.address() + path }

// line says how a peer reaches the relay. The zero value is the straight way.
type line struct {
	through *tcpproxy.Proxy
	from    string // local IP address
	query   string
	deaf    bool                      // answers no ping from the start
	watch   func(*skaldpb.RelayFrame) // see peer.watch
}

// call dials and returns the peer, or the HTTP response of a refusal.
func (r *relay) call(t *testing.T, name string, l line) (*peer, *http.Response, error) {
	t.Helper()
	transport := r.direct
	switch {
	case l.through != nil:
		transport = r.transport(l.through.Address(), l.from)
	case l.from != "":
		transport = r.transport("", l.from)
	}
	p := newPeer(t, r, name)
	p.deaf.Store(l.deaf)
	p.watch = l.watch
	u := r.URL
	if l.query != "" {
		u += "?" + l.query
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	conn, resp, err := websocket.Dial(ctx, u, &websocket.DialOptions{
		HTTPClient:     &http.Client{Transport: transport},
		OnPingReceived: p.onPing,
	})
	if err != nil {
		return nil, resp, fmt.Errorf("failed to dial: %w", err)
	}
	p.start(conn)
	return p, resp, nil
}

// dial opens a connection and takes the challenge.
func (r *relay) dial(t *testing.T, name string, lines ...line) *peer {
	t.Helper()
	var l line
	if len(lines) > 0 {
		l = lines[0]
	}
	p, _, err := r.call(t, name, l)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	p.wantChallenge()
	return p
}

// stranger is a peer that has not said who it is.
func (r *relay) stranger(t *testing.T) *peer {
	t.Helper()
	return r.dial(t, "stranger")
}

// number returns the next number of this run.
func (r *relay) number() int64 { return r.serial.Add(1) }

// get asks for a plain HTTP page and returns the status.
func (r *relay) get(t *testing.T, path string) int {
	t.Helper()
	transport := r.transport("", "")
	defer transport.CloseIdleConnections()
	client := &http.Client{Transport: transport, Timeout: patience}
	resp, err := client.Get(r.httpURL(path))
	if err != nil {
		t.Fatalf("GET %s: %v", path, err)
	}
	defer resp.Body.Close()
	return resp.StatusCode
}
