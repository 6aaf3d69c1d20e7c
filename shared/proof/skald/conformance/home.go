package conformance

import (
	"fmt"
	"testing"

	"blindpost/shared/dialect/skald/skaldpb"
)

// home is one namespace: an agent and the phones that it may get.
type home struct {
	t     *testing.T
	r     *relay
	agent *identity
	ns    []byte
}

// home makes a namespace that nobody has used. The relay does not know it yet.
func (r *relay) home(t *testing.T) *home {
	t.Helper()
	agent := newIdentity(r, fmt.Sprintf("agent%d", r.number()))
	return &home{t: t, r: r, agent: agent, ns: agent.namespace()}
}

// dialAgent connects the agent.
func (h *home) dialAgent(lines ...line) *peer {
	h.t.Helper()
	p := h.r.dial(h.t, h.agent.name, lines...)
	p.login(h.agent, h.agent.authAgent())
	p.wantAuthOk(h.ns)
	return p
}

// login signs the challenge as id and sends auth.
func (p *peer) login(id *identity, auth *skaldpb.Auth) {
	p.t.Helper()
	auth.Signature = id.sign(p.nonce)
	p.send(frameAuth(auth))
}

// phone is a client of a home, paired or not.
type phone struct {
	*identity
	home *home
}

// newPhone makes a phone that the relay has never heard of.
func (h *home) newPhone() *phone {
	return &phone{newIdentity(h.r, fmt.Sprintf("phone%d", h.r.number())), h}
}

// newToken makes a pairing token.
func (h *home) newToken() []byte {
	token := randomBytes(32)
	h.r.secrets.Add("a pairing token", token)
	return token
}

// openWindow makes the agent open a pairing window, and returns the token.
func (h *home) openWindow(agent *peer) []byte {
	h.t.Helper()
	token := h.newToken()
	agent.send(framePairingStart(token, 300))
	agent.wantPairingReady(300)
	return token
}

// pair introduces the phone with a token of its own. It is pending afterwards.
func (h *home) pair(agent *peer, ph *phone) {
	h.t.Helper()
	p := ph.dialPairing(h.openWindow(agent))
	p.wantAuthOk(h.ns)
	agent.wantClientPaired(ph.identity)
	p.close()
}

// authorize declares exactly these phones, all of them paired, as the list.
func (h *home) authorize(agent *peer, phones ...*phone) {
	h.t.Helper()
	agent.send(frameAuthorize(keysOf(phones)...))
	agent.wantAuthorizeOk(len(phones))
}

// revoke authorises only those who stay, and makes the agent see those who were
// online go. Whether it hears of that before or after AuthorizeOk is open.
func (h *home) revoke(agent *peer, online []*phone, stay ...*phone) {
	h.t.Helper()
	agent.send(frameAuthorize(keysOf(stay)...))
	h.wantRevoked(agent, online, len(stay))
}

// wantRevoked wants AuthorizeOk for n clients and OFFLINE for each of gone.
func (h *home) wantRevoked(agent *peer, gone []*phone, n int) {
	h.t.Helper()
	offline := make(map[string]bool)
	for _, ph := range gone {
		offline[string(ph.key)] = true
	}
	for ok := false; !ok || len(offline) > 0; {
		f := agent.want("AuthorizeOk and OFFLINE of the revoked")
		event := f.GetPresenceEvent()
		switch {
		case f.GetAuthorizeOk() != nil && !ok && int(f.GetAuthorizeOk().GetAuthorized()) == n:
			ok = true
		case event.GetStatus() == skaldpb.Status_STATUS_OFFLINE && offline[string(event.GetPubkey())]:
			delete(offline, string(event.GetPubkey()))
		default:
			agent.instead("AuthorizeOk and OFFLINE of the revoked", f)
		}
	}
}

func keysOf(phones []*phone) [][]byte {
	var keys [][]byte
	for _, ph := range phones {
		keys = append(keys, ph.key)
	}
	return keys
}

// phones makes n phones, paired and authorised, and replaces the list by them.
func (h *home) phones(agent *peer, n int) []*phone {
	h.t.Helper()
	var all []*phone
	for range n {
		ph := h.newPhone()
		h.pair(agent, ph)
		all = append(all, ph)
	}
	h.authorize(agent, all...)
	return all
}

// phone makes one.
func (h *home) phone(agent *peer) *phone {
	h.t.Helper()
	return h.phones(agent, 1)[0]
}

// dialPairing connects and asks to be paired; the story goes on with the answer.
func (ph *phone) dialPairing(token []byte) *peer {
	ph.home.t.Helper()
	p := ph.home.r.dial(ph.home.t, ph.name+" (pairing)")
	p.login(ph.identity, ph.authPairing(ph.home.ns, token))
	return p
}

// try connects as an authorised client; the story goes on with the answer.
func (ph *phone) try(lines ...line) *peer {
	ph.home.t.Helper()
	p := ph.home.r.dial(ph.home.t, ph.name, lines...)
	p.login(ph.identity, ph.authClient(ph.home.ns))
	return p
}

// dial connects as an authorised client. What is stored comes next.
func (ph *phone) dial(lines ...line) *peer {
	ph.home.t.Helper()
	p := ph.try(lines...)
	p.wantAuthOk(ph.home.ns)
	return p
}

// dialSeen connects and makes the others, who are all online, see it come.
func (ph *phone) dialSeen(others ...*peer) *peer {
	ph.home.t.Helper()
	p := ph.dial()
	for _, other := range others {
		other.wantOnline(ph.identity)
	}
	return p
}

// pairOnline is the usual beginning: an agent and one phone, both connected.
func (r *relay) pairOnline(t *testing.T) (*home, *peer, *phone, *peer) {
	t.Helper()
	h := r.home(t)
	agent := h.dialAgent()
	ph := h.phone(agent)
	return h, agent, ph, ph.dialSeen(agent)
}

// leave closes the phone's connection and makes the others see it go.
func (ph *phone) leave(p *peer, others ...*peer) {
	ph.home.t.Helper()
	p.close()
	for _, other := range others {
		other.wantOffline(ph.identity)
	}
}
