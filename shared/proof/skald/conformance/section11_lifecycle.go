package conformance

import (
	"testing"
	"time"
)

var section11 = []story{
	{Name: "Section11_NamespaceSurvivesItsConnections", Tell: section11Idle},
	{Name: "Section11_InactiveNamespaceIsDeleted", Tell: section11Deleted,
		Own: &Settings{MessagesPerMinute: plenty, ConnectionsPerIP: plenty, NamespaceTTL: time.Second}},
}

// Agent disconnected, client connected, agent reconnected: resumed.
func section11Idle(t *testing.T, r *relay) {
	h, agent, ph, p := r.pairOnline(t)
	agent.close()
	p.wantOffline(h.agent)
	p.close()
	p = ph.dial()
	p.wantPresence(ph.identity)
	agent = h.dialAgent()
	p.wantOnline(h.agent)
	m := r.parcel("resumed")
	agent.send(m.to(ph.key))
	p.wantMessage(h.agent, m)
}

// Without any connection for the TTL the namespace is gone: queues, tokens,
// the list. The agent gets the same id and no clients; devices must pair again.
// A connection keeps it, however old.
func section11Deleted(t *testing.T, r *relay) {
	kept, agent, _, p := r.pairOnline(t)
	_ = kept
	h := r.home(t)
	leaving := h.dialAgent()
	both := h.phones(leaving, 2)
	pending := h.newPhone()
	h.pair(leaving, pending)
	token := h.openWindow(leaving)
	leaving.send(r.parcel("for nobody").to(both[0].key))
	leaving.wantNothing()
	leaving.close()

	time.Sleep(time.Second + grain)
	both[0].try().wantRefusal("not_found")
	h.newPhone().dialPairing(token).wantRefusal("not_found")
	again := h.dialAgent()
	again.wantNothing() // no ClientPaired either
	again.send(frameAuthorize(both[0].key, both[1].key))
	again.wantAuthorizeOk(0)
	both[0].try().wantRefusal("unauthorized")
	h.newPhone().dialPairing(token).wantRefusal("pairing_closed")
	h.pair(again, both[0])
	h.authorize(again, both[0])
	both[0].dialSeen(again).wantNothing()

	agent.wantNothing()
	p.wantNothing()
}
