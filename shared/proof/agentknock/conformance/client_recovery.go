package conformance

import (
	"context"
	"fmt"
	"testing"
	"time"

	peer "blindpost/shared/client/agentknock"
)

// clientRecovery are the rows of "Reconnection and recovery".
var clientRecovery = []story{
	{Name: "ClientRecovery_NoAcknowledgement", Tell: recoveryUnacked},
	{Name: "ClientRecovery_AcknowledgementNoReceipt", Tell: recoveryAcked},
	{Name: "ClientRecovery_Receipt", Tell: recoveryReceipt},
	{Name: "ClientRecovery_Inactive", Tell: recoveryInactive},
	{Name: "ClientRecovery_AtEveryStep", Tell: recoverySteps},
	{Name: "ClientRecovery_ResentRequestBringsTheResponse", Tell: recoveryAnswered},
	{Name: "ClientRecovery_SocketsStayAssociated", Tell: recoveryAssociated},
	{Name: "ClientRecovery_PeersAtWork", Tell: recoveryPeers},
}

// The client resends what was not acknowledged, whether the relay has it or not.
func recoveryUnacked(t *testing.T, r *relay) {
	_, dv, m, c := r.couple(t)
	x := m.deal()
	c.send(x.message(peer.Request))
	c.drop() // before the acknowledgement was read
	c = m.dial()
	c.mayGet(x.receipt(peer.Request))
	x.publish(c)
	dv.want(x.delivery(peer.Request)) // once, or once more
	dv.send(x.ack(peer.Request))
	dv.settle()
	x.answer(dv)
	x.receive(c, dv)
	c.send(x.message(peer.Completion))
	c.drop()
	c = m.dial()
	c.mayGet(x.receipt(peer.Completion))
	x.complete(c)
	dv.want(x.delivery(peer.Completion))
	dv.send(x.ack(peer.Completion))
	dv.settle()
	c.wantState(x, "settled", "delivered", "delivered", "delivered")
}

// What was acknowledged the client does not send again: it resumes.
func recoveryAcked(t *testing.T, r *relay) {
	h, m, c, x := r.waiting(t)
	c.drop()
	c = m.dial()
	c.wantState(x, "open", "accepted", "absent", "absent")
	dv := h.open(x.delivery(peer.Request))
	dv.send(x.ack(peer.Request))
	c.want(x.receipt(peer.Request)) // the new socket is associated
	x.answer(dv)
	x.receive(c, dv)
}

func recoveryReceipt(t *testing.T, r *relay) {
	_, dv, m, c := r.couple(t)
	x := m.deal()
	x.publish(c)
	x.deliver(dv, c)
	c.drop()
	c = m.dial()
	c.wantState(x, "open", "delivered", "absent", "absent")
	x.answer(dv)
	x.receive(c, dv)
	x.complete(c)
	x.finish(dv, c)
}

func recoveryInactive(t *testing.T, r *relay) {
	h, dv, m, c := r.couple(t)
	x := m.deal()
	c.send(x.resume())
	c.want(x.inactive(""))
	c.settle()
	dv.settle()
	h.open()
}

// The client loses its connection after every step, the device before every step.
func recoverySteps(t *testing.T, r *relay) {
	h, dv, m, c := r.couple(t)
	again := func(x *deal, request, response, completion string) {
		c.drop()
		c = m.dial()
		exchange := map[string]string{"absent": "open", "accepted": "closing", "delivered": "settled"}[completion]
		c.wantState(x, exchange, request, response, completion)
	}
	for range 3 {
		x := m.deal()
		x.publish(c)
		dv.want(x.delivery(peer.Request))
		again(x, "accepted", "absent", "absent")
		dv.drop()
		dv = h.open(x.delivery(peer.Request))
		dv.send(x.ack(peer.Request))
		c.want(x.receipt(peer.Request))
		again(x, "delivered", "absent", "absent")
		dv.drop()
		dv = h.open()
		x.answer(dv)
		c.want(x.delivery(peer.Response))
		again(x, "delivered", "accepted", "absent")
		dv.drop()
		dv = h.open()
		x.receive(c, dv)
		again(x, "delivered", "delivered", "absent")
		dv.drop()
		dv = h.open()
		x.complete(c)
		dv.want(x.delivery(peer.Completion))
		again(x, "delivered", "delivered", "accepted")
		dv.drop()
		dv = h.open(x.delivery(peer.Completion))
		dv.send(x.ack(peer.Completion))
		c.want(x.receipt(peer.Completion))
		again(x, "delivered", "delivered", "delivered")
	}
}

