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
	{Name: "Section12_challenge_timeout", Own: &Settings{ChallengeTimeout: 500 * time.Millisecond},
		Tell: func(t *testing.T, r *relay) { r.stranger(t).wantRefusal("challenge_timeout") }},
	{Name: "Section12_invalid_signature", Tell: func(t *testing.T, r *relay) {
		p := r.stranger(t)
		auth := newIdentity(r, "agent").authAgent()
		auth.Signature = randomBytes(64)
		p.send(frameAuth(auth))
		p.wantRefusal("invalid_signature")
	}},
	{Name: "Section12_unauthorized", Tell: func(t *testing.T, r *relay) {
		h := r.home(t)
		h.dialAgent()
		h.newPhone().try().wantRefusal("unauthorized")
	}},
	{Name: "Section12_not_found", Tell: func(t *testing.T, r *relay) {
		h := r.home(t)
		h.newPhone().try().wantRefusal("not_found")
		agent := h.dialAgent()
		agent.send(r.parcel("nowhere").to(randomBytes(32)))
		agent.wantError("not_found")
		agent.wantNothing() // not fatal
	}},
	{Name: "Section12_pairing_closed", Tell: func(t *testing.T, r *relay) {
		h := r.home(t)
		h.dialAgent()
		h.newPhone().dialPairing(h.newToken()).wantRefusal("pairing_closed")
	}},
	{Name: "Section12_rate_limited", Own: &Settings{MessagesPerMinute: 5, ConnectionsPerIP: plenty},
		Tell: func(t *testing.T, r *relay) {
			agent := r.home(t).dialAgent()
			for range 5 {
				agent.wantNothing()
			}
			_ = agent.post(framePresenceRequest())
			agent.wantError("rate_limited")
		}},
	{Name: "Section12_payload_too_large", Needs: carries(maxFrame + 1), Tell: func(t *testing.T, r *relay) {
		p := r.stranger(t)
		p.sendRaw(make([]byte, maxFrame+1))
		p.wantRefusal("payload_too_large")
	}},
	{Name: "Section12_queue_full", Own: &Settings{MailboxCap: 1}, Tell: func(t *testing.T, r *relay) {
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
	{Name: "Section12_bad_request", Tell: func(t *testing.T, r *relay) {
		p := r.stranger(t)
		p.send(frameAuth(&skaldpb.Auth{}))
		p.wantRefusal("bad_request")
	}},
}
