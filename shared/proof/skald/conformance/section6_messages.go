package conformance

import "testing"

var section6 = []story{
	{Name: "Section6_1_BetweenAgentAndClient", Tell: section61Both},
	{Name: "Section6_1_BetweenClients", Tell: section61Clients},
	{Name: "Section6_1_ToOneself", Tell: section61Self},
	{Name: "Section6_1_UnknownRecipient", Tell: section61Unknown},
	{Name: "Section6_1_PendingRecipient", Tell: section61Pending},
	{Name: "Section6_1_OtherNamespace", Tell: section61Foreign},
	{Name: "Section6_1_BytesAreBytes", Tell: section61Bytes},
	{Name: "Section6_2_SenderIsWhoAuthenticated", Tell: section62From},
	{Name: "Section6_2_OrderOfOneSender", Tell: section62Order},
}

func section61Both(t *testing.T, r *relay) {
	h, agent, ph, p := r.pairOnline(t)
	down, up := r.parcel("down"), r.parcel("up")
	agent.send(down.to(ph.key))
	p.wantMessage(h.agent, down)
	p.send(up.to(h.agent.key))
	agent.wantMessage(ph.identity, up)
	agent.wantNothing()
	p.wantNothing()
}

// The recipient may be any member of the namespace: the agent, or an
// authorised client, whoever sends.
func section61Clients(t *testing.T, r *relay) {
	h := r.home(t)
	agent := h.dialAgent()
	both := h.phones(agent, 2)
	a := both[0].dialSeen(agent)
	stored, live := r.parcel("stored"), r.liveParcel("live")
	a.send(stored.to(both[1].key))
	a.wantNothing()
	b := both[1].dialSeen(agent, a)
	b.wantMessage(both[0].identity, stored)
	a.send(live.to(both[1].key))
	b.wantMessage(both[0].identity, live)
	agent.wantNothing()
}

// The text neither allows nor forbids that a member writes to itself. It gets
// its message back, or is refused; nothing else happens.
func section61Self(t *testing.T, r *relay) {
	h, agent, ph, p := r.pairOnline(t)
	for _, who := range []struct {
		peer *peer
		id   *identity
	}{{agent, h.agent}, {p, ph.identity}} {
		for _, m := range []parcel{r.parcel("to myself"), r.liveParcel("to myself")} {
			who.peer.send(m.to(who.id.key))
			switch f := who.peer.want("an echo or an Error"); {
			case f.GetMessage() != nil:
				if string(f.GetMessage().GetPeer()) != string(who.id.key) {
					who.peer.instead("its own message", f)
				}
			case f.GetError() == nil:
				who.peer.instead("an echo or an Error", f)
			}
			who.peer.wantNothing()
		}
	}
	agent.wantPresence(h.agent, ph.identity)
}

func section61Unknown(t *testing.T, r *relay) {
	h, agent, _, p := r.pairOnline(t)
	for _, sender := range []*peer{agent, p} {
		for _, m := range []parcel{r.parcel("stored"), r.liveParcel("live")} {
			sender.send(m.to(randomBytes(32)))
			sender.wantError("not_found")
			sender.send(m.to(make([]byte, 32)))
			sender.wantError("not_found")
			sender.send(m.to(h.ns)) // an id is no key
			sender.wantError("not_found")
		}
		sender.wantNothing()
	}
}

// A client is no recipient before it is authorised, and finds nothing when it is.
func section61Pending(t *testing.T, r *relay) {
	h := r.home(t)
	agent := h.dialAgent()
	ph := h.newPhone()
	h.pair(agent, ph)
	for _, m := range []parcel{r.parcel("stored"), r.liveParcel("live")} {
		agent.send(m.to(ph.key))
		agent.wantError("not_found")
	}
	h.authorize(agent, ph)
	ph.dialSeen(agent).wantNothing()
}

// The relay MUST verify that the recipient belongs to the same namespace.
func section61Foreign(t *testing.T, r *relay) {
	h, agent, ph, p := r.pairOnline(t)
	other, agent2, ph2, p2 := r.pairOnline(t)
	away := other.newPhone()
	other.pair(agent2, away)
	other.authorize(agent2, ph2, away)
	for _, sender := range []*peer{agent, p} {
		for _, key := range [][]byte{other.agent.key, ph2.key, away.key} {
			for _, m := range []parcel{r.parcel("stored"), r.liveParcel("live")} {
				sender.send(m.to(key))
				sender.wantError("not_found")
			}
		}
	}
	agent2.wantNothing()
	p2.wantNothing()
	away.dialSeen(agent2, p2).wantNothing()
	agent.wantPresence(h.agent, ph.identity)
}

// The relay neither reads nor alters nonce and ciphertext.
func section61Bytes(t *testing.T, r *relay) {
	h, agent, ph, p := r.pairOnline(t)
	all := make([]byte, 256)
	for i := range all {
		all[i] = byte(i)
	}
	for _, m := range []parcel{
		{ciphertext: all, nonce: make([]byte, 12)},
		{ciphertext: []byte{0}, nonce: all[:12]},
		{ciphertext: make([]byte, 4096), nonce: all[244:]},
		{ciphertext: []byte(`{"json":"or so"}`), nonce: []byte("\xff\xfe\xc3\x28\x00\x0a\x0d\"\\'<>")},
		{ciphertext: []byte("\xc3\x28 no UTF-8 \xf0\x28\x8c\x28"), nonce: all[100:112]},
		{ciphertext: randomBytes(60_000), nonce: randomBytes(12)},
	} {
		for _, live := range []bool{true, false} {
			m.live = live
			agent.send(m.to(ph.key))
			p.wantMessage(h.agent, m)
			p.send(m.to(h.agent.key))
			agent.wantMessage(ph.identity, m)
		}
	}
	// The same by way of the mailbox.
	p.wantConfirmed()
	ph.leave(p, agent)
	m := parcel{ciphertext: all, nonce: all[244:]}
	agent.send(m.to(ph.key))
	agent.wantNothing()
	ph.dialSeen(agent).wantMessage(h.agent, m)
}

// The relay writes the authenticated sender into the message. Whatever a sender
// puts there is the recipient, so a client cannot speak for another one.
func section62From(t *testing.T, r *relay) {
	h := r.home(t)
	agent := h.dialAgent()
	all := h.phones(agent, 2)
	a := all[0].dialSeen(agent)
	b := all[1].dialSeen(agent, a)
	for i, p := range []*peer{a, b, a, a, b} {
		m := r.parcel("message %d", i)
		p.send(m.to(h.agent.key))
		from := all[0]
		if p == b {
			from = all[1]
		}
		agent.wantMessage(from.identity, m)
	}
	b.wantNothing()
}

// Messages of one sender to one recipient arrive in the order sent, live and
// stored ones alike.
func section62Order(t *testing.T, r *relay) {
	h, agent, ph, p := r.pairOnline(t)
	var ms []parcel
	for i := range 200 {
		m := r.parcel("message %d", i)
		m.live = i%3 == 0
		ms = append(ms, m)
		agent.send(m.to(ph.key))
	}
	p.wantMessages(h.agent, ms...)
	p.wantNothing()
	agent.wantNothing()
}
