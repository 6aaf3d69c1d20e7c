package conformance

import (
	"testing"
	"time"
)

var section6Mailbox = []story{
	{Name: "Section6_3_StoredForClientInOrder", Tell: section63Client},
	{Name: "Section6_3_StoredForAgentInOrder", Tell: section63Agent},
	{Name: "Section6_3_OneQueueForAllSenders", Tell: section63Senders},
	{Name: "Section6_3_DeliveredIsDeleted", Tell: section63Deleted},
	{Name: "Section6_3_UnconfirmedComesAgain", Tell: section63Unconfirmed, Needs: delivery},
	{Name: "Section6_3_SleepingAndWaking", Tell: section63Again},
	{Name: "Section6_3_QueueTTL", Tell: section63TTL,
		Own: &Settings{MessagesPerMinute: plenty, ConnectionsPerIP: plenty, QueueTTL: time.Second}},
	{Name: "Section6_3_EachHasItsOwnQueue", Tell: section63Own},
}

func section63Client(t *testing.T, r *relay) {
	h := r.home(t)
	agent := h.dialAgent()
	ph := h.phone(agent)
	ms := r.parcels(50)
	for _, m := range ms {
		agent.send(m.to(ph.key))
	}
	agent.wantNothing() // accepted without a word
	p := ph.dialSeen(agent)
	p.wantMessages(h.agent, ms...)
	p.wantNothing()
}

// The agent has a mailbox as well.
func section63Agent(t *testing.T, r *relay) {
	h, agent, ph, p := r.pairOnline(t)
	agent.close()
	p.wantOffline(h.agent)
	ms := r.parcels(50)
	for _, m := range ms {
		p.send(m.to(h.agent.key))
	}
	p.wantNothing()
	agent = h.dialAgent()
	agent.wantMessages(ph.identity, ms...)
	agent.wantNothing()
	p.wantOnline(h.agent)
}

// The queue is one per recipient and FIFO, whoever the senders are.
func section63Senders(t *testing.T, r *relay) {
	h := r.home(t)
	agent := h.dialAgent()
	all := h.phones(agent, 3)
	a := all[0].dialSeen(agent)
	b := all[1].dialSeen(agent, a)
	senders := []*peer{agent, a, b}
	ids := []*identity{h.agent, all[0].identity, all[1].identity}
	ms := r.parcels(30)
	for i, m := range ms {
		senders[i%3].send(m.to(all[2].key))
		senders[i%3].wantNothing() // so that the next one is sent after it
	}
	p := all[2].dialSeen(senders...)
	for i, m := range ms {
		p.wantMessage(ids[i%3], m)
	}
	p.wantNothing()
}

// What was delivered does not come a second time.
func section63Deleted(t *testing.T, r *relay) {
	h := r.home(t)
	agent := h.dialAgent()
	ph := h.phone(agent)
	ms := r.parcels(5)
	for _, m := range ms[:3] {
		agent.send(m.to(ph.key))
	}
	p := ph.dialSeen(agent)
	p.wantMessages(h.agent, ms[:3]...) // from the queue
	for _, m := range ms[3:] {
		agent.send(m.to(ph.key))
	}
	p.wantMessages(h.agent, ms[3:]...) // straight
	p.wantConfirmed()
	p.drop()
	ph.dial().wantNothing()
}

// On a front that knows: a message counts as delivered when the peer has
// answered a ping sent after it. What it only may have got comes again.
func section63Unconfirmed(t *testing.T, r *relay) {
	h := r.home(t)
	agent := h.dialAgent()
	ph := h.phone(agent)
	queued, straight := r.parcels(3), r.parcels(3)
	for _, m := range queued {
		agent.send(m.to(ph.key))
	}
	agent.wantNothing()
	p := ph.dial(line{deaf: true})
	agent.wantOnline(ph.identity)
	p.wantMessages(h.agent, queued...)
	for _, m := range straight {
		agent.send(m.to(ph.key))
	}
	p.wantMessages(h.agent, straight...)
	p.wantNothing() // frames are no pong
	p.drop()

	p = ph.dial()
	p.wantMessages(h.agent, queued...)
	p.wantMessages(h.agent, straight...)
	p.wantConfirmed()
	p.drop()
	ph.dial().wantNothing()
}

// A phone that comes and goes gets each message once and all in order.
func section63Again(t *testing.T, r *relay) {
	h := r.home(t)
	agent := h.dialAgent()
	ph := h.phone(agent)
	for round := range 10 {
		asleep, awake := r.parcels(round), r.parcels(3)
		for _, m := range asleep {
			agent.send(m.to(ph.key))
		}
		agent.wantNothing()
		p := ph.dialSeen(agent)
		p.wantMessages(h.agent, asleep...)
		for _, m := range awake {
			agent.send(m.to(ph.key))
		}
		p.wantMessages(h.agent, awake...)
		p.wantConfirmed()
		ph.leave(p, agent)
	}
}

// Beyond the TTL a message is dropped silently, and the ones after it are not.
func section63TTL(t *testing.T, r *relay) {
	h := r.home(t)
	agent := h.dialAgent()
	ph := h.phone(agent)
	for _, m := range r.parcels(3) {
		agent.send(m.to(ph.key))
	}
	agent.wantNothing()
	time.Sleep(time.Second + grain)
	fresh := r.parcels(3)
	for _, m := range fresh {
		agent.send(m.to(ph.key))
	}
	agent.wantNothing()
	p := ph.dialSeen(agent)
	p.wantMessages(h.agent, fresh...)
	p.wantNothing()
}

// Queues of several recipients do not mix.
func section63Own(t *testing.T, r *relay) {
	h := r.home(t)
	agent := h.dialAgent()
	all := h.phones(agent, 3)
	ms := r.parcels(30)
	for i, m := range ms {
		agent.send(m.to(all[i%3].key))
	}
	agent.wantNothing()
	var online []*peer
	for i, ph := range all {
		p := ph.dialSeen(append(online, agent)...)
		for j := i; j < len(ms); j += 3 {
			p.wantMessage(h.agent, ms[j])
		}
		p.wantNothing()
		online = append(online, p)
	}
}
