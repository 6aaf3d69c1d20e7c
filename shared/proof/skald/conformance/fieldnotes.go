package conformance

import (
	"bytes"
	"maps"
	"net/http"
	"slices"
	"testing"

	"blindpost/shared/dialect/skald/skaldpb"
)

// fieldNotes are the statements of skald-notes.md under "Relay behaviour that
// clients in the field rely on", one by one, in their order.
var fieldNotes = []story{
	{Name: "FieldNotes_ClientPairedAgainOnAgentAuth", Tell: notesPaired},
	{Name: "FieldNotes_OrderOnConnect", Tell: notesOrder},
	{Name: "FieldNotes_OrderOnConnectOfTheAgent", Tell: notesOrderAgent},
	{Name: "FieldNotes_AuthorizeIsAllOrNothing", Tell: section5Malformed},
	{Name: "FieldNotes_AuthorizeOkCounts", Tell: section5Counts},
	{Name: "FieldNotes_PairingTTL", Tell: section91TTL},
	{Name: "FieldNotes_PresenceRequestCountsAsMessage", Tell: notesPresence,
		Own: &Settings{MessagesPerMinute: 6, ConnectionsPerIP: plenty}},
	{Name: "FieldNotes_TextFrames", Tell: notesText},
	{Name: "FieldNotes_RelayOnlyFramesAreIgnored", Tell: notesRelayOnly},
	{Name: "FieldNotes_FramesOfTheOtherRole", Tell: notesOtherRole},
	{Name: "FieldNotes_LiveFlagIsKept", Tell: notesLiveFlag},
	{Name: "FieldNotes_Healthz", Tell: notesHealthz, Needs: plainHTTP},
}

// ClientPaired comes again for every client still pending, after AuthOk, each
// time the agent authenticates, until it is authorised.
func notesPaired(t *testing.T, r *relay) {
	h := r.home(t)
	agent := h.dialAgent()
	member := h.phone(agent)
	pending := map[string]*phone{}
	for range 5 {
		ph := h.newPhone()
		h.pair(agent, ph)
		pending[string(ph.key)] = ph
	}
	h.authorize(agent, member) // says nothing about the pending ones
	for len(pending) > 0 {
		old := agent
		agent = h.dialAgent()
		old.wantClosed(closeReplaced)
		got := map[string]bool{}
		for range pending {
			f := agent.want("ClientPaired")
			ph := pending[string(f.GetClientPaired().GetClientEd25519Pub())]
			if ph == nil || got[string(ph.key)] || f.GetClientPaired().GetPlatform() != ph.platform ||
				!bytes.Equal(f.GetClientPaired().GetClientX25519Pub(), ph.exchange) {
				agent.instead("ClientPaired for each pending client", f)
			}
			got[string(ph.key)] = true
		}
		agent.wantNothing()
		for key, ph := range pending {
			h.authorize(agent, member, ph)
			delete(pending, key)
			break
		}
	}
	agent = h.dialAgent()
	agent.wantNothing()
}

// AuthOk, then what is stored, oldest first, then new traffic: also what the
// sender sends the moment it sees the phone come, live or not.
func notesOrder(t *testing.T, r *relay) {
	h := r.home(t)
	agent := h.dialAgent()
	ph := h.phone(agent)
	for range 5 {
		ms := r.parcels(100)
		for _, m := range ms {
			agent.send(m.to(ph.key))
		}
		agent.wantNothing()
		p := ph.dialSeen(agent)
		for i := range 20 {
			m := r.parcel("new %d", i)
			m.live = i%2 == 0
			agent.send(m.to(ph.key))
			ms = append(ms, m)
		}
		p.wantMessages(h.agent, ms...)
		p.wantConfirmed()
		ph.leave(p, agent)
	}
}

