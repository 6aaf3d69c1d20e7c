package stories

import (
	"bytes"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"testing"

	skaldclient "blindpost/shared/client/skald"
	"blindpost/shared/dialect/skald/skaldpb"
	"blindpost/shared/gateway"
)

// member is the agent or a phone of a home.
type member struct {
	*skaldclient.Identity
	h        *home
	name     string
	key      []byte
	token    string // push token
	platform skaldpb.Platform
}

// home is a namespace: an agent and its phones.
type home struct {
	w      *world
	ns     skaldclient.NamespaceID
	agent  *member
	phones []*member
}

func (w *world) home() *home {
	w.T.Helper()
	h := &home{w: w}
	h.agent = h.member("agent")
	h.ns = h.agent.Namespace()
	return h
}

// homeWith is a home whose agent is online and has paired n phones, which are not.
func (w *world) homeWith(n int) (*home, *peer) {
	w.T.Helper()
	h := w.home()
	agent := h.agent.connect()
	for range n {
		h.pair(agent, h.phone())
	}
	return h, agent
}

func (h *home) member(name string) *member {
	h.w.T.Helper()
	id, err := skaldclient.GenerateIdentity(rand.Reader)
	if err != nil {
		h.w.T.Fatal(err)
	}
	key := id.PublicKey()
	m := &member{
		Identity: id, h: h, name: name, key: key[:],
		token:    "device-" + hex.EncodeToString(random(12)),
		platform: skaldpb.Platform_PLATFORM_IOS,
	}
	h.w.Secrets.Add("a key", m.key)
	h.w.Secrets.Add("a token", []byte(m.token))
	return m
}

// phone makes a phone that is not paired.
func (h *home) phone() *member {
	h.w.T.Helper()
	return h.member(fmt.Sprint("phone ", len(h.phones)+1))
}

// dial connects without authenticating.
func (m *member) dial(l ...line) *peer {
	m.h.w.T.Helper()
	return m.h.w.dial(m.name, append(l, line{})[0])
}

// try connects and answers the challenge.
func (m *member) try(l ...line) *peer {
	m.h.w.T.Helper()
	p := m.dial(l...)
	if m == m.h.agent {
		p.answer(skaldclient.AgentAuth(m.Identity))
	} else {
		p.answer(skaldclient.ClientAuth(m.Identity, m.h.ns, m.token, m.platform))
	}
	return p
}

// connect connects and is admitted.
func (m *member) connect(l ...line) *peer {
	m.h.w.T.Helper()
	p := m.try(l...)
	p.wantAuthOk(m.h)
	return p
}

// tryPair connects with a pairing token.
func (m *member) tryPair(token skaldclient.PairingToken) *peer {
	m.h.w.T.Helper()
	p := m.dial()
	p.answer(skaldclient.PairingAuth(m.Identity, m.h.ns, token, m.token, m.platform))
	return p
}

// openWindow opens a pairing window and returns its token.
func (h *home) openWindow(agent *peer, ttl, want uint32) skaldclient.PairingToken {
	h.w.T.Helper()
	token := skaldclient.PairingToken(random(32))
	h.w.Secrets.Add("a token", token[:])
	agent.send(&skaldpb.RelayFrame{Frame: &skaldpb.RelayFrame_PairingStart{
		PairingStart: &skaldpb.PairingStart{PairingToken: token[:], Ttl: ttl}}})
	f := agent.want("PairingReady")
	if f.GetPairingReady() == nil || f.GetPairingReady().GetTtl() != want {
		h.w.T.Fatalf("got %s, want PairingReady with %d", describe(f), want)
	}
	return token
}

// pair pairs a phone and authorises it.
func (h *home) pair(agent *peer, phone *member) {
	h.w.T.Helper()
	p := phone.tryPair(h.openWindow(agent, 0, 300))
	p.wantAuthOk(h)
	p.close()
	agent.wantPaired(phone)
	h.phones = append(h.phones, phone)
	h.authorize(agent)
}

// authorize sends the list of phones.
func (h *home) authorize(agent *peer) {
	h.w.T.Helper()
	var keys [][]byte
	for _, m := range h.phones {
		keys = append(keys, m.key)
	}
	agent.send(&skaldpb.RelayFrame{Frame: &skaldpb.RelayFrame_Authorize{Authorize: &skaldpb.Authorize{Clients: keys}}})
	f := agent.want("AuthorizeOk")
	if f.GetAuthorizeOk() == nil || int(f.GetAuthorizeOk().GetAuthorized()) != len(keys) {
		h.w.T.Fatalf("got %s, want AuthorizeOk with %d", describe(f), len(keys))
	}
}

