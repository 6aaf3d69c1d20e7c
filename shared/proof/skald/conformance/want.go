package conformance

import (
	"bytes"
	"errors"
	"slices"
	"strings"

	"github.com/coder/websocket"

	"blindpost/shared/dialect/skald/skaldpb"
)

// want takes the next frame, which has to be there.
func (p *peer) want(what string) *skaldpb.RelayFrame {
	p.t.Helper()
	f, err := p.frame()
	if err != nil {
		p.t.Fatalf("%s wants %s: %v%s", p.name, what, err, p.unread())
	}
	return f
}

// instead fails because the frame is another one.
func (p *peer) instead(what string, f *skaldpb.RelayFrame) {
	p.t.Helper()
	p.t.Fatalf("%s wants %s, gets %s%s", p.name, what, describe(f), p.unread())
}

func (p *peer) wantChallenge() {
	p.t.Helper()
	f := p.want("Challenge")
	if f.GetChallenge() == nil {
		p.instead("Challenge", f)
	}
	p.nonce = f.GetChallenge().GetNonce()
}

func (p *peer) wantAuthOk(namespace []byte) {
	p.t.Helper()
	f := p.want("AuthOk")
	if f.GetAuthOk() == nil || !bytes.Equal(f.GetAuthOk().GetNamespaceId(), namespace) {
		p.instead("AuthOk with its namespace", f)
	}
}

// wantRefusal wants AuthError and the end of the connection.
func (p *peer) wantRefusal(code string) {
	p.t.Helper()
	what := "AuthError " + code
	f := p.want(what)
	if f.GetAuthError().GetCode() != code {
		p.instead(what, f)
	}
	p.wantClosed(websocket.StatusPolicyViolation, websocket.StatusMessageTooBig, websocket.StatusTryAgainLater)
}

func (p *peer) wantError(code string) {
	p.t.Helper()
	what := "Error " + code
	f := p.want(what)
	if f.GetError().GetCode() != code {
		p.instead(what, f)
	}
}

// wantClosed wants the relay to have closed the connection, nothing before
// that, and on a front with close codes, one of these codes (any if none is
// named).
func (p *peer) wantClosed(codes ...websocket.StatusCode) {
	p.t.Helper()
	e, err := p.next(patience)
	switch {
	case err != nil:
		p.t.Fatalf("%s wants to be hung up on: %v", p.name, err)
	case e.end == nil:
		p.instead("to be hung up on", e.frame)
	}
	if !p.r.CloseCodes {
		return
	}
	var farewell websocket.CloseError
	if !errors.As(e.end, &farewell) {
		p.t.Fatalf("%s wants a close frame, gets: %v", p.name, e.end)
	}
	if len(codes) > 0 && !slices.Contains(codes, farewell.Code) {
		p.t.Fatalf("%s wants close code %v, gets %v %q", p.name, codes, farewell.Code, farewell.Reason)
	}
	if what := p.r.secrets.In([]byte(farewell.Reason)); what != "" {
		p.t.Fatalf("%s: the close reason tells %s", p.name, what)
	}
}

// wantEnd wants the connection to be over, in whatever way.
func (p *peer) wantEnd() {
	p.t.Helper()
	e, err := p.next(patience)
	switch {
	case err != nil:
		p.t.Fatalf("%s wants the end of the connection: %v", p.name, err)
	case e.end == nil:
		p.instead("the end of the connection", e.frame)
	}
}

// wantMessage wants m, byte for byte, from the peer with that key.
func (p *peer) wantMessage(from *identity, m parcel) {
	p.t.Helper()
	what := labelOf(m.ciphertext) + " from " + from.name
	f := p.want(what)
	got := f.GetMessage()
	switch {
	case got == nil:
		p.instead(what, f)
	case !bytes.Equal(got.GetPeer(), from.key):
		p.t.Fatalf("%s wants %s, gets %q from another sender", p.name, what, labelOf(got.GetCiphertext()))
	case !bytes.Equal(got.GetCiphertext(), m.ciphertext):
		p.t.Fatalf("%s wants %s, gets %q", p.name, what, labelOf(got.GetCiphertext()))
	case !bytes.Equal(got.GetNonce(), m.nonce):
		p.t.Fatalf("%s gets %s with another nonce", p.name, what)
	case got.GetLive() != m.live:
		p.t.Fatalf("%s gets %s with live=%v", p.name, what, got.GetLive())
	}
}

