package conformance

import "testing"

var section7 = []story{
	{Name: "Section7_SnapshotIncludesTheRequester", Tell: section7Snapshot},
	{Name: "Section7_ComingAndGoingIsToldToAllOthers", Tell: section7Events},
	{Name: "Section7_BrokenConnectionIsGoing", Tell: section7Broken},
	{Name: "Section7_OnlyWithinTheNamespace", Tell: section7Scope},
	{Name: "Section7_AgentMayAsk", Tell: section7Agent},
	{Name: "Section7_RefusedPeersAreNotPresent", Tell: section7Refused},
}

func section7Snapshot(t *testing.T, r *relay) {
	h := r.home(t)
	agent := h.dialAgent()
	all := h.phones(agent, 3)
	a := all[0].dialSeen(agent)
	a.wantPresence(h.agent, all[0].identity)
	b := all[1].dialSeen(agent, a)
	a.wantPresence(h.agent, all[0].identity, all[1].identity)
	b.wantPresence(h.agent, all[0].identity, all[1].identity)
	all[0].leave(a, agent, b)
	b.wantPresence(h.agent, all[1].identity)
	agent.close()
	b.wantOffline(h.agent)
	b.wantPresence(all[1].identity)
}

// To all other members that are connected, and not to the one it is about.
func section7Events(t *testing.T, r *relay) {
	h := r.home(t)
	agent := h.dialAgent()
	agent.wantNothing()
	all := h.phones(agent, 4)
	var online []*peer
	for _, ph := range all {
		p := ph.dialSeen(append(online, agent)...)
		p.wantNothing() // not even about those who were there before
		online = append(online, p)
	}
	agent.close()
	for _, p := range online {
		p.wantOffline(h.agent)
	}
	agent = h.dialAgent()
	for _, p := range online {
		p.wantOnline(h.agent)
	}
	agent.wantNothing()
	for i, ph := range all {
		ph.leave(online[i], append(online[i+1:], agent)...)
	}
	agent.wantPresence(h.agent)
}

// A connection that breaks without goodbye is a close as well.
func section7Broken(t *testing.T, r *relay) {
	h := r.home(t)
	agent := h.dialAgent()
	ph := h.phone(agent)
	for range 3 {
		wire := r.proxy(t)
		ph.dial(line{through: wire})
		agent.wantOnline(ph.identity)
		wire.Cut()
		agent.wantOffline(ph.identity)
	}
	agent.wantPresence(h.agent)
}

func section7Scope(t *testing.T, r *relay) {
	h, agent, ph, p := r.pairOnline(t)
	other, agent2, ph2, p2 := r.pairOnline(t)
	agent.wantPresence(h.agent, ph.identity)
	p2.wantPresence(other.agent, ph2.identity)
	ph.leave(p, agent)
	agent2.wantNothing()
	p2.wantNothing()
	agent.wantNothing()
}

// Section 13 lists PresenceRequest under the clients; section 7 gives it to
// whoever asks, and agents do ask.
func section7Agent(t *testing.T, r *relay) {
	h, agent, ph, _ := r.pairOnline(t)
	agent.wantPresence(h.agent, ph.identity)
}

// Somebody who does not get in is no news.
func section7Refused(t *testing.T, r *relay) {
	h, agent, ph, p := r.pairOnline(t)
	h.newPhone().try().wantRefusal("unauthorized")
	r.stranger(t).drop()
	q := r.stranger(t)
	auth := ph.authClient(h.ns)
	auth.Signature = randomBytes(64)
	q.send(frameAuth(auth))
	q.wantRefusal("invalid_signature")
	pending := h.newPhone()
	h.pair(agent, pending)
	p.wantPresence(h.agent, ph.identity)
	agent.wantPresence(h.agent, ph.identity)
}
