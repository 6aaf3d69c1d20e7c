package conformance

import (
	"fmt"
	"testing"

	peer "blindpost/shared/client/agentknock"
)

// deviceFrames are the rows of the table of a device's frames, deviceConnects what
// happens on connect.
var (
	deviceFrames = []story{
		{Name: "DeviceFrame_MessageOfInitialPairingNamesAddress", Tell: frameAddress},
		{Name: "DeviceFrame_MessageResponse", Tell: kindResponse},
		{Name: "DeviceFrame_Ack", Tell: exchangeAcks},
		{Name: "DeviceFrame_ReceiptOfResponse", Tell: frameReceipt},
		{Name: "DeviceFrame_ResumeAndState", Tell: stateOpen},
		{Name: "DeviceFrame_Inactive", Tell: frameInactive},
		{Name: "DeviceFrame_SetClientState", Tell: clientStatesAll},
		{Name: "DeviceFrame_Error", Tell: frameError},
		{Name: "DeviceFrame_Forbidden", Tell: frameForbidden},
		{Name: "DeviceFrame_Malformed", Tell: frameMalformed},
		{Name: "DeviceFrame_ResponseToNobody", Tell: frameNobody},
	}
	deviceConnects = []story{
		{Name: "DeviceConnect_Order", Tell: exchangeOrder},
		{Name: "DeviceConnect_UndeliveredUntilAcked", Tell: connectUndelivered},
		{Name: "DeviceConnect_NewestSocketWins", Tell: connectNewest},
		{Name: "DeviceConnect_NewTrafficAfterWhatWaited", Tell: connectOrder},
		{Name: "DeviceConnect_NothingOfOthers", Tell: connectOthers},
	}
)

// address_id is there when it is an initial pairing, and only then.
func frameAddress(t *testing.T, r *relay) {
	h := r.home(t)
	dv := h.open()
	m, c, x := h.introduce(dv) // wants the request with address_id
	x.complete(c)
	dv.close()
	dv = h.dial()
	dv.want(peer.Frame{Type: peer.PushRegistration, State: "missing"}, x.delivery(peer.Completion), peer.Frame{Type: peer.CaughtUp})
	m.set(dv, "active")
	y := m.deal() // no address_id
	c = m.dial()
	y.publish(c)
	y.deliver(dv, c)
}

// The receipt comes when the client has acknowledged, not before.
func frameReceipt(t *testing.T, r *relay) {
	h, dv, m, c := r.couple(t)
	x := m.deal()
	x.publish(c)
	x.deliver(dv, c)
	x.answer(dv)
	c.want(x.delivery(peer.Response))
	c.settle()
	dv.settle() // no receipt
	c.send(x.ack(peer.Response))
	dv.want(x.receipt(peer.Response))
	// A device that was away learns it from the state.
	y := m.deal()
	y.publish(c)
	y.deliver(dv, c)
	y.answer(dv)
	c.want(y.delivery(peer.Response))
	dv.close()
	c.send(y.ack(peer.Response))
	c.settle()
	dv = h.dial()
	dv.mayGet(y.receipt(peer.Response))
	dv.wantOpening(false)
	dv.wantState(y, "open", "delivered", "delivered", "absent")
}

func frameInactive(t *testing.T, r *relay) {
	_, dv, m, c := r.couple(t)
	never := m.deal()
	dv.send(never.resume())
	dv.want(never.inactive(""))
	x := m.deal()
	x.publish(c)
	x.deliver(dv, c)
	x.complete(c)
	x.finish(dv, c)
	dv.send(x.message(peer.Response)) // too late: only that is dead, or all is
	f := dv.next("inactive, or an ack of what is discarded")
	if keyOf(f) != keyOf(x.inactive(peer.Response)) && keyOf(f) != keyOf(x.inactive("")) && keyOf(f) != keyOf(x.ack(peer.Response)) {
		t.Errorf("a response that is too late is answered with %s", f)
	}
	dv.settle()
	c.settle()
}

// An error has no scope, or a whole one; the peer checks that of every error.
func frameError(t *testing.T, r *relay) {
	h, dv, m, _ := r.couple(t)
	dv.send(peer.Frame{Type: peer.SetClientState, ClientID: m.ID, State: "active"})
	dv.want(peer.Frame{Type: peer.Error, Code: "INVALID_CLIENT_STATE"})
	dv.settle()
	for _, text := range []string{
		fmt.Sprintf(`{"type":"ack","client_id":%q,"kind":"request"}`, m.ID),
		fmt.Sprintf(`{"type":"resume","client_id":%q}`, m.ID),
		fmt.Sprintf(`{"type":"message","client_id":%q,"request_id":%q,"kind":"response"}`, m.ID, newID()),
	} {
		dv = h.open()
		dv.sendText(text)
		dv.wantRejected(text)
	}
}

func frameForbidden(t *testing.T, r *relay) {
	h, dv, m, c := r.couple(t)
	x := m.deal()
	x.publish(c)
	x.deliver(dv, c)
	for _, f := range forbidden(x, peer.DeviceRole) {
		e := h.open()
		e.send(f)
		e.wantRejected(f.Type + " " + f.Kind)
		e.drop()
	}
	c.settle()
	c.wantState(x, "open", "delivered", "absent", "absent")
}

