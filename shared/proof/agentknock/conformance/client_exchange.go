package conformance

import (
	"testing"

	peer "blindpost/shared/client/agentknock"
)

// clientExchanges are the statements of "Observable exchange behavior" and of the
// frames' own sections, one by one.
var clientExchanges = []story{
	{Name: "ClientExchange_FirstRequestOpensIt", Tell: exchangeFirst},
	{Name: "ClientExchange_DuplicateRequest", Tell: exchangeDuplicate},
	{Name: "ClientExchange_FirstPayloadWins", Tell: exchangeFirstPayload},
	{Name: "ClientExchange_ResponseImpliesDelivery", Tell: exchangeImplied},
	{Name: "ClientExchange_DuplicateResponse", Tell: exchangeDuplicateResponse},
	{Name: "ClientExchange_CompletionDiscardsUndeliveredResponse", Tell: exchangeDiscards},
	{Name: "ClientExchange_ResponseAfterCompletion", Tell: exchangeLateResponse},
	{Name: "ClientExchange_CompletionOfUnknownExchange", Tell: exchangeUnknown},
	{Name: "ClientExchange_ReorderedRequestIsNoNewOperation", Tell: exchangeReordered},
	{Name: "ClientExchange_StopsAfterAckOfCompletion", Tell: exchangeStops},
	{Name: "ClientExchange_RequestBeforeCompletion", Tell: exchangeOrder},
	{Name: "ClientExchange_RepeatedAcksAreHarmless", Tell: exchangeAcks},
	{Name: "ClientExchange_ManyAtOnce", Tell: exchangeMany},
}

func exchangeFirst(t *testing.T, r *relay) {
	_, _, c, x := r.waiting(t)
	c.send(x.resume())
	c.want(x.state("open", "accepted", "absent", "absent"))
}

// A duplicate is acknowledged, and if the device has it already, there is a receipt
// or the state says so.
func exchangeDuplicate(t *testing.T, r *relay) {
	_, dv, m, c := r.couple(t)
	x := m.deal()
	x.publish(c)
	c.seeAgain()
	x.publish(c)
	x.deliver(dv, c)
	c.seeAgain()
	c.mayGet(x.receipt(peer.Request))
	x.publish(c)
	c.send(x.resume())
	c.want(x.state("open", "delivered", "absent", "absent"))
	dv.settle()
	// On another connection, too.
	e := m.dial()
	e.mayGet(x.receipt(peer.Request))
	x.publish(e)
	e.settle()
	x.answer(dv)
	e.want(x.delivery(peer.Response))
}

// The relay does not compare, and does not replace.
func exchangeFirstPayload(t *testing.T, r *relay) {
	h := r.home(t)
	dv := h.open()
	m := h.pair(dv)
	dv.close()
	c := m.dial()
	x := m.deal()
	other := m.dealWith(x.id)
	x.publish(c)
	c.seeAgain()
	c.send(other.message(peer.Request))
	c.want(x.ack(peer.Request))
	dv = h.open(x.delivery(peer.Request))
	dv.send(x.ack(peer.Request))
	c.want(x.receipt(peer.Request))
	c.drop()

	x.answer(dv)
	dv.seeAgain()
	dv.send(other.message(peer.Response))
	dv.want(x.ack(peer.Response))
	c = m.dial()
	c.send(x.resume())
	c.want(x.state("open", "delivered", "accepted", "absent"))
	x.receive(c, dv)
	dv.close()

	x.complete(c)
	c.seeAgain()
	c.send(other.message(peer.Completion))
	c.want(x.ack(peer.Completion))
	h.open(x.delivery(peer.Completion))
}

// A response without an ack of the request: the device has it, obviously.
func exchangeImplied(t *testing.T, r *relay) {
	h, dv, m, c := r.couple(t)
	x := m.deal()
	x.publish(c)
	dv.want(x.delivery(peer.Request))
	x.answer(dv)
	c.mayGet(x.receipt(peer.Request))
	c.want(x.delivery(peer.Response))
	c.send(x.resume())
	c.want(x.state("open", "delivered", "accepted", "absent"))
	c.seeAgain()
	c.want(x.delivery(peer.Response)) // the resume brings it again
	c.send(x.ack(peer.Response))
	dv.want(x.receipt(peer.Response))
	h.open() // nothing waits for the device
}

func exchangeDuplicateResponse(t *testing.T, r *relay) {
	_, dv, m, c := r.couple(t)
	x := m.deal()
	x.publish(c)
	x.deliver(dv, c)
	x.answer(dv)
	c.want(x.delivery(peer.Response))
	dv.seeAgain()
	x.answer(dv)
	c.send(x.ack(peer.Response), x.ack(peer.Response))
	dv.want(x.receipt(peer.Response))
	dv.seeAgain()
	dv.mayGet(x.receipt(peer.Response))
	x.answer(dv)
	dv.settle()
	c.send(x.ack(peer.Response))
	c.send(x.resume())
	c.want(x.state("open", "delivered", "delivered", "absent"))
	c.settle()
}

func exchangeDiscards(t *testing.T, r *relay) {
	h, dv, m, c := r.couple(t)
	x := m.deal()
	x.publish(c)
	x.deliver(dv, c)
	c.drop()
	x.answer(dv)
	c = m.dial()
	x.complete(c)
	c.send(x.resume())
	if f := c.next("state"); keyOf(f) != keyOf(x.state("closing", "delivered", "discarded", "accepted")) &&
		keyOf(f) != keyOf(x.state("settled", "delivered", "discarded", "delivered")) {
		t.Errorf("the state is %s", f)
	}
	// The device may be told that its response is dead.
	dv.mayGet(x.inactive(peer.Response))
	x.finish(dv, c)
	c.settle()
	c.send(x.resume())
	c.want(x.state("settled", "delivered", "discarded", "delivered"))
	h.open()
}

