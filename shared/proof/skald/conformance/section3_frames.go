package conformance

import (
	"maps"
	"slices"
	"testing"

	"google.golang.org/protobuf/proto"

	"blindpost/shared/dialect/skald/skaldpb"
)

var section3 = []story{
	{Name: "Section3_MalformedAuthIsBadRequest", Tell: section3Auth},
	{Name: "Section3_MalformedFramesAreBadRequest", Tell: section3Frames},
	{Name: "Section3_BytesThatAreNoFrame", Tell: section3Bytes},
	{Name: "Section3_ForeignFieldsDoNoHarm", Tell: section3Unknown},
}

// wrongLengths are variants of a field that is right: cut off, drawn out, absent.
func wrongLengths(right []byte) map[string][]byte {
	return map[string][]byte{
		"short":  right[:len(right)-1],
		"long":   append(slices.Clone(right), 0),
		"absent": nil,
	}
}

// The relay MUST validate presence and length of bytes fields and reject with
// bad_request; the signature is good in every case, so that it is the field
// that is refused.
func section3Auth(t *testing.T, r *relay) {
	h := r.home(t)
	agent := h.dialAgent()
	ph := h.phone(agent)
	token := h.openWindow(agent)

	type spoiling struct {
		name string
		auth *skaldpb.Auth
	}
	var cases []spoiling
	spoil := func(name string, make func() *skaldpb.Auth, right []byte, set func(*skaldpb.Auth, []byte)) {
		for kind, wrong := range wrongLengths(right) {
			auth := make()
			set(auth, wrong)
			cases = append(cases, spoiling{name + " " + kind, auth})
		}
	}
	client := func() *skaldpb.Auth { return ph.authClient(h.ns) }
	pairing := func() *skaldpb.Auth { return ph.authPairing(h.ns, token) }
	spoil("agent key", ph.authAgent, ph.key, func(a *skaldpb.Auth, b []byte) { a.GetAgent().AgentEd25519Pub = b })
	spoil("client namespace", client, h.ns, func(a *skaldpb.Auth, b []byte) { a.GetClient().NamespaceId = b })
	spoil("client key", client, ph.key, func(a *skaldpb.Auth, b []byte) { a.GetClient().ClientEd25519Pub = b })
	spoil("pairing namespace", pairing, h.ns, func(a *skaldpb.Auth, b []byte) { a.GetPairing().NamespaceId = b })
	spoil("pairing key", pairing, ph.key, func(a *skaldpb.Auth, b []byte) { a.GetPairing().ClientEd25519Pub = b })
	spoil("pairing X25519 key", pairing, ph.exchange, func(a *skaldpb.Auth, b []byte) { a.GetPairing().ClientX25519Pub = b })
	spoil("pairing token", pairing, token, func(a *skaldpb.Auth, b []byte) { a.GetPairing().PairingToken = b })
	for name, platform := range map[string]skaldpb.Platform{"platform unspecified": 0, "platform unknown": 99} {
		c, p := client(), pairing()
		c.GetClient().Platform, p.GetPairing().Platform = platform, platform
		cases = append(cases, spoiling{"client " + name, c}, spoiling{"pairing " + name, p})
	}
	cases = append(cases, spoiling{"no role", &skaldpb.Auth{}},
		spoiling{"empty agent", &skaldpb.Auth{Role: &skaldpb.Auth_Agent{Agent: &skaldpb.AuthAgent{}}}})
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			p := r.stranger(t)
			p.login(ph.identity, c.auth)
			p.wantRefusal("bad_request")
		})
	}

	for kind, cut := range map[string]func([]byte) []byte{
		"signature short":  func(s []byte) []byte { return s[:63] },
		"signature long":   func(s []byte) []byte { return append(s, 0) },
		"signature absent": func([]byte) []byte { return nil },
	} {
		for role, auth := range map[string]*skaldpb.Auth{"agent": h.agent.authAgent(), "client": client(), "pairing": pairing()} {
			t.Run(role+" "+kind, func(t *testing.T) {
				p := r.stranger(t)
				auth.Signature = cut(ph.sign(p.nonce))
				p.send(frameAuth(auth))
				p.wantRefusal("bad_request")
			})
		}
	}
	agent.wantNothing()
}

