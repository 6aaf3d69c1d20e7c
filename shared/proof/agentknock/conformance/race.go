package conformance

import (
	"fmt"
	"sync"
	"testing"

	peer "blindpost/shared/client/agentknock"
)

// races are several that want the same at once.
var races = []story{
	{Name: "Race_TwoDevicesClaimOneAddress", Tell: raceAddress},
	{Name: "Race_TwoClaimsOfOneDevice", Tell: raceClaim},
	{Name: "Race_TwoAttemptsWithOneID", Tell: raceAttempt},
	{Name: "Race_SameRequestOnManyConnections", Tell: raceRequest},
	{Name: "Race_ResponseAgainstCompletion", Tell: raceCompletion},
	{Name: "Race_RevocationAgainstRequests", Tell: raceRevoked},
	{Name: "Race_DeviceConnectsOften", Tell: raceDevices},
	{Name: "Race_CompletionNeverOvertakes", Tell: raceOrder},
}

func raceAddress(t *testing.T, r *relay) {
	for range 4 {
		address := peer.NewAddress()
		const n = 8
		homes := make([]*home, n)
		for i := range homes {
			homes[i] = r.home(t)
		}
		errs := make([]error, n)
		var wg sync.WaitGroup
		for i, h := range homes {
			wg.Go(func() { errs[i] = h.device.SetAddress(soon(t), address) })
		}
		wg.Wait()
		winner := -1
		for i, err := range errs {
			if err == nil {
				if winner >= 0 {
					t.Fatal("two devices have the address")
				}
				winner = i
				continue
			}
			if no := r.wantRefusal(t, "the second", err, true, 409); no.Code != "ADDRESS_ALREADY_CLAIMED" {
				t.Errorf("the code is %s", no.Code)
			}
		}
		if winner < 0 {
			t.Fatal("nobody has the address")
		}
		h := homes[winner]
		h.address = address
		h.pair(h.open())
	}
}

func raceClaim(t *testing.T, r *relay) {
	for range 5 {
		id := newID()
		const n = 6
		devices := make([]*peer.Device, n)
		errs := make([]error, n)
		var wg sync.WaitGroup
		for i := range devices {
			devices[i] = r.newDevice(r.at)
			devices[i].ID = id
			wg.Go(func() { errs[i] = devices[i].Claim(soon(t)) })
		}
		wg.Wait()
		won := 0
		for i, err := range errs {
			if err == nil {
				won++
				(&home{t: t, r: r, name: "winner", device: devices[i]}).open()
				continue
			}
			r.wantRefusal(t, "the second", err, true, 409)
		}
		if won != 1 {
			t.Fatalf("%d devices have the id", won)
		}
	}
}

// Two strangers with one id: the token of one of them is fixed.
func raceAttempt(t *testing.T, r *relay) {
	h := r.home(t)
	dv := h.open()
	for range 10 {
		m := h.newMember()
		dv.mayGet(m.stateFrame("pending"))
		tokens := []string{m.Token, h.newMember().Token, h.newMember().Token}
		conns := make([]*peer.Conn, len(tokens))
		errs := make([]error, len(tokens))
		var wg sync.WaitGroup
		for i, token := range tokens {
			c := *m.Client
			c.Token = token
			wg.Go(func() { conns[i], errs[i] = c.DialPairing(soon(t), peer.Options{}) })
		}
		wg.Wait()
		won := 0
		for i, err := range errs {
			if err != nil {
				r.wantRefusal(t, "the second", err, r.RefusalBodies, 409, 401)
				continue
			}
			won++
			m.Token = tokens[i]
			c := m.end(conns[i], nil)
			c.barrier = peer.Frame{Type: peer.Resume, ClientID: m.ID, RequestID: m.ID}
			x := m.pairing()
			x.publish(c)
			x.deliver(dv, c)
			m.set(dv, "active")
			m.dial().settle()
		}
		if won != 1 {
			t.Fatalf("%d attempts were admitted", won)
		}
	}
}

// One request on many connections at once, with different payloads: one wins, all
// are acknowledged, the device sees one.
func raceRequest(t *testing.T, r *relay) {
	h, dv, m, c := r.couple(t)
	for range 10 {
		x := m.deal()
		const n = 6
		var wg sync.WaitGroup
		ends := make([]*end, n)
		for i := range ends {
			ends[i] = m.dial()
			other := m.dealWith(x.id)
			wg.Go(func() { _ = ends[i].conn.Send(soon(t), other.message(peer.Request)) })
		}
		wg.Wait()
		for _, e := range ends {
			e.want(x.ack(peer.Request))
		}
		f := dv.next("the request")
		if f.Type != peer.Message || f.RequestID != x.id {
			t.Fatalf("the device gets %s", f)
		}
		x.payloads[peer.Request] = f.Payload
		dv.settle()
		dv.drop()
		dv = h.open(x.delivery(peer.Request)) // that one, and no other
		dv.send(x.ack(peer.Request))
		dv.settle()
		c.wantState(x, "open", "delivered", "absent", "absent")
		for _, e := range ends {
			e.drop()
		}
	}
}

