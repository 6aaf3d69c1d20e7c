package conformance

import "testing"

var section6Live = []story{
	{Name: "Section6_4_LiveIsRoutedToWhoIsThere", Tell: section64Routed},
	{Name: "Section6_4_LiveFailsForWhoIsNot", Tell: section64Offline},
	{Name: "Section6_4_LiveIsNeverQueued", Tell: section64NotQueued},
	{Name: "Section6_4_LiveIgnoresAFullQueue", Tell: section64FullQueue},
	{Name: "Section6_5_PullAndNotification", Tell: section65},
}

func section64Routed(t *testing.T, r *relay) {
	h, agent, ph, p := r.pairOnline(t)
	for i := range 20 {
		down, up := r.liveParcel("down %d", i), r.liveParcel("up %d", i)
		agent.send(down.to(ph.key))
		p.wantMessage(h.agent, down)
		p.send(up.to(h.agent.key))
		agent.wantMessage(ph.identity, up)
	}
}

// PeerOffline names the recipient, once for each message.
func section64Offline(t *testing.T, r *relay) {
	h := r.home(t)
	agent := h.dialAgent()
	all := h.phones(agent, 2)
	away, ph := all[0], all[1]
	agent.send(r.liveParcel("never connected").to(away.key))
	agent.wantPeerOffline(away.identity)
	for i := range 3 {
		agent.send(r.liveParcel("message %d", i).to(away.key))
	}
	for range 3 {
		agent.wantPeerOffline(away.identity)
	}
	// The agent may be away as well.
	p := ph.dialSeen(agent)
	agent.close()
	p.wantOffline(h.agent)
	p.send(r.liveParcel("to the agent").to(h.agent.key))
	p.wantPeerOffline(h.agent)
	p.wantNothing()
}

func section64NotQueued(t *testing.T, r *relay) {
	h := r.home(t)
	agent := h.dialAgent()
	ph := h.phone(agent)
	stored := r.parcel("stored")
	agent.send(r.liveParcel("before").to(ph.key))
	agent.wantPeerOffline(ph.identity)
	agent.send(stored.to(ph.key))
	agent.send(r.liveParcel("after").to(ph.key))
	agent.wantPeerOffline(ph.identity)
	p := ph.dialSeen(agent)
	p.wantMessage(h.agent, stored)
	p.wantNothing()
}

// The queue of somebody who is away does not concern the live channel, nor is
// its cap used up by live messages.
func section64FullQueue(t *testing.T, r *relay) {
	h := r.home(t)
	agent := h.dialAgent()
	ph := h.phone(agent)
	for range 20 {
		agent.send(r.liveParcel("no").to(ph.key))
		agent.wantPeerOffline(ph.identity)
	}
	ms := r.parcels(200)
	for _, m := range ms {
		agent.send(m.to(ph.key))
	}
	agent.wantNothing()
	agent.send(r.parcel("one too many").to(ph.key))
	agent.wantError("queue_full")
	agent.send(r.liveParcel("no").to(ph.key))
	agent.wantPeerOffline(ph.identity)
	p := ph.dialSeen(agent)
	live := r.liveParcel("yes")
	agent.send(live.to(ph.key))
	p.wantMessages(h.agent, ms...)
	p.wantMessage(h.agent, live)
	p.wantNothing()
}

// The table of section 6.5 as one story: a phone wakes up, gets what waited for
// it, pulls the state, and later hears of something new.
func section65(t *testing.T, r *relay) {
	h := r.home(t)
	agent := h.dialAgent()
	ph := h.phone(agent)
	approval := r.parcel("approval")
	agent.send(approval.to(ph.key))
	agent.wantNothing()

	p := ph.dialSeen(agent)
	p.wantMessage(h.agent, approval)
	pull := r.liveParcel("inbox_request")
	p.send(pull.to(h.agent.key))
	agent.wantMessage(ph.identity, pull)
	state := r.liveParcel("inbox_update")
	agent.send(state.to(ph.key))
	p.wantMessage(h.agent, state)

	agent.close()
	p.wantOffline(h.agent)
	p.send(pull.to(h.agent.key))
	p.wantPeerOffline(h.agent)
	agent = h.dialAgent()
	p.wantOnline(h.agent) // try again on the next ONLINE
	p.send(pull.to(h.agent.key))
	agent.wantMessage(ph.identity, pull)
}
