package conformance

import (
	"testing"

	peer "blindpost/shared/client/agentknock"
)

// clientStates are the rows of "State frame": each value of an exchange, each value
// of a message, and each combination that can be brought about from outside. What
// deadlines bring about is told on fake time elsewhere.
var clientStates = []story{
	{Name: "ClientState_Open", Tell: stateOpen},
	{Name: "ClientState_Closing", Tell: stateClosing},
	{Name: "ClientState_Settled", Tell: stateSettled},
	{Name: "ClientState_Expired", Tell: stateExpired},
	{Name: "ClientState_ResponseFollows", Tell: stateResponse},
	{Name: "ClientState_Inactive", Tell: stateInactive},
}

// wantState asks for a snapshot and wants it.
func (e *end) wantState(x *deal, exchange, request, response, completion string) {
	e.t.Helper()
	e.send(x.resume())
	e.want(x.state(exchange, request, response, completion))
}

func stateOpen(t *testing.T, r *relay) {
	h, m, c, x := r.waiting(t)
	c.wantState(x, "open", "accepted", "absent", "absent")
	dv := h.open(x.delivery(peer.Request))
	dv.wantState(x, "open", "accepted", "absent", "absent")
	dv.send(x.ack(peer.Request))
	c.want(x.receipt(peer.Request))
	c.wantState(x, "open", "delivered", "absent", "absent")
	dv.wantState(x, "open", "delivered", "absent", "absent")
	c.drop()
	x.answer(dv)
	dv.wantState(x, "open", "delivered", "accepted", "absent")
	c = m.dial()
	c.wantState(x, "open", "delivered", "accepted", "absent")
	x.receive(c, dv)
	c.wantState(x, "open", "delivered", "delivered", "absent")
	dv.wantState(x, "open", "delivered", "delivered", "absent")
}

func stateClosing(t *testing.T, r *relay) {
	h, dv, m, c := r.couple(t)

	answered := m.deal() // del, del, acc
	answered.publish(c)
	answered.deliver(dv, c)
	answered.answer(dv)
	answered.receive(c, dv)
	discarded := m.deal() // del, disc, acc
	discarded.publish(c)
	discarded.deliver(dv, c)
	aborted := m.deal() // del, abs, acc
	aborted.publish(c)
	aborted.deliver(dv, c)
	c.drop()
	discarded.answer(dv)
	dv.close()
	c = m.dial()
	unseen := m.deal() // acc, abs, acc
	unseen.publish(c)
	for _, x := range []*deal{answered, discarded, aborted, unseen} {
		x.complete(c)
	}
	c.wantState(answered, "closing", "delivered", "delivered", "accepted")
	c.wantState(discarded, "closing", "delivered", "discarded", "accepted")
	c.wantState(aborted, "closing", "delivered", "absent", "accepted")
	c.wantState(unseen, "closing", "accepted", "absent", "accepted")
	dv = h.open(answered.delivery(peer.Completion), discarded.delivery(peer.Completion), aborted.delivery(peer.Completion),
		unseen.delivery(peer.Request), unseen.delivery(peer.Completion))
	dv.wantState(answered, "closing", "delivered", "delivered", "accepted")
}

func stateSettled(t *testing.T, r *relay) {
	h, dv, m, c := r.couple(t)
	answered := m.deal()
	answered.whole(c, dv)
	c.wantState(answered, "settled", "delivered", "delivered", "delivered")
	dv.wantState(answered, "settled", "delivered", "delivered", "delivered")
	aborted := m.deal()
	aborted.publish(c)
	aborted.deliver(dv, c)
	aborted.complete(c)
	aborted.finish(dv, c)
	c.wantState(aborted, "settled", "delivered", "absent", "delivered")
	discarded := m.deal()
	discarded.publish(c)
	discarded.deliver(dv, c)
	c.drop()
	discarded.answer(dv)
	c = m.dial()
	discarded.complete(c)
	dv.mayGet(discarded.inactive(peer.Response))
	discarded.finish(dv, c)
	c.wantState(discarded, "settled", "delivered", "discarded", "delivered")
	// A completion that reaches the device says that it had the request.
	dv.close()
	c.close()
	c = m.dial()
	silent := m.deal()
	silent.publish(c)
	silent.complete(c)
	dv = h.open(silent.delivery(peer.Request), silent.delivery(peer.Completion))
	dv.send(silent.ack(peer.Request), silent.ack(peer.Completion))
	c.want(silent.receipt(peer.Request), silent.receipt(peer.Completion))
	c.wantState(silent, "settled", "delivered", "absent", "delivered")
}

