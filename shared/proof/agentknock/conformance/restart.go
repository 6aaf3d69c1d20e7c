package conformance

import (
	"sync"
	"sync/atomic"
	"testing"

	peer "blindpost/shared/client/agentknock"
)

// restarts are about what an acknowledgement is worth.
var restarts = []story{
	{Name: "Restart_StateIsKept", Tell: restartState, Own: &roomy, Needs: restart},
	{Name: "Kill_AckMeansStored", Tell: killStored, Own: &roomy, Needs: kill},
	{Name: "Kill_InTheMiddleOfABurst", Tell: killBurst, Own: &roomy, Needs: kill},
	{Name: "Kill_WhatHTTPHasAnsweredHolds", Tell: killHTTP, Own: &roomy, Needs: kill},
	{Name: "Kill_PeersAtWork", Tell: killWorking, Own: &roomy, Needs: kill},
}

// A restart forgets nothing, and says goodbye in a way to come back from.
func restartState(t *testing.T, r *relay) {
	h, dv, m, c := r.couple(t)
	pending, pc, px := h.introduce(dv)
	x, y := m.deal(), m.deal()
	x.publish(c)
	x.deliver(dv, c)
	y.publish(c)
	dv.want(y.delivery(peer.Request))
	r.Restart(t)
	for _, e := range []*end{dv, c, pc} {
		e.wantEnd(1001, 1012)
	}
	dv = h.open(y.delivery(peer.Request))
	c = m.dial()
	c.wantState(x, "open", "delivered", "absent", "absent")
	x.answer(dv)
	x.receive(c, dv)
	r.refuses(t, "a pending client", peer.ClientRole, pending.Path(), pending.Token, 403)
	pc = pending.dialPairing()
	pc.wantState(px, "open", "delivered", "absent", "absent")
	m.set(dv, "suspended")
	r.Restart(t)
	r.refuses(t, "a suspended client", peer.ClientRole, m.Path(), m.Token, 403)
	h.fid = ""
	h.registerPush()
	r.Restart(t)
	h.dial().want(peer.Frame{Type: peer.PushRegistration, State: "registered"})
}

// kill -9 right after each acknowledgement of an exchange.
func killStored(t *testing.T, r *relay) {
	h, m, _, x := r.waiting(t)
	r.Kill(t)

	dv := h.open(x.delivery(peer.Request))
	dv.send(x.ack(peer.Request))
	dv.settle() // its ack was handled
	r.Kill(t)

	dv = h.open() // not again
	c := m.dial()
	c.wantState(x, "open", "delivered", "absent", "absent")
	x.answer(dv)
	r.Kill(t)

	c = m.dial()
	c.wantState(x, "open", "delivered", "accepted", "absent")
	c.want(x.delivery(peer.Response))
	c.send(x.ack(peer.Response))
	c.settle()
	r.Kill(t)

	c = m.dial()
	c.wantState(x, "open", "delivered", "delivered", "absent")
	x.complete(c)
	r.Kill(t)

	dv = h.open(x.delivery(peer.Completion))
	m.set(dv, "suspended")
	r.Kill(t)

	r.refuses(t, "a suspended client", peer.ClientRole, m.Path(), m.Token, 403)
	dv = h.open(x.delivery(peer.Completion))
	m.set(dv, "revoked")
	r.Kill(t)

	r.refuses(t, "a revoked client", peer.ClientRole, m.Path(), m.Token, 401, 403, 404)
	h.open()
}