// The acknowledgement was lost, and by the time that the client sends its request
// again, it has been answered. The client does not know, and does not resume.
func recoveryAnswered(t *testing.T, r *relay) {
	_, dv, m, c := r.couple(t)
	for range 3 {
		x := m.deal()
		c.send(x.message(peer.Request))
		dv.want(x.delivery(peer.Request))
		c.drop()
		dv.send(x.ack(peer.Request))
		x.answer(dv)
		c = m.dial()
		c.mayGet(x.receipt(peer.Request))
		x.publish(c)
		x.receive(c, dv)
		x.complete(c)
		x.finish(dv, c)
	}
}

// A socket that has resumed an exchange stays associated with it, whatever an older
// one, which is about to go, still brings: the frames of two connections may be
// handled in any order.
func recoveryAssociated(t *testing.T, r *relay) {
	_, dv, m, old := r.couple(t)
	for range 3 {
		x := m.deal()
		x.publish(old)
		x.deliver(dv, old)
		c := m.dial()
		c.wantState(x, "open", "delivered", "absent", "absent")
		old.seeAgain()
		old.mayGet(x.receipt(peer.Request))
		x.publish(old)
		old.settle()
		old.drop()
		x.answer(dv)
		x.receive(c, dv)
		x.complete(c)
		x.finish(dv, c)
		old = c
	}
}

// autopsy is what the relay says about an exchange that did not get through.
func (m *member) autopsy(ctx context.Context, x *deal) string {
	c, err := m.Dial(ctx, peer.Options{})
	if err != nil {
		return err.Error()
	}
	defer c.Drop()
	_ = c.Send(ctx, x.resume())
	f, err := c.Next(ctx)
	if err != nil {
		return err.Error()
	}
	return f.String()
}

// Peers that keep to the rules get every exchange through, whatever happens to their
// connections.
func recoveryPeers(t *testing.T, r *relay) {
	h := r.home(t)
	dv := h.open()
	m := h.pair(dv)
	dv.close()
	answers := make(map[string]peer.Frame)
	var all []*deal
	for range 60 {
		x := m.deal()
		answers[x.id] = x.message(peer.Response)
		all = append(all, x)
	}
	got := make(chan peer.Incoming, 3*len(all))
	desk := h.device.Start(t.Context(), peer.DeskOptions{OnMessage: func(in peer.Incoming) { got <- in }, Pause: time.Millisecond})
	defer desk.Stop()
	session := m.Start(t.Context(), peer.SessionOptions{Pause: time.Millisecond})
	defer session.Stop()

	faults := make(chan error, 2*len(all)+1)
	go func() {
		for range 2 * len(all) {
			in := <-got
			if in.Kind == peer.Request {
				answer := desk.Respond(in.ClientID, in.RequestID, answers[in.RequestID].Payload)
				go func() { faults <- answer.Received(soon(t)) }()
			}
		}
		faults <- nil
	}()
	for i, x := range all {
		deal := session.Begin(x.id, x.payloads[peer.Request])
		go func() {
			payload, err := deal.Response(soon(t))
			if err != nil {
				err = fmt.Errorf("%w; %s", err, m.autopsy(soon(t), x))
			}
			if err == nil && string(payload) != string(x.payloads[peer.Response]) {
				t.Errorf("another response than was sent")
			}
			if err == nil {
				err = deal.Complete(soon(t), x.payloads[peer.Completion])
			}
			faults <- err
		}()
		switch i % 3 {
		case 1:
			must(t, session.Opened(soon(t), i/3+1))
			session.Drop()
		case 2:
			must(t, desk.Opened(soon(t), i/3+1))
			desk.Drop()
		}
	}
	deadline := time.After(2 * patience)
	for range 2*len(all) + 1 {
		select {
		case err := <-faults:
			must(t, err)
		case <-deadline:
			t.Fatal("not every exchange got through")
		}
	}
	if session.Opens() <= len(all)/3 || desk.Opens() <= len(all)/3 {
		t.Errorf("there were %d and %d connections", session.Opens(), desk.Opens())
	}
	t.Logf("%d exchanges over %d and %d connections", len(all), session.Opens(), desk.Opens())
}
