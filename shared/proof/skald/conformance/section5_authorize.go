package conformance

import (
	"slices"
	"testing"

	"google.golang.org/protobuf/proto"
)

var section5 = []story{
	{Name: "Section5_ListReplacesList", Tell: section5Replace},
	{Name: "Section5_PendingBecomesAuthorised", Tell: section5Pending},
	{Name: "Section5_OkCountsClientsThatExist", Tell: section5Counts},
	{Name: "Section5_ManyUnknownKeys", Tell: section5Unknown},
	{Name: "Section5_TooManyKeys", Tell: section5TooMany, Needs: carries(tooManyKeys * 35)},
	{Name: "Section5_MalformedKeyChangesNothing", Tell: section5Malformed},
	{Name: "Section5_RevokedConnectionIsClosed", Tell: section5Closed},
	{Name: "Section5_RevokedQueueIsPurged", Tell: section5Purged},
	{Name: "Section5_RevokedTokenIsForgotten", Tell: section5Token, Needs: pushes},
	{Name: "Section5_RevokedClientIsNobody", Tell: section5Nobody},
	{Name: "Section5_RevokedMayPairAgain", Tell: section5Again},
	{Name: "Section5_NobodyElseIsTouched", Tell: section5Others},
}

// The list replaces the one before; it is not appended to it.
func section5Replace(t *testing.T, r *relay) {
	h := r.home(t)
	agent := h.dialAgent()
	all := h.phones(agent, 3)
	h.authorize(agent, all[0], all[2])
	all[1].try().wantRefusal("unauthorized")
	all[0].dialSeen(agent)
	all[2].dialSeen(agent)
	// The same list again is no news to anybody.
	h.authorize(agent, all[0], all[2])
	agent.wantPresence(h.agent, all[0].identity, all[2].identity)
}

func section5Pending(t *testing.T, r *relay) {
	h := r.home(t)
	agent := h.dialAgent()
	first, second := h.newPhone(), h.newPhone()
	h.pair(agent, first)
	h.pair(agent, second)
	h.authorize(agent, first)
	first.dialSeen(agent)
	second.try().wantRefusal("unauthorized")
	h.authorize(agent, first, second)
	second.dialSeen(agent)
}

func section5Counts(t *testing.T, r *relay) {
	h, other := r.home(t), r.home(t)
	agent, elsewhere := h.dialAgent(), other.dialAgent()
	ph, foreign, nobody := h.phone(agent), other.phone(elsewhere), h.newPhone()

	agent.send(frameAuthorize(ph.key, nobody.key, foreign.key, h.agent.key))
	agent.wantAuthorizeOk(1)
	agent.send(frameAuthorize(ph.key, ph.key, ph.key))
	agent.wantAuthorizeOk(1)
	agent.send(frameAuthorize())
	agent.wantAuthorizeOk(0)
	nobody.try().wantRefusal("unauthorized")
	(&phone{foreign.identity, h}).try().wantRefusal("unauthorized")
	elsewhere.wantNothing()
	foreign.dialSeen(elsewhere) // still a client of its own agent
}

// As many keys as a frame holds, and none of them paired.
func section5Unknown(t *testing.T, r *relay) {
	h, agent, ph, p := r.pairOnline(t)
	keys := [][]byte{ph.key}
	for range 1_900 {
		keys = append(keys, randomBytes(32))
	}
	agent.send(frameAuthorize(keys...))
	agent.wantAuthorizeOk(1)
	p.wantNothing()
	agent.send(frameAuthorize(keys[1:]...))
	h.wantRevoked(agent, []*phone{ph}, 0)
	p.wantClosed()
	agent.wantPresence(h.agent)
}

// tooManyKeys do not fit into a frame that is no live message.
const tooManyKeys = 10_000

// With too many keys, nothing changes.
func section5TooMany(t *testing.T, r *relay) {
	_, agent, ph, p := r.pairOnline(t)
	var keys [][]byte
	for range tooManyKeys {
		keys = append(keys, randomBytes(32))
	}
	data, err := proto.Marshal(frameAuthorize(keys...))
	if err != nil {
		t.Fatal(err)
	}
	agent.sendRaw(data)
	agent.wantError("payload_too_large")
	agent.wantStaysOrGoes()
	p.wantPresenceAbout(agent)
	ph.dial() // is still authorised
}