// A response that comes too late is dead: the device is told so and stops.
func exchangeLateResponse(t *testing.T, r *relay) {
	_, dv, m, c := r.couple(t)
	for _, taken := range []bool{false, true} {
		x := m.deal()
		x.publish(c)
		x.deliver(dv, c)
		x.complete(c)
		dv.want(x.delivery(peer.Completion))
		if taken {
			dv.send(x.ack(peer.Completion))
			c.want(x.receipt(peer.Completion))
		}
		dv.send(x.message(peer.Response))
		f := dv.next("inactive, or an ack of what is discarded")
		if f.Type != peer.Inactive && keyOf(f) != keyOf(x.ack(peer.Response)) || f.RequestID != x.id {
			t.Errorf("the late response is answered with %s", f)
		}
		c.settle()
		c.send(x.resume())
		if f := c.next("state"); f.Type != peer.State || f.Response == "accepted" || f.Response == "delivered" || f.Exchange == "open" {
			t.Errorf("the state is %s", f)
		}
	}
}

// It is acknowledged and discarded.
func exchangeUnknown(t *testing.T, r *relay) {
	h, dv, m, c := r.couple(t)
	for range 3 {
		x := m.deal()
		x.complete(c)
		c.seeAgain()
		x.complete(c)
	}
	c.settle()
	dv.settle()
	h.open()
}

// The request that was overtaken by its completion creates nothing.
func exchangeReordered(t *testing.T, r *relay) {
	h, dv, m, c := r.couple(t)
	x := m.deal()
	x.complete(c)
	c.send(x.message(peer.Request))
	f := c.next("inactive")
	if f.RequestID != x.id || (f.Type != peer.Inactive && f.Type != peer.Error) || f.Retryable {
		t.Errorf("the overtaken request is answered with %s", f)
	}
	c.settle()
	dv.settle()
	c.close()
	// Nor does one that comes again after the end, on another connection.
	c = m.dial()
	c.send(x.message(peer.Request))
	if f := c.next("inactive"); f.Type == peer.Ack {
		t.Errorf("the overtaken request is answered with %s", f)
	}
	// Nor does one whose exchange is over: it is a duplicate, or inactive.
	y := m.deal()
	y.whole(c, dv)
	c.seeAgain()
	c.send(y.message(peer.Request))
	if f := c.next("ack or inactive"); f.RequestID != y.id || (f.Type != peer.Ack && f.Type != peer.Inactive) {
		t.Errorf("the repeated request is answered with %s", f)
	}
	c.mayGet(y.receipt(peer.Request))
	c.settle()
	dv.settle()
	h.open()
}

func exchangeStops(t *testing.T, r *relay) {
	h, m, c, x := r.waiting(t)
	x.complete(c)
	c.drop()
	dv := h.open(x.delivery(peer.Request), x.delivery(peer.Completion))
	dv.send(x.ack(peer.Request), x.ack(peer.Completion))
	dv.settle()
	c = m.dial()
	c.send(x.resume())
	c.want(x.state("settled", "delivered", "absent", "delivered"))
}

// If both are pending, the request comes first; and the oldest exchange first.
func exchangeOrder(t *testing.T, r *relay) {
	h := r.home(t)
	dv := h.open()
	m := h.pair(dv)
	dv.close()
	c := m.dial()
	var waiting []peer.Frame
	for i := range 10 {
		x := m.deal()
		x.publish(c)
		waiting = append(waiting, x.delivery(peer.Request))
		if i%2 == 0 {
			x.complete(c)
			waiting = append(waiting, x.delivery(peer.Completion))
		}
	}
	for range 3 { // until they are acknowledged
		dv = h.open(waiting...)
		dv.drop()
	}
	dv = h.open(waiting...)
	dv.send(peer.Frame{Type: peer.Ack, ClientID: m.ID, RequestID: waiting[0].RequestID, Kind: peer.Request})
	dv.settle()
	dv.close()
	h.open(waiting[1:]...) // its completion still waits
}

// Acknowledgements are not acknowledged, and revive nothing.
func exchangeAcks(t *testing.T, r *relay) {
	h, dv, m, c := r.couple(t)
	x := m.deal()
	x.whole(c, dv)
	for range 3 {
		c.send(x.ack(peer.Response))
		dv.send(x.ack(peer.Request), x.ack(peer.Completion))
	}
	c.settle()
	dv.settle()
	c.send(x.resume())
	c.want(x.state("settled", "delivered", "delivered", "delivered"))
	never := m.deal()
	c.send(never.ack(peer.Response))
	c.settle()
	c.send(never.resume())
	c.want(never.inactive(""))
	h.open()
}

func exchangeMany(t *testing.T, r *relay) {
	_, dv, m, c := r.couple(t)
	var all []*deal
	for range 20 {
		x := m.deal()
		x.publish(c)
		all = append(all, x)
	}
	for _, x := range all {
		x.deliver(dv, c)
	}
	for i := range all { // in another order
		all[len(all)-1-i].answer(dv)
	}
	for i := range all {
		all[len(all)-1-i].receive(c, dv)
	}
	for _, x := range all {
		x.complete(c)
		x.finish(dv, c)
	}
}
