package conformance

import (
	"bytes"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"blindpost/shared/dialect/skald/skaldpb"
)

// properties are those of the design under "Delivery: what must hold", under
// load and in races. Property 1 is with the restarts, 7 in section 6.1 and in
// all error texts, 8 in sections 6.3 and 9.3.
var properties = []story{
	{Name: "Property2_OrderWhileTheAgentReconnects", Tell: propertyOrder(true), Alone: true},
	{Name: "Property2_OrderWhileAPhoneReconnects", Tell: propertyOrder(false), Alone: true},
	{Name: "Property3_CapIsExact", Tell: propertyCap},
	{Name: "Property4_ReplacementIsNoNews", Tell: propertyReplaced},
	{Name: "Property4_RaceOfConnections", Tell: propertyRace},
	{Name: "Property4_QuickReconnects", Tell: propertyQuick},
	{Name: "Property5_RevokedIsSilent", Tell: propertyRevoked},
	{Name: "Property6_TokenOpensOnce", Tell: propertyToken},
}

// Property 3: of 500 messages that 50 senders write at once into the mailbox of
// somebody who is away, exactly 200 are accepted, and these are delivered.
func propertyCap(t *testing.T, r *relay) {
	const senders, each = 50, 10
	h := r.home(t)
	agent := h.dialAgent()
	all := h.phones(agent, senders)
	var writing []*peer
	for _, ph := range all {
		writing = append(writing, ph.dial())
	}
	agent.close()
	for _, p := range writing {
		for { // the others' coming, and the agent's going
			if f := p.want("OFFLINE"); f.GetPresenceEvent().GetStatus() == skaldpb.Status_STATUS_OFFLINE {
				break
			}
		}
	}
	accepted := make([][]parcel, senders)
	var wg sync.WaitGroup
	for i, p := range writing {
		wg.Go(func() {
			for n := range each {
				m := r.parcel("message %d", n)
				if err := p.post(m.to(h.agent.key)); err != nil {
					t.Errorf("failed to send: %v", err)
					return
				}
				refused, err := p.verdict()
				if err != nil {
					t.Errorf("failed to hear: %v", err)
					return
				}
				if !refused {
					accepted[i] = append(accepted[i], m)
				}
			}
		})
	}
	wg.Wait()
	total := 0
	for _, ms := range accepted {
		total += len(ms)
	}
	if total != mailboxCap {
		t.Errorf("%d messages were accepted", total)
	}
	agent = h.dialAgent()
	for range total {
		m := agent.want("a message").GetMessage()
		i := slices.IndexFunc(all, func(ph *phone) bool { return bytes.Equal(ph.key, m.GetPeer()) })
		if i < 0 || len(accepted[i]) == 0 || !bytes.Equal(accepted[i][0].ciphertext, m.GetCiphertext()) {
			t.Fatalf("%q is not what its sender wrote next", labelOf(m.GetCiphertext()))
		}
		accepted[i] = accepted[i][1:]
	}
	agent.wantNothing()
}

// Property 4: a member that connects again and again without leaving is online
// all the time.
func propertyReplaced(t *testing.T, r *relay) {
	h, agent, ph, p := r.pairOnline(t)
	watcher := h.newPhone()
	h.pair(agent, watcher)
	h.authorize(agent, ph, watcher)
	w := watcher.dialSeen(agent, p)
	for range 50 {
		old := p
		p = ph.dial()
		old.wantClosed(closeReplaced)
	}
	for range 50 {
		old := agent
		agent = h.dialAgent()
		old.wantClosed(closeReplaced)
	}
	w.wantPresence(h.agent, ph.identity, watcher.identity)
	p.wantNothing()
	ph.leave(p, w, agent) // and now it goes, once
	w.wantPresence(h.agent, watcher.identity)
	agent.wantNothing()
}

// Property 4: many connections of one member at once. One of them remains, it
// is the one that gets the messages, and the others saw one coming.
func propertyRace(t *testing.T, r *relay) {
	const racers = 8
	h := r.home(t)
	agent := h.dialAgent()
	ph := h.phone(agent)
	for range 10 {
		var mu sync.Mutex
		var racing []*peer
		var wg sync.WaitGroup
		for range racers {
			wg.Go(func() {
				p, _, err := r.call(t, ph.name, line{})
				if err != nil {
					t.Error(err)
					return
				}
				f, err := p.frame()
				if err != nil {
					t.Error(err)
					return
				}
				auth := ph.authClient(h.ns)
				auth.Signature = ph.sign(f.GetChallenge().GetNonce())
				if err := p.post(frameAuth(auth)); err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				defer mu.Unlock()
				racing = append(racing, p)
			})
		}
		wg.Wait()
		agent.wantOnline(ph.identity)
		var winner *peer
		eventually(t, "one of the connections to remain", func() bool {
			open := 0
			for _, p := range racing {
				if !p.ended() {
					open++
					winner = p
				}
			}
			return open == 1
		})
		m := r.parcel("who is it")
		agent.send(m.to(ph.key))
		winner.wantAuthOk(h.ns)
		winner.wantMessage(h.agent, m)
		winner.wantConfirmed()
		agent.wantPresence(h.agent, ph.identity)
		ph.leave(winner, agent)
	}
	agent.wantNothing()
}

// ended reports whether the connection is over, read or not.
func (p *peer) ended() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.inbox) > 0 && p.inbox[len(p.inbox)-1].end != nil
}