func frameMalformed(t *testing.T, r *relay) {
	h, _, m, c := r.couple(t)
	all := malformed(m.ID, newID())
	for what, text := range map[string]string{
		"a state without client": `{"type":"set_client_state","state":"active"}`,
		"a client without state": fmt.Sprintf(`{"type":"set_client_state","client_id":%q}`, m.ID),
		"state 7":                fmt.Sprintf(`{"type":"set_client_state","client_id":%q,"state":7}`, m.ID),
		"state null":             fmt.Sprintf(`{"type":"set_client_state","client_id":%q,"state":null}`, m.ID),
		"an unknown state":       fmt.Sprintf(`{"type":"set_client_state","client_id":%q,"state":"nonsense"}`, m.ID),
		"a wrong client id":      `{"type":"set_client_state","client_id":"x","state":"revoked"}`,
	} {
		all[what] = text
	}
	for what, text := range all {
		e := h.open()
		e.sendText(text)
		e.wantRejected(what)
		e.drop()
	}
	c.settle()
}

// Responses to what there is not, and to what another client has asked.
func frameNobody(t *testing.T, r *relay) {
	h, dv, m, c := r.couple(t)
	other := h.pair(dv)
	oc := other.dial()
	x := m.deal()
	x.publish(c)
	x.deliver(dv, c)
	for what, y := range map[string]*deal{
		"an exchange that there is not": m.deal(), "the exchange of another client": other.dealWith(x.id), "a client that there is not": h.newMember().deal(),
	} {
		dv.send(y.message(peer.Response))
		f := dv.next("inactive")
		if (f.Type != peer.Inactive && f.Type != peer.Error) || f.Retryable {
			t.Errorf("the response to %s is answered with %s", what, f)
		}
	}
	c.settle()
	oc.settle()
	x.answer(dv)
	x.receive(c, dv)

	// Nor does a device reach the clients of another.
	_, dv2, _, _ := r.couple(t)
	y := m.deal()
	y.publish(c)
	dv2.send(y.message(peer.Response), y.ack(peer.Request), peer.Frame{Type: peer.SetClientState, ClientID: m.ID, State: "revoked"}, y.resume())
	dv2.wantForeign(3)
	y.deliver(dv, c)
	c.settle()
}

// wantForeign wants n answers that say that there is no such thing: the ack of what
// there is not may be one of them.
func (e *end) wantForeign(n int) {
	e.t.Helper()
	for range n {
		f := e.next("inactive or an error")
		if (f.Type != peer.Inactive && f.Type != peer.Error) || f.Retryable {
			e.t.Fatalf("%s gets %s about another device's client", e.name, f)
		}
	}
}

func connectUndelivered(t *testing.T, r *relay) {
	h, dv, m, c := r.couple(t)
	x, y := m.deal(), m.deal()
	x.publish(c)
	y.publish(c)
	dv.want(x.delivery(peer.Request), y.delivery(peer.Request))
	dv.drop() // it has read them, and not said so
	dv = h.open(x.delivery(peer.Request), y.delivery(peer.Request))
	dv.send(y.ack(peer.Request))
	c.want(y.receipt(peer.Request))
	dv.drop()
	dv = h.open(x.delivery(peer.Request))
	dv.send(x.ack(peer.Request))
	c.want(x.receipt(peer.Request))
	dv.drop()
	h.open()
}

// The newest socket of a device wins, the older closes.
func connectNewest(t *testing.T, r *relay) {
	h, dv, m, c := r.couple(t)
	for range 5 {
		newer := h.open()
		dv.wantClosed()
		dv = newer
		m.deal().whole(c, dv)
	}
	dv.settle()
}

// What a client sends while the device drains comes after what waited.
func connectOrder(t *testing.T, r *relay) {
	h := r.home(t)
	dv := h.open()
	m := h.pair(dv)
	dv.close()
	c := m.dial()
	for range 3 {
		var waiting []*deal
		for range 20 {
			x := m.deal()
			x.publish(c)
			waiting = append(waiting, x)
		}
		dv = h.dial()
		for range 20 {
			x := m.deal()
			x.publish(c)
			waiting = append(waiting, x)
		}
		dv.want(peer.Frame{Type: peer.PushRegistration, State: "missing"})
		// Somewhere, but not before the first twenty, it is caught up.
		for i := 0; i < len(waiting); {
			f := dv.next("a request")
			if f.Type == peer.CaughtUp && i >= 20 {
				continue
			}
			if keyOf(f) != keyOf(waiting[i].delivery(peer.Request)) {
				t.Fatalf("request %d is %s", i, f)
			}
			i++
		}
		for _, x := range waiting {
			dv.send(x.ack(peer.Request))
			c.want(x.receipt(peer.Request))
		}
		dv.close()
	}
}

func connectOthers(t *testing.T, r *relay) {
	h, dv, m, c := r.couple(t)
	_, dv2, m2, c2 := r.couple(t)
	m.deal().whole(c, dv)
	x := m.deal()
	x.publish(c)
	x.deliver(dv, c)
	m2.deal().whole(c2, dv2)
	dv2.settle()
	c2.settle()
	dv.settle()
	h.open()
}
