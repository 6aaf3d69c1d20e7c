package conformance

import (
	"errors"
	"strings"
	"testing"

	peer "blindpost/shared/client/agentknock"
)

// hostile are peers that mean no good, or whose network does not.
var hostile = []story{
	{Name: "Hostile_AcksOfWhatNeverCame", Tell: hostileAcks},
	{Name: "Hostile_SilentNetworkLosesNothing", Tell: hostileSilent},
	{Name: "Hostile_StalledDeviceHoldsUpNobody", Tell: hostileStalled, Needs: carries(peer.MaxFrame)},
	{Name: "Hostile_GarbageDoesNotDisturbOthers", Tell: hostileGarbage},
	{Name: "Hostile_LongPathsAndHeaders", Tell: hostilePaths},
}

// A device that acks what it never got: what has not been sent cannot be delivered.
func hostileAcks(t *testing.T, r *relay) {
	h, dv, m, c := r.couple(t)
	x := m.deal()
	dv.send(x.ack(peer.Request), x.ack(peer.Completion)) // before there is any
	dv.mayGet(x.inactive(""), x.inactive(peer.Request), x.inactive(peer.Completion))
	dv.settle()
	x.publish(c)
	dv.want(x.delivery(peer.Request))
	c.settle() // no receipt
	dv.send(x.ack(peer.Completion))
	dv.settle()
	c.wantState(x, "open", "accepted", "absent", "absent")
	dv.close()
	dv = h.open(x.delivery(peer.Request))
	dv.send(x.ack(peer.Request))
	c.want(x.receipt(peer.Request))

	y := m.deal()
	y.publish(c)
	y.deliver(dv, c)
	c.send(y.ack(peer.Response)) // the same from the client
	c.settle()
	c.wantState(y, "open", "delivered", "absent", "absent")
	y.answer(dv)
	y.receive(c, dv)

	// A device elsewhere cannot ack either.
	_, dv2, _, _ := r.couple(t)
	z := m.deal()
	z.publish(c)
	dv2.mayGet(z.inactive(""), z.inactive(peer.Request))
	dv2.send(z.ack(peer.Request))
	dv2.settle()
	c.settle()
	c.wantState(z, "open", "accepted", "absent", "absent")
}

// A device whose network vanishes finds everything after it reconnects; so does a
// client.
func hostileSilent(t *testing.T, r *relay) {
	h := r.home(t)
	wire := r.proxy(t)
	first := h.open()
	m := h.pair(first)
	first.close()
	dv := h.dial(wire)
	dv.wantOpening(false)
	c := m.dial()
	wire.Freeze()
	var waiting []*deal
	var frames []peer.Frame
	for range 20 {
		x := m.deal()
		x.publish(c)
		waiting = append(waiting, x)
		frames = append(frames, x.delivery(peer.Request))
	}
	dv = h.open(frames...)
	for _, x := range waiting {
		dv.send(x.ack(peer.Request))
		c.want(x.receipt(peer.Request))
	}

	wire2 := r.proxy(t)
	lost := m.dial(wire2)
	x := m.deal()
	x.publish(lost)
	dv.want(x.delivery(peer.Request))
	wire2.Freeze()
	dv.send(x.ack(peer.Request))
	x.answer(dv)
	c.wantState(x, "open", "delivered", "accepted", "absent")
	x.receive(c, dv)
}

// A device that does not read is its own problem.
func hostileStalled(t *testing.T, r *relay) {
	h := r.home(t)
	dv := h.open()
	m := h.pair(dv)
	dv.close()
	wire := r.proxy(t)
	dv = h.dial(wire)
	dv.wantOpening(false)
	wire.Freeze()
	c := m.dial()
	_, odv, om, oc := r.couple(t)
	big := raw(`"` + strings.Repeat("x", 200<<10) + `"`)
	for range 30 { // 6 MB
		x := m.deal()
		x.payloads[peer.Request] = big
		x.publish(c)
		om.deal().whole(oc, odv)
	}
	c.settle()
	// By another network it has them all.
	dv = h.dial()
	dv.want(peer.Frame{Type: peer.PushRegistration, State: "missing"})
	n := 0
	for f := dv.next("a request"); f.Type != peer.CaughtUp; f = dv.next("a request") {
		if f.Type == peer.Message && len(f.Payload) == len(big) {
			n++
			dv.send(peer.Frame{Type: peer.Ack, ClientID: f.ClientID, RequestID: f.RequestID, Kind: f.Kind})
		}
	}
	if n != 30 {
		t.Errorf("%d of 30 came", n)
	}
}

func hostileGarbage(t *testing.T, r *relay) {
	_, dv, m, c := r.couple(t)
	bad := r.home(t)
	bdv := bad.open()
	bm := bad.pair(bdv)
	for i := range 30 {
		e := bm.dial()
		for range i%3 + 1 {
			e.sendText(strings.Repeat("[{", i*7))
		}
		if i%2 == 0 {
			e.drop()
		}
		m.deal().whole(c, dv)
	}
	bm.deal().whole(bm.dial(), bdv)
}

// Paths and headers of any length are refused without harm.
func hostilePaths(t *testing.T, r *relay) {
	h := r.home(t)
	m := h.newMember()
	long := strings.Repeat("A", 4<<10)
	for _, path := range []string{
		"/v1/address/" + long + "/request/" + m.ID, "/v1/address/" + h.address + "/request/" + long, "/v1/device/" + long,
		"/v1/device/" + h.device.ID + "/client/" + long, "/v1/device/%00", "/v1/device/..%2f..%2f" + h.device.ID, "/v1/address//request/" + m.ID,
	} {
		conn, err := r.at.Dial(soon(t), peer.ClientRole, path, m.Token, peer.Options{})
		var no *peer.Refusal
		if err == nil {
			conn.Drop()
		}
		if !errors.As(err, &no) || no.Status < 400 || no.Status >= 500 {
			t.Errorf("%.60s: %v", path, err)
		}
	}
	h.pair(h.open())
}
