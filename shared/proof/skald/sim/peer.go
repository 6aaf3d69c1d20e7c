package sim

import (
	"encoding/hex"
	"fmt"
	"time"

	"google.golang.org/protobuf/proto"

	"blindpost/shared/dialect/skald/skaldpb"
)

// authRole is how a connection authenticates.
type authRole uint8

const (
	asAgent authRole = iota + 1
	asClient
	asPairing
	// asImpostor claims to be another client, without its key.
	asImpostor
)

// namespace is one agent with its phones.
type namespace struct {
	index  int
	id     []byte
	group  string
	agent  *peer
	phones []*peer
	// windows are the pairing windows that the agent has asked for.
	windows []*pairingWindow
}

// pairingWindow is one window as peers see it; its state in the relay is the
// model's.
type pairingWindow struct {
	token  []byte
	sock   *socket // that has asked for it
	ttl    uint32  // seconds that were asked for
	ready  bool    // the agent has been told PairingReady
	closed bool    // the agent has been told PairingStopOk
	// admitted are the connections that were let in by this token.
	admitted map[*socket]bool
	// state of the item that the relay keeps
	open    bool
	used    bool
	soonest time.Time
	expires time.Time
}

// peer is an agent or a phone.
type peer struct {
	sim     *sim
	space   *namespace
	ident   *identity
	name    string
	agent   bool
	device  string // device token
	sock    *socket
	pairing *socket // a phone's connection for pairing

	paired  bool // a phone believes to be
	pushed  int  // step of the last push
	cutOff  bool // it was removed while it was connected
	refused int  // how often in a row it was not admitted
	// list is what an agent would authorise.
	list map[*peer]bool

	sent map[*peer]int // messages sent, by recipient
	// seen is the highest number received, by sender.
	seen map[*peer]int
}

func (p *peer) String() string { return p.name }

// build makes the peers.
func (s *sim) build() {
	ids := allIdentities()
	next := 0
	take := func() *identity { next++; return ids[next-1] }
	for n := range s.plan.namespaces {
		ns := &namespace{index: n}
		newPeer := func(name string, agent bool) *peer {
			p := &peer{
				sim: s, space: ns, ident: take(), name: name, agent: agent,
				list: make(map[*peer]bool), sent: make(map[*peer]int), seen: make(map[*peer]int),
			}
			p.device = fmt.Sprintf("DEVICE-TOKEN-%s-0", name)
			s.peers = append(s.peers, p)
			return p
		}
		ns.agent = newPeer(fmt.Sprintf("agent%d", n), true)
		ns.id = namespaceOf(ns.agent.ident)
		ns.group = "skald/" + hex.EncodeToString(ns.id)
		for i := range s.plan.phones {
			ns.phones = append(ns.phones, newPeer(fmt.Sprintf("phone%d%c", n, 'a'+i), false))
		}
		s.spaces = append(s.spaces, ns)
	}
	s.boot()
}

// peerOf finds a peer by its key, raw or in hex.
func (s *sim) peerOf(pub []byte) *peer {
	return s.peerOfHex(hex.EncodeToString(pub))
}

func (s *sim) peerOfHex(key string) *peer {
	for _, p := range s.peers {
		if p.ident.hex == key {
			return p
		}
	}
	return nil
}

func (s *sim) spaceOf(group string) *namespace {
	for _, ns := range s.spaces {
		if ns.group == group {
			return ns
		}
	}
	return nil
}

// members are all peers of a namespace.
func (ns *namespace) members() []*peer {
	return append([]*peer{ns.agent}, ns.phones...)
}

// send puts a frame into the hands of the front.
func (k *socket) send(what string, f *skaldpb.RelayFrame, e *upEvent) {
	data, err := proto.Marshal(f)
	if err != nil {
		panic(err)
	}
	k.sim.frames++
	e.id, e.kind, e.data, e.what = k.sim.frames, upFrame, data, what
	if k.closed {
		k.sim.dropUp(e) // the front does not read any more
		return
	}
	k.up = append(k.up, e)
}

func (k *socket) sendMessage(to *peer, live bool) {
	s, from := k.sim, k.peer
	size := 40 + s.rng.IntN(200)
	if s.plan.large && (!live || s.chance(200)) {
		size = largeFrame
	}
	m := newMessage(len(s.messages), from, to, live, size)
	from.sent[to]++
	m.seq, m.sock = from.sent[to], k
	s.messages = append(s.messages, m)
	k.send("message", &skaldpb.RelayFrame{Frame: &skaldpb.RelayFrame_Message{Message: &skaldpb.Message{
		Ciphertext: m.ciphertext, Nonce: m.nonce, Peer: to.ident.pub, Live: live,
	}}}, &upEvent{msg: m})
}