// One malformed key among good ones: bad_request, and nothing changes.
func section5Malformed(t *testing.T, r *relay) {
	for name, key := range map[string][]byte{
		"31 bytes": randomBytes(31), "33 bytes": randomBytes(33), "no bytes": {},
	} {
		t.Run(name, func(t *testing.T) {
			h := r.home(t)
			agent := h.dialAgent()
			member := h.phone(agent)
			p := member.dialSeen(agent)
			pending := h.newPhone()
			h.pair(agent, pending)
			// Would revoke one and admit the other, if it counted.
			agent.send(frameAuthorize(pending.key, key))
			agent.wantError("bad_request")
			agent.wantStaysOrGoes()
			p.wantPresenceAbout(agent)
			pending.try().wantRefusal("unauthorized")
			member.dial()
		})
	}
}

// Revocation (a): the relay MUST close the active connection.
func section5Closed(t *testing.T, r *relay) {
	h, agent, ph, p := r.pairOnline(t)
	h.revoke(agent, []*phone{ph})
	p.wantClosed()
	ph.try().wantRefusal("unauthorized")
	agent.wantPresence(h.agent)
}

// Revocation (b): the relay MUST purge the queue. A client that is paired
// again begins with an empty one.
func section5Purged(t *testing.T, r *relay) {
	h := r.home(t)
	agent := h.dialAgent()
	ph := h.phone(agent)
	for _, m := range r.parcels(10) {
		agent.send(m.to(ph.key))
	}
	agent.wantNothing()
	h.authorize(agent)
	h.pair(agent, ph)
	h.authorize(agent, ph)
	p := ph.dialSeen(agent)
	p.wantNothing()
	m := r.parcel("new times")
	agent.send(m.to(ph.key))
	p.wantMessage(h.agent, m)
}

// Revocation (c): the relay MUST forget the device token.
func section5Token(t *testing.T, r *relay) {
	h := r.home(t)
	agent := h.dialAgent()
	ph := h.phone(agent)
	h.authorize(agent)
	agent.send(r.parcel("never").to(ph.key))
	agent.wantError("not_found")

	// Back with no token of its own, it must not be woken by the old one.
	old := ph.token
	ph.token = ""
	h.pair(agent, ph)
	h.authorize(agent, ph)
	agent.send(r.parcel("quiet").to(ph.key))
	agent.wantNothing()

	// The push of a later message to another phone has come: so would this one.
	witness := h.newPhone()
	h.pair(agent, witness)
	h.authorize(agent, ph, witness)
	agent.send(r.parcel("loud").to(witness.key))
	eventually(t, "the witness's push", func() bool { return len(r.pushesTo(witness.token)) == 1 })
	if n := len(r.pushesTo(old)); n > 0 {
		t.Errorf("%d pushes went to a token that was revoked", n)
	}
}

// A revoked client is not found, not let in and not heard.
func section5Nobody(t *testing.T, r *relay) {
	h, agent, ph, p := r.pairOnline(t)
	h.revoke(agent, []*phone{ph})
	// What it still sends on its way out does not arrive.
	_ = p.post(r.parcel("last words").to(h.agent.key))
	p.wantClosed()
	for _, m := range []parcel{r.parcel("stored"), r.liveParcel("live")} {
		agent.send(m.to(ph.key))
		agent.wantError("not_found")
	}
	ph.try().wantRefusal("unauthorized")
	agent.wantNothing()
}

func section5Again(t *testing.T, r *relay) {
	h, agent, ph, p := r.pairOnline(t)
	for range 3 {
		h.revoke(agent, []*phone{ph})
		p.wantClosed()
		h.pair(agent, ph)
		ph.try().wantRefusal("unauthorized")
		h.authorize(agent, ph)
		p = ph.dialSeen(agent)
		m := r.parcel("again")
		p.send(m.to(h.agent.key))
		agent.wantMessage(ph.identity, m)
	}
}

// Revoking one leaves the connection and the queue of the others alone, and an
// agent's list says nothing about another namespace.
func section5Others(t *testing.T, r *relay) {
	h, other := r.home(t), r.home(t)
	agent, elsewhere := h.dialAgent(), other.dialAgent()
	all := h.phones(agent, 3)
	foreign := other.phone(elsewhere)
	away, online, revoked := all[0], all[1], all[2]
	p := online.dialSeen(agent)
	f := foreign.dialSeen(elsewhere)
	ms := r.parcels(5)
	for _, m := range ms {
		agent.send(m.to(away.key))
	}
	h.authorize(agent, away, online)
	p.wantNothing()
	f.wantNothing()
	elsewhere.wantNothing()
	revoked.try().wantRefusal("unauthorized")
	q := away.dialSeen(agent, p)
	q.wantMessages(h.agent, ms...)
	q.wantNothing()
	if !slices.ContainsFunc(p.list(), func(key []byte) bool { return string(key) == string(away.key) }) {
		t.Error("the other phone is not on the list")
	}
}
