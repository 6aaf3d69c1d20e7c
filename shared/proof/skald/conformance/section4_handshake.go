package conformance

import (
	"crypto/ed25519"
	"maps"
	"slices"
	"testing"
	"time"

	"blindpost/shared/dialect/skald/skaldpb"
)

var section4 = []story{
	{Name: "Section4_RelaySpeaksFirst", Tell: section4First},
	{Name: "Section4_OnlyAuthBeforeAuthOk", Tell: section4OnlyAuth},
	{Name: "Section4_ChallengeExpires", Tell: section4Timeout,
		Own: &Settings{MessagesPerMinute: plenty, ConnectionsPerIP: plenty, ChallengeTimeout: time.Second}},
	{Name: "Section4_SignatureBelongsToThisChallenge", Tell: section4OtherChallenge},
	{Name: "Section4_SignatureCoversTheDomain", Tell: section4Domain},
	{Name: "Section4_SignatureComesBeforeEverythingElse", Tell: section4SignatureFirst},
	{Name: "Section4_SecondAuth", Tell: section4SecondAuth},
}

// As soon as the WebSocket is open, the relay sends a Challenge: 32 bytes,
// unique per connection.
func section4First(t *testing.T, r *relay) {
	seen := map[string]bool{}
	for range 20 {
		p := r.stranger(t) // sends nothing
		if seen[string(p.nonce)] {
			t.Fatal("a challenge came twice")
		}
		seen[string(p.nonce)] = true
		p.drop()
	}
}

// Until AuthOk the only frame accepted is Auth.
func section4OnlyAuth(t *testing.T, r *relay) {
	someone := newIdentity(r, "someone")
	frames := relayOnly(someone)
	frames["Authorize"] = frameAuthorize(someone.key)
	frames["PairingStart"] = framePairingStart(randomBytes(32), 300)
	frames["PairingStop"] = framePairingStop()
	frames["Message"] = r.parcel("too early").to(someone.key)
	frames["live Message"] = r.liveParcel("too early").to(someone.key)
	frames["PresenceRequest"] = framePresenceRequest()
	for _, name := range slices.Sorted(maps.Keys(frames)) {
		t.Run(name, func(t *testing.T) {
			p := r.stranger(t)
			p.send(frames[name])
			p.wantRefusal("bad_request")
		})
	}
}

// No Auth in time: challenge_timeout and close. Whoever is in stays in.
func section4Timeout(t *testing.T, r *relay) {
	h := r.home(t)
	agent := h.dialAgent()
	since := time.Now()
	p := r.stranger(t)
	p.wantRefusal("challenge_timeout")
	if took := time.Since(since); took < time.Second*9/10 {
		t.Errorf("the challenge expired after %v", took)
	}
	agent.wantNothing()
}

// A signature for the challenge of another connection is worth nothing.
func section4OtherChallenge(t *testing.T, r *relay) {
	h := r.home(t)
	mine, other := r.stranger(t), r.stranger(t)
	auth := h.agent.authAgent()
	auth.Signature = h.agent.sign(other.nonce)
	mine.send(frameAuth(auth))
	mine.wantRefusal("invalid_signature")

	other.login(h.agent, h.agent.authAgent())
	other.wantAuthOk(h.ns)
}

// What is signed is AUTH_DOMAIN, a zero byte, the nonce, and not less.
func section4Domain(t *testing.T, r *relay) {
	for name, text := range map[string]func(nonce []byte) []byte{
		"nonce alone":  func(nonce []byte) []byte { return nonce },
		"no zero byte": func(nonce []byte) []byte { return append([]byte(authDomain), nonce...) },
		"other domain": func(nonce []byte) []byte { return join("skald-pipe-auth-v1", nonce) },
		"hex nonce":    func(nonce []byte) []byte { return join(authDomain, []byte(hexOf(nonce))) },
	} {
		t.Run(name, func(t *testing.T) {
			id := newIdentity(r, "agent")
			p := r.stranger(t)
			auth := id.authAgent()
			auth.Signature = ed25519.Sign(id.private, text(p.nonce))
			p.send(frameAuth(auth))
			p.wantRefusal("invalid_signature")
		})
	}
}

// The relay MUST verify the signature before any other logic: a bad one is
// told nothing else, and changes nothing.
func section4SignatureFirst(t *testing.T, r *relay) {
	h := r.home(t)
	agent := h.dialAgent()
	ph, other := h.newPhone(), h.newPhone()
	h.pair(agent, ph)
	h.authorize(agent, ph)
	online := ph.dialSeen(agent)
	token := h.openWindow(agent)
	nowhere := randomBytes(32)

	for name, auth := range map[string]*skaldpb.Auth{
		"agent that is online":     h.agent.authAgent(),
		"agent unknown":            other.authAgent(),
		"client that is online":    ph.authClient(h.ns),
		"client unknown":           other.authClient(h.ns),
		"client of no namespace":   ph.authClient(nowhere),
		"pairing of no namespace":  other.authPairing(nowhere, token),
		"pairing with wrong token": other.authPairing(h.ns, nowhere),
		"pairing with right token": other.authPairing(h.ns, token),
	} {
		t.Run(name, func(t *testing.T) {
			p := r.stranger(t)
			auth.Signature = newIdentity(r, "forger").sign(p.nonce)
			p.send(frameAuth(auth))
			p.wantRefusal("invalid_signature")
		})
	}

	// Nobody was replaced, and the token still opens.
	agent.wantNothing()
	online.wantNothing()
	p := other.dialPairing(token)
	p.wantAuthOk(h.ns)
	agent.wantClientPaired(other.identity)
}

// A second Auth is no way to become somebody else. Whether it costs the
// connection, the text leaves open.
func section4SecondAuth(t *testing.T, r *relay) {
	h, agent, ph, p := r.pairOnline(t)
	p.login(h.agent, h.agent.authAgent())
	p.wantError("bad_request")
	if p.wantStaysOrGoes() {
		m := r.parcel("still me")
		p.send(m.to(h.agent.key))
		agent.wantMessage(ph.identity, m)
		agent.wantNothing()
	}
}