// wantMessages wants all of them in this order.
func (p *peer) wantMessages(from *identity, ms ...parcel) {
	p.t.Helper()
	for _, m := range ms {
		p.wantMessage(from, m)
	}
}

func (p *peer) wantPeerOffline(id *identity) {
	p.t.Helper()
	what := "PeerOffline for " + id.name
	f := p.want(what)
	if f.GetPeerOffline() == nil || !bytes.Equal(f.GetPeerOffline().GetPeer(), id.key) {
		p.instead(what, f)
	}
}

func (p *peer) wantOnline(id *identity) { p.t.Helper(); p.wantStatus(id, skaldpb.Status_STATUS_ONLINE) }

func (p *peer) wantOffline(id *identity) {
	p.t.Helper()
	p.wantStatus(id, skaldpb.Status_STATUS_OFFLINE)
}

func (p *peer) wantStatus(id *identity, status skaldpb.Status) {
	p.t.Helper()
	what := status.String() + " of " + id.name
	f := p.want(what)
	got := f.GetPresenceEvent()
	if got == nil || !bytes.Equal(got.GetPubkey(), id.key) || got.GetStatus() != status {
		p.instead(what, f)
	}
}

// wantPresence asks who is there and wants exactly these.
func (p *peer) wantPresence(ids ...*identity) {
	p.t.Helper()
	online := p.list()
	var want [][]byte
	var names []string
	for _, id := range ids {
		want = append(want, id.key)
		names = append(names, id.name)
	}
	slices.SortFunc(online, bytes.Compare)
	slices.SortFunc(want, bytes.Compare)
	if !slices.EqualFunc(online, want, bytes.Equal) {
		p.t.Fatalf("%s wants %s to be online, is told %d keys", p.name, strings.Join(names, ", "), len(online))
	}
}

// list asks who is there.
func (p *peer) list() [][]byte {
	p.t.Helper()
	p.send(framePresenceRequest())
	f := p.want("PresenceList")
	if f.GetPresenceList() == nil {
		p.instead("nothing but PresenceList", f)
	}
	return f.GetPresenceList().GetOnline()
}

// wantNothing is the barrier: the relay has handled what this peer sent, and
// has sent it nothing that the story has not asked for yet.
func (p *peer) wantNothing() { p.t.Helper(); p.list() }

// wantConfirmed comes back when the relay knows that this peer has what it
// was sent so far, and has sent nothing else.
func (p *peer) wantConfirmed() {
	p.t.Helper()
	if p.r.KnowsDelivery {
		if err := p.await(patience, func() bool { return !p.owed }); err != nil {
			p.t.Fatalf("%s wants a ping after the messages: %v", p.name, err)
		}
	}
	// The first answer shows that the pong is written, since one goroutine does
	// both; the second that the relay has read it.
	p.wantNothing()
	p.wantNothing()
}

func (p *peer) wantAuthorizeOk(n int) {
	p.t.Helper()
	f := p.want("AuthorizeOk")
	if f.GetAuthorizeOk() == nil || int(f.GetAuthorizeOk().GetAuthorized()) != n {
		p.t.Fatalf("%s wants AuthorizeOk for %d clients, gets %s", p.name, n, describe(f))
	}
}

func (p *peer) wantPairingReady(ttl uint32) {
	p.t.Helper()
	f := p.want("PairingReady")
	if f.GetPairingReady() == nil || f.GetPairingReady().GetTtl() != ttl {
		p.t.Fatalf("%s wants PairingReady for %d s, gets %s", p.name, ttl, describe(f))
	}
}

func (p *peer) wantPairingStopOk() {
	p.t.Helper()
	if f := p.want("PairingStopOk"); f.GetPairingStopOk() == nil {
		p.instead("PairingStopOk", f)
	}
}

func (p *peer) wantClientPaired(id *identity) {
	p.t.Helper()
	what := "ClientPaired for " + id.name
	f := p.want(what)
	got := f.GetClientPaired()
	if got == nil || !bytes.Equal(got.GetClientEd25519Pub(), id.key) ||
		!bytes.Equal(got.GetClientX25519Pub(), id.exchange) || got.GetPlatform() != id.platform {
		p.instead(what, f)
	}
}
