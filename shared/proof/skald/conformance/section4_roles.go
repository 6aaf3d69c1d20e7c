package conformance

import (
	"testing"

	"github.com/coder/websocket"
)

// closeReplaced is what a connection is told that a newer one has replaced.
const closeReplaced websocket.StatusCode = 4001

var section4Roles = []story{
	{Name: "Section4_1_NamespaceIsMadeByTheAgent", Tell: section41Namespace},
	{Name: "Section4_1_OneAgentConnection", Tell: section41Replaced},
	{Name: "Section4_2_NoNamespace", Tell: section42NoNamespace},
	{Name: "Section4_2_NoWindow", Tell: section42NoWindow},
	{Name: "Section4_2_WrongToken", Tell: section42WrongToken},
	{Name: "Section4_2_TokenOfAnotherNamespace", Tell: section42OtherNamespace},
	{Name: "Section4_2_TokenIsConsumed", Tell: section42Consumed},
	{Name: "Section4_2_PairedIsPending", Tell: section42Pending},
	{Name: "Section4_2_PairingConnectionHasNoRights", Tell: section42NoRights},
	{Name: "Section4_3_NoNamespace", Tell: section43NoNamespace},
	{Name: "Section4_3_Unauthorized", Tell: section43Unauthorized},
	{Name: "Section4_3_OneConnectionPerClient", Tell: section43Replaced},
	{Name: "Section4_3_AgentNeedNotBeThere", Tell: section43AgentAway},
}

// The first Auth of an agent creates the namespace; its id is the hash of the
// key, and it is the same the next time.
func section41Namespace(t *testing.T, r *relay) {
	h := r.home(t)
	ph := h.newPhone()
	ph.try().wantRefusal("not_found")
	agent := h.dialAgent() // wants AuthOk with the id
	ph.try().wantRefusal("unauthorized")
	agent.close()
	h.dialAgent().wantPresence(h.agent)
}

// A second agent connection closes the first, and nobody's presence changes.
func section41Replaced(t *testing.T, r *relay) {
	h, old, ph, p := r.pairOnline(t)
	for range 3 {
		agent := h.dialAgent()
		old.wantClosed(closeReplaced)
		p.wantNothing()
		m := r.parcel("to the new one")
		p.send(m.to(h.agent.key))
		agent.wantMessage(ph.identity, m)
		agent.wantPresence(h.agent, ph.identity)
		old = agent
	}
	p.wantNothing()
}

func section42NoNamespace(t *testing.T, r *relay) {
	h := r.home(t) // never dialled
	h.newPhone().dialPairing(h.newToken()).wantRefusal("not_found")
}

func section42NoWindow(t *testing.T, r *relay) {
	h := r.home(t)
	agent := h.dialAgent()
	h.newPhone().dialPairing(h.newToken()).wantRefusal("pairing_closed")
	agent.wantNothing()
}

// A wrong token is refused and does not use up the right one.
func section42WrongToken(t *testing.T, r *relay) {
	h := r.home(t)
	agent := h.dialAgent()
	token := h.openWindow(agent)
	ph := h.newPhone()
	for i := range 32 {
		wrong := append([]byte(nil), token...)
		wrong[i] ^= 0x80
		ph.dialPairing(wrong).wantRefusal("pairing_closed")
	}
	agent.wantNothing()
	ph.dialPairing(token).wantAuthOk(h.ns)
	agent.wantClientPaired(ph.identity)
}

func section42OtherNamespace(t *testing.T, r *relay) {
	h, other := r.home(t), r.home(t)
	agent, stranger := h.dialAgent(), other.dialAgent()
	h.openWindow(agent)
	token := other.openWindow(stranger)
	h.newPhone().dialPairing(token).wantRefusal("pairing_closed")
	agent.wantNothing()
	stranger.wantNothing()
}

// The token is single-use, also for the phone that used it.
func section42Consumed(t *testing.T, r *relay) {
	h := r.home(t)
	agent := h.dialAgent()
	token := h.openWindow(agent)
	first, second := h.newPhone(), h.newPhone()
	first.dialPairing(token).wantAuthOk(h.ns)
	agent.wantClientPaired(first.identity)
	second.dialPairing(token).wantRefusal("pairing_closed")
	first.dialPairing(token).wantRefusal("pairing_closed")
	agent.wantNothing()
}

// A paired client is pending: it is not authorised before the agent says so.
func section42Pending(t *testing.T, r *relay) {
	h := r.home(t)
	agent := h.dialAgent()
	ph := h.newPhone()
	h.pair(agent, ph)
	ph.try().wantRefusal("unauthorized")
	agent.wantPresence(h.agent)
	h.authorize(agent, ph)
	p := ph.dialSeen(agent)
	p.wantNothing()
}

// The pairing client closes after AuthOk. One that does not gets nothing for
// it: it can send nothing to anybody and is not told who is there.
func section42NoRights(t *testing.T, r *relay) {
	h := r.home(t)
	agent := h.dialAgent()
	member := h.phone(agent)
	p := member.dialSeen(agent)

	intruder := h.newPhone()
	pairing := intruder.dialPairing(h.openWindow(agent))
	pairing.wantAuthOk(h.ns)
	agent.wantClientPaired(intruder.identity)
	_ = pairing.post(r.parcel("let me in").to(h.agent.key))
	_ = pairing.post(r.liveParcel("let me in").to(member.key))
	_ = pairing.post(frameAuthorize(intruder.key, member.key))
	_ = pairing.post(framePresenceRequest())
	for range 4 { // at most one answer to each
		e, err := pairing.next(patience)
		if err != nil {
			t.Fatal("the pairing connection is neither answered nor closed")
		}
		if e.end != nil {
			break
		}
		if e.frame.GetError() == nil {
			pairing.instead("an Error or the end", e.frame)
		}
	}
	agent.wantNothing()
	p.wantNothing()
	intruder.try().wantRefusal("unauthorized")
}

func section43NoNamespace(t *testing.T, r *relay) {
	r.home(t).newPhone().try().wantRefusal("not_found")
}

func section43Unauthorized(t *testing.T, r *relay) {
	h, other := r.home(t), r.home(t)
	agent, elsewhere := h.dialAgent(), other.dialAgent()
	h.newPhone().try().wantRefusal("unauthorized") // never paired

	ph := h.phone(agent)
	guest := &phone{ph.identity, other}
	guest.try().wantRefusal("unauthorized") // paired with somebody else

	// Nor is the agent's key a client's.
	boss := &phone{h.agent, h}
	boss.try().wantRefusal("unauthorized")
	agent.wantNothing()
	elsewhere.wantNothing()
}

// A second connection of a client closes the first, and presence does not change.
func section43Replaced(t *testing.T, r *relay) {
	h, agent, ph, old := r.pairOnline(t)
	for range 3 {
		p := ph.dial()
		old.wantClosed(closeReplaced)
		agent.wantNothing()
		m := r.parcel("to the new one")
		agent.send(m.to(ph.key))
		p.wantMessage(h.agent, m)
		p.wantPresence(h.agent, ph.identity)
		old = p
	}
	ph.leave(old, agent)
	agent.wantPresence(h.agent)
}

// An authorised client gets in while the agent is away.
func section43AgentAway(t *testing.T, r *relay) {
	h, agent, ph, p := r.pairOnline(t)
	agent.close()
	p.wantOffline(h.agent)
	p.close()
	ph.dial().wantPresence(ph.identity)
}
