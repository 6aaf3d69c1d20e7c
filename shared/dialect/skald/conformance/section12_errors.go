package conformance

import (
	"testing"
	"time"

	"blindpost/shared/dialect/skald/skaldpb"
)

// One test for each row of the table, the shortest way to each error. The
// detours are in the sections. That every code is one of the table and that no
// text tells a secret is checked of every error that any peer gets
// ([relay.faultOf]).
var section12 = []story{
	{name: "Section12_challenge_timeout", own: &Settings{ChallengeTimeout: 500 * time.Millisecond},
		tell: func(t *testing.T, r *relay) { r.stranger(t).wantRefusal("challenge_timeout") }},
	{name: "Section12_invalid_signature", tell: func(t *testing.T, r *relay) {
		p := r.stranger(t)
		auth := newIdentity(r, "agent").authAgent()
		auth.Signature = randomBytes(64)
		p.send(frameAuth(auth))
		p.wantRefusal("invalid_signature")
	}},
	{name: "Section12_unauthorized", tell: func(t *testing.T, r *relay) {
		h := r.home(t)
		h.dialAgent()
		h.newPhone().try().wantRefusal("unauthorized")
	}},
	{name: "Section12_not_found", tell: func(t *testing.T, r *relay) {
		h := r.home(t)
		h.newPhone().try().wantRefusal("not_found")
		agent := h.dialAgent()
		agent.send(r.parcel("nowhere").to(randomBytes(32)))
		agent.wantError("not_found")
		agent.wantNothing() // not fatal
	}},
	{name: "Section12_pairing_closed", tell: func(t *testing.T, r *relay) {
		h := r.home(t)
		h.dialAgent()
		h.newPhone().dialPairing(h.newToken()).wantRefusal("pairing_closed")
	}},
	{name: "Section12_rate_limited", own: &Settings{MessagesPerMinute: 5, ConnectionsPerIP: plenty},
		tell: func(t *testing.T, r *relay) {
			agent := r.home(t).dialAgent()
			for range 5 {
				agent.wantNothing()
			}
			_ = agent.post(framePresenceRequest())
			agent.wantError("rate_limited")
		}},
	{name: "Section12_payload_too_large", needs: carries(maxFrame + 1), tell: func(t *testing.T, r *relay) {
		p := r.stranger(t)
		p.sendRaw(make([]byte, maxFrame+1))
		p.wantRefusal("payload_too_large")
	}},
	{name: "Section12_queue_full", own: &Settings{MailboxCap: 1}, tell: func(t *testing.T, r *relay) {
		h := r.home(t)
		agent := h.dialAgent()
		ph := h.phone(agent)
		m := r.parcel("first")
		agent.send(m.to(ph.key))
		agent.send(r.parcel("second").to(ph.key))
		agent.wantError("queue_full")
		agent.wantNothing() // not fatal
		ph.dialSeen(agent).wantMessage(h.agent, m)
	}},
	{name: "Section12_bad_request", tell: func(t *testing.T, r *relay) {
		p := r.stranger(t)
		p.send(frameAuth(&skaldpb.Auth{}))
		p.wantRefusal("bad_request")
	}},
}