func notesOrderAgent(t *testing.T, r *relay) {
	h, agent, ph, p := r.pairOnline(t)
	agent.close()
	p.wantOffline(h.agent)
	ms := r.parcels(100)
	for _, m := range ms {
		p.send(m.to(h.agent.key))
	}
	p.wantNothing()
	agent = h.dialAgent()
	p.wantOnline(h.agent)
	for i := range 20 {
		m := r.parcel("new %d", i)
		m.live = i%2 == 0
		p.send(m.to(h.agent.key))
		ms = append(ms, m)
	}
	agent.wantMessages(ph.identity, ms...)
	agent.wantNothing()
}

// PresenceRequest counts against the budget of messages, and messages against
// that of PresenceRequest.
func notesPresence(t *testing.T, r *relay) {
	h := r.home(t)
	agent := h.dialAgent()
	for range 3 {
		agent.send(framePresenceRequest())
	}
	for range 3 {
		agent.send(r.parcel("nowhere").to(randomBytes(32)))
	}
	_ = agent.post(framePresenceRequest())
	for range 3 {
		if f := agent.want("PresenceList"); f.GetPresenceList() == nil {
			agent.instead("PresenceList", f)
		}
	}
	for range 3 {
		agent.wantError("not_found")
	}
	agent.wantError("rate_limited")
}

// Text frames are bad_request before authentication and ignored after it.
func notesText(t *testing.T, r *relay) {
	for _, text := range []string{"", "hello", `{"auth":{}}`, "\x12\x00"} {
		p := r.stranger(t)
		p.sendText(text)
		p.wantRefusal("bad_request")
	}
	h, agent, ph, p := r.pairOnline(t)
	for _, text := range []string{"", "hello", `{"message":{}}`, "\x72\x00"} {
		agent.sendText(text)
		p.sendText(text)
	}
	agent.wantPresence(h.agent, ph.identity)
	p.wantPresence(h.agent, ph.identity)
}

// A frame that only the relay may send is ignored.
func notesRelayOnly(t *testing.T, r *relay) {
	h, agent, ph, p := r.pairOnline(t)
	frames := relayOnly(ph.identity)
	for _, name := range slices.Sorted(maps.Keys(frames)) {
		agent.send(frames[name])
		p.send(frames[name])
	}
	agent.wantPresence(h.agent, ph.identity)
	p.wantPresence(h.agent, ph.identity)
}

// A frame for the other role is bad_request, and the connection stays.
func notesOtherRole(t *testing.T, r *relay) {
	h, agent, ph, p := r.pairOnline(t)
	pending := h.newPhone()
	h.pair(agent, pending)
	token := h.openWindow(agent)
	for _, f := range []*skaldpb.RelayFrame{
		frameAuthorize(), frameAuthorize(pending.key), framePairingStart(h.newToken(), 300), framePairingStop(),
	} {
		p.send(f)
		p.wantError("bad_request")
		p.wantNothing()
	}
	// None of them had an effect.
	pending.try().wantRefusal("unauthorized")
	agent.wantPresence(h.agent, ph.identity)
	another := h.newPhone()
	another.dialPairing(token).wantAuthOk(h.ns)
	agent.wantClientPaired(another.identity)
}

// Messages are delivered with the live flag as it was sent.
func notesLiveFlag(t *testing.T, r *relay) {
	h, agent, ph, p := r.pairOnline(t)
	for _, live := range []bool{true, false, true, false} {
		m := r.parcel("live %v", live)
		m.live = live
		agent.send(m.to(ph.key))
		p.wantMessage(h.agent, m)
	}
	p.wantConfirmed()
	ph.leave(p, agent)
	m := r.parcel("stored")
	agent.send(m.to(ph.key))
	agent.wantNothing()
	ph.dialSeen(agent).wantMessage(h.agent, m) // with live unset
}

func notesHealthz(t *testing.T, r *relay) {
	if status := r.get(t, "/healthz"); status != http.StatusOK {
		t.Errorf("healthz answers %d", status)
	}
}
