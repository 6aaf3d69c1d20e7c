package conformance

import (
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coder/websocket"
)

var restarts = []story{
	{Name: "Restart_StateIsKept", Tell: restartState, Own: &roomy, Needs: restart},
	{Name: "Property1_KillWhileTheRecipientIsAway", Tell: killAway, Own: &roomy, Needs: kill},
	{Name: "Property1_KillWhileTheRecipientReads", Tell: killReading, Own: &roomy, Needs: kill},
	{Name: "Property1_KillDuringPairing", Tell: killPairing, Own: &roomy, Needs: kill},
}

// A restart forgets nothing: the list, who is pending, the open window, the
// mailboxes. It is not news either: everybody is offline, and comes back.
func restartState(t *testing.T, r *relay) {
	h, agent, ph, p := r.pairOnline(t)
	away, pending := h.newPhone(), h.newPhone()
	h.pair(agent, away)
	h.authorize(agent, ph, away)
	h.pair(agent, pending)
	token := h.openWindow(agent)
	ms := r.parcels(10)
	for _, m := range ms {
		agent.send(m.to(away.key))
	}
	agent.wantNothing()
	r.Restart(t)
	agent.wantClosed(websocket.StatusGoingAway) // come back
	p.wantClosed(websocket.StatusGoingAway)

	agent = h.dialAgent()
	agent.wantClientPaired(pending.identity)
	agent.wantPresence(h.agent)
	p = ph.dialSeen(agent)
	q := away.dialSeen(agent, p)
	q.wantMessages(h.agent, ms...)
	q.wantConfirmed()
	pending.try().wantRefusal("unauthorized")
	late := h.newPhone()
	late.dialPairing(token).wantAuthOk(h.ns)
	agent.wantClientPaired(late.identity)

	r.Restart(t)
	away.dial().wantNothing() // it has had them
}

// Property 1: kill -9 in the middle of a burst into the mailbox of somebody who
// is away. Each message that was followed by the answer to a PresenceRequest is
// there afterwards, in order.
func killAway(t *testing.T, r *relay) {
	h := r.home(t)
	agent := h.dialAgent()
	all := h.phones(agent, 5)
	agent.drop()
	for range 3 {
		book := newLedger()
		for _, ph := range all {
			book.expect(ph.identity)
		}
		stored := burstAndKill(t, r, all, h.agent)
		agent = h.dialAgent(line{watch: book.connection(1)})
		book.wantStored(t, stored)
		agent.settle()
		agent.drop()
	}
}

// Property 1: the same while the recipient is connected and reads. What it has
// read before the kill counts as well; what it has not read comes again.
func killReading(t *testing.T, r *relay) {
	h := r.home(t)
	agent := h.dialAgent()
	all := h.phones(agent, 5)
	agent.drop()
	for range 3 {
		book := newLedger()
		for _, ph := range all {
			book.expect(ph.identity)
		}
		agent = h.dialAgent(line{watch: book.connection(1)})
		stored := burstAndKill(t, r, all, h.agent)
		book.abandon(agent)
		agent = h.dialAgent(line{watch: book.connection(2)})
		book.wantStored(t, stored)
		agent.settle()
		agent.drop()
	}
}

// settle waits until the relay knows that this peer has everything. It is
// [peer.wantConfirmed] for a peer that is watched and not asked.
func (p *peer) settle() {
	p.t.Helper()
	for {
		frames, err := p.verdictLoose()
		if err != nil {
			p.t.Fatalf("%s: %v", p.name, err)
		}
		p.mu.Lock()
		confirmed := !p.owed || !p.r.KnowsDelivery
		p.mu.Unlock()
		if frames == 0 && confirmed {
			break
		}
		time.Sleep(time.Millisecond)
	}
	if _, err := p.verdictLoose(); err != nil {
		p.t.Fatalf("%s: %v", p.name, err)
	}
}

// burstAndKill makes the senders flood the recipient, kills the relay under
// them, and returns what each was told is stored.
func burstAndKill(t *testing.T, r *relay, senders []*phone, to *identity) map[*identity][]int {
	t.Helper()
	stop := make(chan struct{}) // never: the kill ends it
	var accepted atomic.Int64
	enough := int64(20 + rand.IntN(80)) // somewhere in it
	stored := make(map[*identity][]int)
	var mu sync.Mutex
	var wg sync.WaitGroup
	for i, ph := range senders {
		p := ph.dial()
		chance := rand.New(rand.NewPCG(1, uint64(i)))
		wg.Go(func() {
			numbers, _ := flood(p, to, stop, chance, &accepted) // ends with the connection
			mu.Lock()
			defer mu.Unlock()
			stored[ph.identity] = numbers
		})
	}
	eventually(t, "a burst", func() bool { return accepted.Load() >= enough })
	r.Kill(t)
	wg.Wait()
	total := 0
	for _, numbers := range stored {
		total += len(numbers)
	}
	t.Logf("%d messages were confirmed as stored before the kill", total)
	return stored
}

// wantStored waits for all of them and fails the test for what the ledger
// found.
func (l *ledger) wantStored(t *testing.T, stored map[*identity][]int) {
	t.Helper()
	deadline := time.Now().Add(patience / 2)
	for id, numbers := range stored {
		for _, n := range numbers {
			for !l.has(id, n) && time.Now().Before(deadline) {
				time.Sleep(time.Millisecond)
			}
			if !l.has(id, n) {
				t.Errorf("%s: message %d was stored and is lost", id, n)
			}
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, fault := range l.faults {
		t.Error(fault)
	}
}

// A token that let somebody in stays consumed, whatever happens next; an
// AuthorizeOk that was sent holds.
func killPairing(t *testing.T, r *relay) {
	h := r.home(t)
	agent := h.dialAgent()
	ph, pending := h.newPhone(), h.newPhone()
	h.pair(agent, ph)
	h.authorize(agent, ph)
	token := h.openWindow(agent)
	pending.dialPairing(token).wantAuthOk(h.ns)
	r.Kill(t)

	h.newPhone().dialPairing(token).wantRefusal("pairing_closed")
	ph.dial()
	pending.try().wantRefusal("unauthorized")
	agent = h.dialAgent()
	agent.wantClientPaired(pending.identity)
	agent.wantPresence(h.agent, ph.identity)
	h.authorize(agent, pending) // revokes the first
	r.Kill(t)
	ph.try().wantRefusal("unauthorized")
	pending.dial()
}