// The same for frames after authentication. Nothing comes of them.
func section3Frames(t *testing.T, r *relay) {
	parcel := r.parcel("never")
	key, token := randomBytes(32), randomBytes(32)
	type spoiling struct {
		name  string
		frame func(phone []byte) *skaldpb.RelayFrame
	}
	var cases []spoiling
	for kind, wrong := range wrongLengths(key) {
		cases = append(cases,
			spoiling{"authorize key " + kind, func(phone []byte) *skaldpb.RelayFrame { return frameAuthorize(phone, wrong) }},
			spoiling{"message peer " + kind, func([]byte) *skaldpb.RelayFrame { return parcel.to(wrong) }})
	}
	for kind, wrong := range wrongLengths(token) {
		cases = append(cases, spoiling{"pairing token " + kind,
			func([]byte) *skaldpb.RelayFrame { return framePairingStart(wrong, 300) }})
	}
	for kind, wrong := range wrongLengths(parcel.nonce) {
		cases = append(cases, spoiling{"message nonce " + kind, func(phone []byte) *skaldpb.RelayFrame {
			f := parcel.to(phone)
			f.GetMessage().Nonce = wrong
			return f
		}})
	}
	cases = append(cases, spoiling{"message without ciphertext", func(phone []byte) *skaldpb.RelayFrame {
		f := parcel.to(phone)
		f.GetMessage().Ciphertext = nil
		return f
	}})
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			_, agent, ph, p := r.pairOnline(t)
			agent.send(c.frame(ph.key))
			agent.wantError("bad_request")
			agent.wantStaysOrGoes()
			p.wantPresenceAbout(agent)
		})
	}
}

// wantStaysOrGoes is for errors of which the text does not say whether they end
// the connection: either the relay goes on to answer, or it has hung up.
func (p *peer) wantStaysOrGoes() (stays bool) {
	p.t.Helper()
	_ = p.post(framePresenceRequest())
	e, err := p.next(patience)
	switch {
	case err != nil:
		p.t.Fatalf("%s wants an answer or the end: %v", p.name, err)
	case e.end != nil:
		return false
	case e.frame.GetPresenceList() == nil:
		p.instead("nothing but PresenceList", e.frame)
	}
	return true
}

// wantPresenceAbout wants nothing but possibly news of the other peer's coming
// and going, after an error that may have cost the other its connection.
func (p *peer) wantPresenceAbout(other *peer) {
	p.t.Helper()
	p.send(framePresenceRequest())
	for {
		f := p.want("PresenceList")
		switch {
		case f.GetPresenceList() != nil:
			return
		case f.GetPresenceEvent() == nil:
			p.instead("nothing but news of "+other.name, f)
		}
	}
}

// notFrames are binary messages that are no RelayFrame.
func notFrames() map[string][]byte {
	whole, err := proto.Marshal(framePairingStart(randomBytes(32), 300))
	if err != nil {
		panic(err)
	}
	return map[string][]byte{
		"no bytes":          {},
		"truncated":         whole[:len(whole)-1],
		"one byte":          {0x08},
		"endless varint":    {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff},
		"length beyond end": {0x12, 0xff, 0xff, 0xff, 0xff, 0x0f},
		"group":             {0x0b, 0x0c},
		"wrong wire type":   {0x10, 0x01}, // auth as a varint
		"reserved number":   {0x92, 0x01, 0x00},
		"field number 0":    {0x02, 0x00},
		"random":            append([]byte{0xff}, randomBytes(100)...),
	}
}

// Malformed protobuf is bad_request, before authentication and after it. A
// frame that is well formed and whose oneof is empty is malformed, too.
func section3Bytes(t *testing.T, r *relay) {
	for _, name := range slices.Sorted(maps.Keys(notFrames())) {
		data := notFrames()[name]
		t.Run(name+", stranger", func(t *testing.T) {
			p := r.stranger(t)
			p.sendRaw(data)
			p.wantRefusal("bad_request")
		})
		t.Run(name+", agent", func(t *testing.T) {
			h := r.home(t)
			agent := h.dialAgent()
			agent.sendRaw(data)
			agent.wantError("bad_request")
			agent.wantStaysOrGoes()
		})
	}
}

// Fields that the relay does not know are skipped, as proto3 has it: a later
// version of an app may send them.
func section3Unknown(t *testing.T, r *relay) {
	h, agent, ph, p := r.pairOnline(t)
	m := r.parcel("with more")
	data, err := proto.Marshal(m.to(ph.key))
	if err != nil {
		t.Fatal(err)
	}
	agent.sendRaw(append(data, 0xa2, 0x06, 0x03, 'n', 'e', 'w')) // field 100
	p.wantMessage(h.agent, m)
	agent.wantNothing()
}