func (p *peer) wantAuthOk(h *home) {
	p.w.T.Helper()
	if f := p.want("AuthOk"); !bytes.Equal(f.GetAuthOk().GetNamespaceId(), h.ns[:]) {
		p.w.T.Fatalf("%s got %s, want AuthOk", p.name, describe(f))
	}
}

func (p *peer) wantPaired(m *member) {
	p.w.T.Helper()
	exchange := m.ExchangeKey()
	c := p.want("ClientPaired").GetClientPaired()
	if !bytes.Equal(c.GetClientEd25519Pub(), m.key) || !bytes.Equal(c.GetClientX25519Pub(), exchange[:]) || c.GetPlatform() != m.platform {
		p.w.T.Fatalf("%s was not told of %s", p.name, m.name)
	}
}

func (p *peer) wantPresence(m *member, s skaldpb.Status) {
	p.w.T.Helper()
	f := p.want("PresenceEvent")
	if e := f.GetPresenceEvent(); e == nil || !bytes.Equal(e.GetPubkey(), m.key) || e.GetStatus() != s {
		p.w.T.Fatalf("%s got %s, want %v of %s", p.name, describe(f), s, m.name)
	}
}

func (p *peer) wantOnline(m *member) {
	p.w.T.Helper()
	p.wantPresence(m, skaldpb.Status_STATUS_ONLINE)
}

func (p *peer) wantOffline(m *member) {
	p.w.T.Helper()
	p.wantPresence(m, skaldpb.Status_STATUS_OFFLINE)
}

func (p *peer) wantPeerOffline(m *member) {
	p.w.T.Helper()
	if f := p.want("PeerOffline"); !bytes.Equal(f.GetPeerOffline().GetPeer(), m.key) {
		p.w.T.Fatalf("%s got %s, want PeerOffline", p.name, describe(f))
	}
}

// askPresence returns who is online, as a set of keys.
func (p *peer) askPresence() map[string]bool {
	p.w.T.Helper()
	p.send(&skaldpb.RelayFrame{Frame: &skaldpb.RelayFrame_PresenceRequest{PresenceRequest: &skaldpb.PresenceRequest{}}})
	f := p.want("PresenceList")
	if f.GetPresenceList() == nil {
		p.w.T.Fatalf("%s got %s, want PresenceList", p.name, describe(f))
	}
	online := map[string]bool{}
	for _, key := range f.GetPresenceList().GetOnline() {
		online[string(key)] = true
	}
	return online
}

// parcel is the content of a message.
type parcel struct {
	ciphertext []byte
	nonce      []byte
	live       bool
}

// parcel makes a new one with so many bytes of ciphertext.
func (w *world) parcel(size int) parcel {
	m := parcel{ciphertext: random(size), nonce: random(12)}
	w.Secrets.Add("a payload", m.ciphertext[:min(size, 32)])
	w.Secrets.Add("a nonce", m.nonce)
	return m
}

func (w *world) parcels(n, size int) []parcel {
	ms := make([]parcel, n)
	for i := range ms {
		ms[i] = w.parcel(size)
	}
	return ms
}

// post sends a parcel; an answer is for the caller to read.
func (p *peer) post(to *member, m parcel) {
	p.w.T.Helper()
	p.send(&skaldpb.RelayFrame{Frame: &skaldpb.RelayFrame_Message{Message: &skaldpb.Message{
		Ciphertext: m.ciphertext, Nonce: m.nonce, Peer: to.key, Live: m.live}}})
}

// wantMessages expects exactly these next, byte for byte.
func (p *peer) wantMessages(from *member, ms ...parcel) {
	p.w.T.Helper()
	for i, m := range ms {
		f := p.want(fmt.Sprintf("message %d of %d", i+1, len(ms)))
		got := f.GetMessage()
		if got == nil || !bytes.Equal(got.GetCiphertext(), m.ciphertext) || !bytes.Equal(got.GetNonce(), m.nonce) ||
			!bytes.Equal(got.GetPeer(), from.key) || got.GetLive() != m.live {
			p.w.T.Fatalf("%s got %s, want message %d of %d", p.name, describe(f), i+1, len(ms))
		}
	}
}

func random(n int) []byte {
	b := make([]byte, n)
	_, _ = rand.Read(b)
	return b
}

// TestBubble is the least that a bubble can do.
func TestBubble(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		h, agent := w.homeWith(1)
		m := w.parcel(100)
		agent.post(h.phones[0], m)
		phone := h.phones[0].connect()
		phone.wantMessages(h.agent, m)
		agent.wantOnline(h.phones[0])
		phone.close()
		phone.wantEnd(gateway.CloseNormal)
		agent.wantOffline(h.phones[0])
		agent.wantNothing()
	})
}
