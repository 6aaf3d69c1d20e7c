package conformance

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	peer "blindpost/shared/client/agentknock"
	"blindpost/shared/proof/suite"
	"blindpost/shared/proof/tcpproxy"
)

// patience is how long a peer waits for what has to come. It is never waited for in
// full unless a test fails.
const patience = 20 * time.Second

// relay is the target as the stories see it.
type relay struct {
	Target
	at      *peer.Relay
	secrets *suite.Secrets
	serial  atomic.Int64
}

// newRelay looks at what the relay has logged when t is over.
func newRelay(t *testing.T, target Target) *relay {
	r := &relay{Target: target, secrets: suite.NewSecrets()}
	r.at = r.over(nil)
	if r.Log != nil {
		t.Cleanup(func() { r.secrets.WantSilentLog(t, r.Log()) })
	}
	return r
}

// over is the way to the relay, through a proxy if there is one.
func (r *relay) over(x *tcpproxy.Proxy) *peer.Relay {
	at := &peer.Relay{URL: r.URL, HTTP: r.HTTP, TLS: r.TLS, Locate: r.Locate}
	if x != nil {
		at.DialContext = x.DialContext
	}
	return at
}

// address is the relay's host and port.
func (r *relay) address() string { return suite.Address(r.URL) }

// proxy is a stretch of network in front of the relay that can fail.
func (r *relay) proxy(t *testing.T) *tcpproxy.Proxy {
	t.Helper()
	return tcpproxy.New(t, r.address())
}

// soon is the time that one step has.
func soon(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), patience)
	t.Cleanup(cancel)
	return ctx
}

// newID makes an id of now.
func newID() string { return peer.NewID(time.Now()) }

// eventually waits for something that no peer is told about.
func eventually(t *testing.T, what string, happened func() bool) {
	t.Helper()
	suite.Eventually(t, patience, what, happened)
}