// Property 4: a member that drops its connection and dials at the same moment.
// Those who watch hear of changes only, in turns, and the last word is true.
func propertyQuick(t *testing.T, r *relay) {
	h, agent, ph, p := r.pairOnline(t)
	watcher := h.newPhone()
	h.pair(agent, watcher)
	h.authorize(agent, ph, watcher)
	w := watcher.dialSeen(agent, p)
	for i := range 60 {
		old := p
		if i%2 == 0 {
			go old.drop()
			p = ph.dial()
		} else {
			old.drop()
			p = ph.dial()
		}
	}
	// The last connection stays. Give the clean-up of the old ones time to do
	// wrong: it may come late, but the state may not change by it.
	for _, watching := range []*peer{w, agent} {
		online := true
		for until := time.Now().Add(300 * time.Millisecond); time.Now().Before(until); {
			e, err := watching.next(50 * time.Millisecond)
			if err != nil {
				continue
			}
			event := e.frame.GetPresenceEvent()
			if !bytes.Equal(event.GetPubkey(), ph.key) {
				watching.instead("news of "+ph.name, e.frame)
			}
			if now := event.GetStatus() == skaldpb.Status_STATUS_ONLINE; now == online {
				t.Errorf("%s hears twice that online=%v", watching.name, now)
			}
			online = !online
		}
		if !online {
			t.Errorf("%s believes that %s is offline", watching.name, ph.name)
		}
		watching.wantPresence(h.agent, ph.identity, watcher.identity)
	}
	m := r.parcel("still there")
	agent.send(m.to(ph.key))
	p.wantMessage(h.agent, m)
}

// Property 5: what is sent after AuthorizeOk does not reach a revoked client,
// though many are writing to it at that moment.
func propertyRevoked(t *testing.T, r *relay) {
	for range 5 {
		h := r.home(t)
		agent := h.dialAgent()
		all := h.phones(agent, 4)
		victim, others := all[0], all[1:]
		var writing []*peer
		for _, ph := range others {
			writing = append(writing, ph.dial())
		}
		p := victim.dial()
		var wg sync.WaitGroup
		revoked := make(chan struct{})
		for _, q := range writing {
			wg.Go(func() {
				for n, after := 0, 0; after < 5; n++ {
					label := "before"
					select {
					case <-revoked:
						label = "after"
						after++
					default:
					}
					m := r.parcel("%s", label)
					m.live = n%2 == 0
					if err := q.post(m.to(victim.key)); err != nil {
						t.Errorf("failed to send: %v", err)
						return
					}
					if err := q.wantOutcome(label); err != nil {
						t.Errorf("a message %s revocation: %v", label, err)
						return
					}
				}
			})
		}
		p.want("something") // the flood has begun
		agent.send(frameAuthorize(keysOf(others)...))
		for {
			f := agent.want("AuthorizeOk")
			if f.GetAuthorizeOk() != nil {
				break
			}
			if f.GetPresenceEvent() == nil {
				agent.instead("AuthorizeOk", f)
			}
		}
		close(revoked)
		wg.Wait()
		for {
			e, err := p.next(patience)
			if err != nil {
				t.Fatal("the revoked client is still connected")
			}
			if e.end != nil {
				break
			}
			if label := labelOf(e.frame.GetMessage().GetCiphertext()); e.frame.GetMessage() != nil && label[:5] == "after" {
				t.Error("a message reached a client that was revoked before")
			}
		}
		// Paired again, it finds nothing.
		victim.try().wantRefusal("unauthorized")
		agent.skipPresence()
		h.pair(agent, victim)
		h.authorize(agent, append(others, victim)...)
		victim.dial().wantNothing()
	}
}

// wantOutcome is a barrier that knows what may come of a message to somebody
// who is about to be revoked, or who is.
func (p *peer) wantOutcome(when string) error {
	if err := p.post(framePresenceRequest()); err != nil {
		return err
	}
	refused := false
	for {
		f, err := p.frame()
		switch {
		case err != nil:
			return err
		case f.GetPresenceList() != nil:
			if when == "after" && !refused {
				return errors.New("was accepted")
			}
			return nil
		case f.GetError().GetCode() == "not_found":
			refused = true
		}
	}
}

// skipPresence takes the news that have come so far.
func (p *peer) skipPresence() {
	p.t.Helper()
	p.send(framePresenceRequest())
	for {
		f := p.want("PresenceList")
		if f.GetPresenceList() != nil {
			return
		}
		if f.GetPresenceEvent() == nil {
			p.instead("news of presence", f)
		}
	}
}

// Property 6: two phones with one token. One of them gets in.
func propertyToken(t *testing.T, r *relay) {
	h := r.home(t)
	agent := h.dialAgent()
	for range 40 {
		token := h.openWindow(agent)
		phones := []*phone{h.newPhone(), h.newPhone()}
		peers := []*peer{r.stranger(t), r.stranger(t)}
		var wg sync.WaitGroup
		for i, ph := range phones {
			auth := ph.authPairing(h.ns, token)
			auth.Signature = ph.sign(peers[i].nonce)
			wg.Go(func() { _ = peers[i].post(frameAuth(auth)) })
		}
		wg.Wait()
		winner := -1
		for i, p := range peers {
			switch f := p.want("AuthOk or AuthError"); {
			case f.GetAuthOk() != nil && winner < 0:
				winner = i
			case f.GetAuthOk() != nil:
				t.Fatal("both phones got in")
			case f.GetAuthError().GetCode() != "pairing_closed":
				p.instead("pairing_closed", f)
			}
		}
		if winner < 0 {
			t.Fatal("neither phone got in")
		}
		agent.wantClientPaired(phones[winner].identity)
		agent.wantNothing()
		phones[1-winner].try().wantRefusal("unauthorized")
		// The loser is unknown, the winner can be authorised.
		agent.send(frameAuthorize(phones[0].key, phones[1].key))
		agent.wantAuthorizeOk(1)
	}
}
