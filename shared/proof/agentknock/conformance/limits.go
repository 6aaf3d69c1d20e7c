package conformance

import (
	"testing"
	"time"

	peer "blindpost/shared/client/agentknock"
)

// Relays with small limits.
var (
	fewNew    = Settings{ConnectionsPerIP: plenty, FramesPerMinute: plenty, NewExchanges: 5, OpenExchanges: plenty}
	fewOpen   = Settings{ConnectionsPerIP: plenty, FramesPerMinute: plenty, NewExchanges: plenty, OpenExchanges: 5}
	fewFrames = Settings{ConnectionsPerIP: plenty, FramesPerMinute: 40, NewExchanges: plenty, OpenExchanges: plenty}
)

// limits are those stories about limits that are no row of a table.
var limits = []story{
	{Name: "Limit_RateIsTheClientsOwn", Tell: limitOwn, Own: &fewNew},
	{Name: "Limit_CapacityIsTheClientsOwn", Tell: limitOwn, Own: &fewOpen},
}

// untilRefused publishes requests until one is refused, and returns those that were
// accepted, the refusal, and whose it is.
func (m *member) untilRefused(c *end) (accepted []*deal, refused *deal, refusal peer.Frame) {
	c.t.Helper()
	for range 30 {
		x := m.deal()
		c.send(x.message(peer.Request))
		f := c.next("ack or refusal")
		if keyOf(f) != keyOf(x.ack(peer.Request)) {
			return accepted, x, f
		}
		accepted = append(accepted, x)
	}
	c.t.Fatal("30 requests were accepted")
	return nil, nil, peer.Frame{}
}

func (e *end) wantLimit(x *deal, f peer.Frame, code string) {
	e.t.Helper()
	if f.Type != peer.Error || f.Code != code || !f.Retryable || f.RetryAfter <= 0 || f.RequestID != x.id || f.ClientID != x.m.ID {
		e.t.Fatalf("%s wants %s, and when to come back, gets %s", e.name, code, f)
	}
}

// New exchanges of a client per minute. What is open goes on, duplicates too.
func limitRate(t *testing.T, r *relay) {
	_, dv, m, c := r.couple(t)
	accepted, refused, refusal := m.untilRefused(c)
	c.wantLimit(refused, refusal, "RATE_LIMITED")
	if refusal.RetryAfter > 2*time.Minute {
		t.Errorf("it is to wait for %v", refusal.RetryAfter)
	}
	if n := len(accepted); n < 3 || n > 2*fewNew.NewExchanges { // the minute may be over
		t.Errorf("%d requests were accepted", n)
	}
	c.drop() // as it should
	c = m.dial()
	for _, x := range accepted {
		c.mayGet(x.receipt(peer.Request))
		x.publish(c) // a duplicate is nothing new
		dv.want(x.delivery(peer.Request))
	}
	for _, x := range accepted {
		dv.send(x.ack(peer.Request))
	}
	dv.settle()
	for _, x := range accepted {
		x.answer(dv)
		x.receive(c, dv)
		x.complete(c)
		dv.want(x.delivery(peer.Completion))
		dv.send(x.ack(peer.Completion))
		c.want(x.receipt(peer.Completion))
	}
	c.send(refused.resume())
	c.want(refused.inactive(""))
}

// What one client may not is not taken from another.
func limitOwn(t *testing.T, r *relay) {
	h := r.home(t)
	dv := h.open()
	m, other := h.pair(dv), h.pair(dv)
	c := m.dial()
	accepted, _, _ := m.untilRefused(c)
	for _, x := range accepted {
		dv.want(x.delivery(peer.Request))
	}
	other.deal().whole(other.dial(), dv)
}

// Exchanges that are open. When one is over, there is room.
func limitCapacity(t *testing.T, r *relay) {
	_, dv, m, c := r.couple(t)
	accepted, refused, refusal := m.untilRefused(c)
	c.wantLimit(refused, refusal, "CAPACITY_EXCEEDED")
	if n := len(accepted); n < 3 || n > 6 {
		t.Errorf("%d requests were accepted", n)
	}
	for _, x := range accepted {
		dv.want(x.delivery(peer.Request))
	}
	c.drop()
	c = m.dial()
	for _, x := range accepted {
		c.mayGet(x.receipt(peer.Request))
		x.publish(c)
		dv.send(x.ack(peer.Request))
	}
	dv.settle()
	first := accepted[0]
	first.complete(c)
	dv.want(first.delivery(peer.Completion))
	dv.send(first.ack(peer.Completion))
	c.want(first.receipt(peer.Completion))
	// The refused one may be tried again with its id: it was not its fault.
	refused.publish(c)
	refused.deliver(dv, c)
	again := m.deal()
	c.send(again.message(peer.Request))
	c.wantLimit(again, c.next("CAPACITY_EXCEEDED"), "CAPACITY_EXCEEDED")
}

// A flood of frames ends with 1013, or is answered with RATE_LIMITED.
func limitFrames(t *testing.T, r *relay) {
	_, dv, m, c := r.couple(t)
	for range 300 {
		if c.conn.Send(soon(t), m.deal().resume()) != nil {
			break
		}
	}
	for {
		f, err := c.frame()
		if err != nil {
			c.wantCode(err, 1013)
			break
		}
		if f.Type == peer.Inactive {
			continue
		}
		if f.Type != peer.Error || f.Code != "RATE_LIMITED" || !f.Retryable || f.RetryAfter <= 0 {
			t.Errorf("a flood is answered with %s", f)
		}
		break
	}
	m.deal().whole(m.dial(), dv)
}