// The device answers while the client gives up.
func raceCompletion(t *testing.T, r *relay) {
	h, dv, m, c := r.couple(t)
	for range 20 {
		x := m.deal()
		x.publish(c)
		x.deliver(dv, c)
		var wg sync.WaitGroup
		wg.Go(func() { _ = dv.conn.Send(soon(t), x.message(peer.Response)) })
		wg.Go(func() { _ = c.conn.Send(soon(t), x.message(peer.Completion)) })
		wg.Wait()
		c.mayGet(x.delivery(peer.Response))
		c.want(x.ack(peer.Completion))
		dv.mayGet(x.ack(peer.Response), x.inactive(peer.Response), x.inactive(""))
		dv.want(x.delivery(peer.Completion))
		dv.send(x.ack(peer.Completion))
		c.want(x.receipt(peer.Completion))
		c.send(x.resume())
		f := c.next("state")
		if f.Type != peer.State || f.Exchange != "settled" || f.Response == "accepted" || f.Response == "delivered" {
			t.Fatalf("the state is %s", f)
		}
	}
	dv.settle()
	h.open()
}

// After client_state revoked, nothing of the client reaches the device any more, but
// for what was in flight; and nothing waits for it.
func raceRevoked(t *testing.T, r *relay) {
	h := r.home(t)
	dv := h.open()
	for range 10 {
		m := h.pair(dv)
		c := m.dial()
		ctx := soon(t)
		go func() {
			for range 100 {
				if c.conn.Send(ctx, m.deal().message(peer.Request)) != nil {
					return
				}
			}
		}()
		dv.next("the first")
		dv.send(peer.Frame{Type: peer.SetClientState, ClientID: m.ID, State: "revoked"})
		for keyOf(dv.next("client_state")) != keyOf(m.stateFrame("revoked")) {
		}
		c.wantEnd(4003)
		never := m.deal()
		dv.send(never.resume())
		for f := dv.next("inactive"); keyOf(f) != keyOf(never.inactive("")); f = dv.next("inactive") {
			if !r.Processes || f.Type != peer.Message {
				t.Fatalf("after the revocation the device gets %s", f)
			}
		}
		dv = h.open()
	}
}

// The device comes and goes while requests come in: none is lost, each is accepted
// once it has been acknowledged.
func raceDevices(t *testing.T, r *relay) {
	h := r.home(t)
	dv := h.open()
	m := h.pair(dv)
	dv.close()
	session := m.Start(t.Context(), peer.SessionOptions{})
	defer session.Stop()
	const n = 40
	var exchanges []*peer.Exchange
	done := make(chan error, 1)
	go func() {
		for range n {
			x := session.Begin(newID(), r.payload("request"))
			exchanges = append(exchanges, x)
			if err := x.Accepted(soon(t)); err != nil {
				done <- err
				return
			}
		}
		done <- nil
	}()
	seen := make(map[string]bool)
	for i := 0; len(seen) < n; i++ {
		e := h.dial()
		for range 5 + i%9 {
			f, err := e.frame()
			if err != nil {
				t.Fatalf("after %d of %d: %v", len(seen), n, err)
			}
			if f.Type == peer.Message {
				seen[f.RequestID] = true
				e.send(peer.Frame{Type: peer.Ack, ClientID: f.ClientID, RequestID: f.RequestID, Kind: f.Kind})
			}
			if len(seen) == n {
				break
			}
		}
		switch i % 3 {
		case 0:
			e.drop()
		case 1:
			e.close()
		}
	}
	must(t, <-done)
	for _, x := range exchanges {
		if !seen[x.ID()] {
			t.Errorf("request %s is lost", x.ID())
		}
	}
}

// Requests and their completions come in while the device comes and goes: on no
// connection is there a completion before its request, unless the device has
// acknowledged that.
func raceOrder(t *testing.T, r *relay) {
	h := r.home(t)
	dv := h.open()
	m := h.pair(dv)
	dv.close()
	conn, err := m.Dial(soon(t), peer.Options{OnFrame: func(peer.Frame) {}})
	must(t, err)
	defer conn.Drop()
	const n = 60
	var all []*deal
	for range n {
		all = append(all, m.deal())
	}
	ctx := soon(t)
	sent := make(chan error, 1)
	go func() {
		for _, x := range all {
			for _, kind := range []string{peer.Request, peer.Completion} {
				if err := conn.Send(ctx, x.message(kind)); err != nil {
					sent <- err
					return
				}
			}
		}
		sent <- nil
	}()
	acked, done := make(map[string]bool), make(map[string]bool)
	for i := 0; len(done) < n; i++ {
		e := h.dial()
		here := make(map[string]bool)
		var came []string
		for range 3 + i%23 {
			f, err := e.frame()
			if err != nil {
				t.Fatalf("connection %d, with %d of %d done: %v; it has had %v; %s", i, len(done), n, err, came, m.remains(all, done))
			}
			came = append(came, f.Type+f.Kind)
			if f.Type == peer.Message {
				switch {
				case f.Kind == peer.Request:
					here[f.RequestID] = true
				case !here[f.RequestID] && !acked[f.RequestID]:
					t.Fatalf("on connection %d a completion comes before its request", i)
				default:
					done[f.RequestID] = true
				}
				// Some are acknowledged at once, some when they come again.
				if f.Kind == peer.Completion || i%3 > 0 {
					e.send(peer.Frame{Type: peer.Ack, ClientID: f.ClientID, RequestID: f.RequestID, Kind: f.Kind})
					acked[f.RequestID] = acked[f.RequestID] || f.Kind == peer.Request
				}
			}
			if len(done) == n || f.Type == peer.CaughtUp && (i%2 == 0 || i%3 == 0) {
				break
			}
		}
		e.drop()
	}
	must(t, <-sent)
}

// remains is what the relay says about the first exchange that is not done.
func (m *member) remains(all []*deal, done map[string]bool) string {
	for i, x := range all {
		if !done[x.id] {
			return fmt.Sprintf("number %d is %s", i, m.autopsy(soon(m.h.t), x))
		}
	}
	return "nothing remains"
}