// Revoking a client ends its exchanges: expired, or no more state at all.
func stateExpired(t *testing.T, r *relay) {
	h, dv, m, c := r.couple(t)
	delivered := m.deal() // delivered, absent
	delivered.publish(c)
	delivered.deliver(dv, c)
	answered := m.deal() // delivered, delivered
	answered.publish(c)
	answered.deliver(dv, c)
	answered.answer(dv)
	answered.receive(c, dv)
	waiting := m.deal() // delivered, discarded
	waiting.publish(c)
	waiting.deliver(dv, c)
	c.drop()
	waiting.answer(dv)
	dv.close()
	c = m.dial()
	unseen := m.deal() // discarded, absent
	unseen.publish(c)
	closing := m.deal() // discarded, absent, discarded
	closing.publish(c)
	closing.complete(c)

	dv = h.open(unseen.delivery(peer.Request), closing.delivery(peer.Request), closing.delivery(peer.Completion))
	dv.mayGet(waiting.inactive(peer.Response), waiting.inactive(""), unseen.inactive(""), unseen.inactive(peer.Request),
		closing.inactive(""), closing.inactive(peer.Request), closing.inactive(peer.Completion), delivered.inactive(""), answered.inactive(""))
	m.set(dv, "revoked")
	c.wantEnd(4003)
	for x, want := range map[*deal]peer.Snapshot{
		delivered: {Exchange: "expired", Request: "delivered", Response: "absent", Completion: "absent"},
		answered:  {Exchange: "expired", Request: "delivered", Response: "delivered", Completion: "absent"},
		waiting:   {Exchange: "expired", Request: "delivered", Response: "discarded", Completion: "absent"},
		unseen:    {Exchange: "expired", Request: "discarded", Response: "absent", Completion: "absent"},
		closing:   {Exchange: "expired", Request: "discarded", Response: "absent", Completion: "discarded"},
	} {
		dv.may = nil
		dv.send(x.resume())
		f := dv.next("state or inactive")
		if keyOf(f) != keyOf(x.inactive("")) && (f.Type != peer.State || f.Snapshot != want) {
			t.Errorf("the state of a revoked client's exchange is %s, not %+v", f, want)
		}
	}
	h.open() // what waited for the device is no more
}

// After the snapshot the relay sends the response that waits, each time.
func stateResponse(t *testing.T, r *relay) {
	_, dv, m, c := r.couple(t)
	x := m.deal()
	x.publish(c)
	x.deliver(dv, c)
	c.drop()
	x.answer(dv)
	for range 3 {
		c = m.dial()
		c.settle() // a connection gets nothing of what it has not resumed
		c.wantState(x, "open", "delivered", "accepted", "absent")
		c.want(x.delivery(peer.Response))
		c.seeAgain()
		c.wantState(x, "open", "delivered", "accepted", "absent")
		c.want(x.delivery(peer.Response))
		c.drop()
	}
	c = m.dial()
	c.wantState(x, "open", "delivered", "accepted", "absent")
	x.receive(c, dv)
	c.wantState(x, "open", "delivered", "delivered", "absent")
	c.settle()
}

func stateInactive(t *testing.T, r *relay) {
	h, dv, m, c := r.couple(t)
	for range 3 {
		x := m.deal()
		c.send(x.resume())
		c.want(x.inactive(""))
		dv.send(x.resume())
		dv.want(x.inactive(""))
	}
	// The other side of an exchange is not this client's.
	other := h.pair(dv)
	oc := other.dial()
	x := other.deal()
	x.publish(oc)
	x.deliver(dv, oc)
	mine := m.dealWith(x.id)
	c.send(mine.resume())
	f := c.next("inactive")
	if keyOf(f) != keyOf(mine.inactive("")) && (f.Type != peer.Error || f.Retryable) {
		t.Errorf("the resume of another client's exchange is answered with %s", f)
	}
	oc.wantState(x, "open", "delivered", "absent", "absent")
}