// Several clients write, the relay dies: every request that was acknowledged is
// there, in the order of each client.
func killBurst(t *testing.T, r *relay) {
	h := r.home(t)
	dv := h.open()
	var clients []*member
	for range 4 {
		clients = append(clients, h.pair(dv))
	}
	dv.close()
	for range 3 {
		acked := make([][]string, len(clients))
		var count atomic.Int64
		var wg sync.WaitGroup
		for i, m := range clients {
			c := m.dial()
			wg.Go(func() {
				for {
					x := m.deal()
					if c.conn.Send(soon(t), x.message(peer.Request)) != nil {
						return
					}
					f, err := c.frame()
					if err != nil || f.Type != peer.Ack {
						return
					}
					acked[i] = append(acked[i], x.id)
					count.Add(1)
				}
			})
		}
		eventually(t, "a burst", func() bool { return count.Load() > 50 })
		r.Kill(t)
		wg.Wait()

		dv = h.dial()
		got := make(map[string][]string)
		for f := dv.next("a request"); f.Type != peer.CaughtUp; f = dv.next("a request") {
			if f.Type == peer.Message {
				got[f.ClientID] = append(got[f.ClientID], f.RequestID)
				dv.send(peer.Frame{Type: peer.Ack, ClientID: f.ClientID, RequestID: f.RequestID, Kind: f.Kind})
			}
		}
		for i, m := range clients {
			came := got[m.ID]
			for j, id := range acked[i] {
				if j >= len(came) || came[j] != id {
					t.Fatalf("%s: request %d of %d was acknowledged and is lost, or out of order", m.name, j, len(acked[i]))
				}
			}
		}
		t.Logf("%d requests were acknowledged before the kill", count.Load())
		dv.settle()
		dv.close()
	}
}

// What an endpoint has answered holds.
func killHTTP(t *testing.T, r *relay) {
	d := r.newDevice(r.at)
	must(t, d.Claim(soon(t)))
	r.Kill(t)
	h := &home{t: t, r: r, name: "device", device: d, address: peer.NewAddress()}
	h.open()
	must(t, d.SetAddress(soon(t), h.address))
	r.Kill(t)
	must(t, d.SetPairing(soon(t), true))
	r.Kill(t)
	m := h.newMember()
	m.dialPairing() // admitted: its token is fixed
	r.Kill(t)
	r.refuses(t, "the attempt with another token", peer.ClientRole, m.PairingPath(), peer.NewToken(), 401, 409)
	m.dialPairing()
	h.registerPush()
	r.Kill(t)
	h.dial().want(peer.Frame{Type: peer.PushRegistration, State: "registered"})
	must(t, d.SetPairing(soon(t), false))
	r.Kill(t)
	late := h.newMember()
	r.refuses(t, "a pairing", peer.ClientRole, late.PairingPath(), late.Token, 403)
	must(t, d.Delete(soon(t)))
	r.Kill(t)
	r.refuses(t, "a deleted device", peer.DeviceRole, d.Path(), d.Token, 404)
	other := r.home(t)
	must(t, other.device.SetAddress(soon(t), h.address))
}

// Peers that keep to the rules get their exchanges through while the relay dies
// again and again.
func killWorking(t *testing.T, r *relay) {
	h := r.home(t)
	dv := h.open()
	m := h.pair(dv)
	dv.close()
	type answer struct {
		client, request string
	}
	asked := make(chan answer, 1000)
	desk := h.device.Start(t.Context(), peer.DeskOptions{OnMessage: func(in peer.Incoming) {
		if in.Kind == peer.Request {
			asked <- answer{in.ClientID, in.RequestID}
		}
	}})
	defer desk.Stop()
	go func() {
		for a := range asked {
			desk.Respond(a.client, a.request, raw(`"`+a.request+`"`))
		}
	}()
	defer close(asked)
	session := m.Start(t.Context(), peer.SessionOptions{})
	defer session.Stop()
	var wg sync.WaitGroup
	var through atomic.Int64
	stop := make(chan struct{})
	for range 4 {
		wg.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				x := session.Begin(newID(), r.payload("request"))
				payload, err := x.Response(soon(t))
				if err == nil && string(payload) != `"`+x.ID()+`"` {
					t.Errorf("the response is another's")
				}
				if err == nil {
					err = x.Complete(soon(t), raw("null"))
				}
				if err != nil {
					t.Errorf("an exchange failed: %v", err)
					return
				}
				through.Add(1)
			}
		})
	}
	for range 4 {
		seen := through.Load()
		eventually(t, "exchanges", func() bool { return through.Load() > seen+20 || t.Failed() })
		r.Kill(t)
	}
	close(stop)
	wg.Wait()
	t.Logf("%d exchanges over %d and %d connections", through.Load(), session.Opens(), desk.Opens())
}