func (k *socket) sendAuth() {
	p, ns := k.peer, k.peer.space
	a := &skaldpb.Auth{Signature: p.ident.sign(k.nonce)}
	e := &upEvent{}
	what := ""
	switch k.role {
	case asAgent:
		what = "Auth(agent)"
		a.Role = &skaldpb.Auth_Agent{Agent: &skaldpb.AuthAgent{AgentEd25519Pub: p.ident.pub}}
	case asClient:
		what = "Auth(client)"
		a.Role = &skaldpb.Auth_Client{Client: &skaldpb.AuthClient{
			NamespaceId: ns.id, ClientEd25519Pub: p.ident.pub, DeviceToken: p.device,
			Platform: skaldpb.Platform_PLATFORM_IOS,
		}}
	case asImpostor:
		what = "Auth(client) as " + k.claims.name
		a.Role = &skaldpb.Auth_Client{Client: &skaldpb.AuthClient{
			NamespaceId: ns.id, ClientEd25519Pub: k.claims.ident.pub, DeviceToken: p.device,
			Platform: skaldpb.Platform_PLATFORM_IOS,
		}}
	case asPairing:
		what, e.window = "Auth(pairing)", k.token
		a.Role = &skaldpb.Auth_Pairing{Pairing: &skaldpb.AuthPairing{
			NamespaceId: ns.id, ClientEd25519Pub: p.ident.pub, ClientX25519Pub: p.ident.x25519,
			PairingToken: k.token.token, DeviceToken: p.device, Platform: skaldpb.Platform_PLATFORM_IOS,
		}}
	}
	k.send(what, &skaldpb.RelayFrame{Frame: &skaldpb.RelayFrame_Auth{Auth: a}}, e)
}

func (k *socket) sendAuthorize(list map[*peer]bool) {
	e := &upEvent{list: true, listed: make(map[*peer]bool)}
	a := &skaldpb.Authorize{}
	what := "Authorize"
	for _, p := range k.peer.space.phones {
		if list[p] {
			a.Clients = append(a.Clients, p.ident.pub)
			e.listed[p] = true
			what += " " + p.name
		}
	}
	k.send(what, &skaldpb.RelayFrame{Frame: &skaldpb.RelayFrame_Authorize{Authorize: a}}, e)
}

func (k *socket) sendPairingStart(ttl uint32) {
	ns := k.peer.space
	w := &pairingWindow{sock: k, ttl: ttl, token: challenge(1<<32 + uint64(len(ns.windows)) + uint64(ns.index)<<16), admitted: make(map[*socket]bool)}
	ns.windows = append(ns.windows, w)
	k.send("PairingStart", &skaldpb.RelayFrame{Frame: &skaldpb.RelayFrame_PairingStart{
		PairingStart: &skaldpb.PairingStart{PairingToken: w.token, Ttl: ttl},
	}}, &upEvent{window: w})
}

func (k *socket) sendPairingStop() {
	k.send("PairingStop", &skaldpb.RelayFrame{Frame: &skaldpb.RelayFrame_PairingStop{
		PairingStop: &skaldpb.PairingStop{},
	}}, &upEvent{})
}

// sendNonsense sends a frame that is not for this peer to send.
func (k *socket) sendNonsense() {
	p := k.peer
	f := &skaldpb.RelayFrame{Frame: &skaldpb.RelayFrame_AuthOk{AuthOk: &skaldpb.AuthOk{}}}
	switch k.sim.rng.IntN(4) {
	case 0:
		f.Frame = &skaldpb.RelayFrame_Auth{Auth: &skaldpb.Auth{}}
	case 1:
		if !p.agent { // a phone that authorises itself
			f.Frame = &skaldpb.RelayFrame_Authorize{Authorize: &skaldpb.Authorize{Clients: [][]byte{p.ident.pub}}}
		}
	case 2:
		f.Frame = &skaldpb.RelayFrame_Authorize{Authorize: &skaldpb.Authorize{Clients: [][]byte{p.ident.pub[:31]}}}
	}
	k.send("nonsense", f, &upEvent{nonsense: true})
}

func (k *socket) sendPresenceRequest() {
	k.send("PresenceRequest", &skaldpb.RelayFrame{Frame: &skaldpb.RelayFrame_PresenceRequest{
		PresenceRequest: &skaldpb.PresenceRequest{},
	}}, &upEvent{})
}
