package conformance

import (
	"testing"

	peer "blindpost/shared/client/agentknock"
)

// deviceClients are the states of a client and what they mean.
var deviceClients = []story{
	{Name: "DeviceClients_Transitions", Tell: clientStatesAll},
	{Name: "DeviceClients_Pending", Tell: clientPending},
	{Name: "DeviceClients_SuspendedWithOpenExchanges", Tell: clientSuspended},
	{Name: "DeviceClients_RevokedIsForgotten", Tell: clientRevoked},
	{Name: "DeviceClients_Unknown", Tell: clientUnknown},
}

// clientStatesAll goes through every pair of states.
func clientStatesAll(t *testing.T, r *relay) {
	allowed := map[string][]string{
		"pending": {"active", "revoked"}, "active": {"suspended", "revoked"}, "suspended": {"active", "revoked"}, "revoked": {"revoked"},
	}
	way := map[string][]string{"pending": nil, "active": {"active"}, "suspended": {"active", "suspended"}, "revoked": {"active", "revoked"}}
	for from, steps := range way {
		for _, to := range []string{"pending", "active", "suspended", "revoked"} {
			t.Run(from+" to "+to, func(t *testing.T) {
				h := r.home(t)
				dv := h.open()
				m, _, _ := h.introduce(dv)
				for _, state := range steps {
					m.set(dv, state)
				}
				dv.may = nil
				for _, state := range allowed[from] {
					if state == to {
						dv.seeAgain()
						m.set(dv, to)
						dv.settle()
						return
					}
				}
				dv.send(peer.Frame{Type: peer.SetClientState, ClientID: m.ID, State: to})
				// That pending cannot be set at all may as well be said of the frame.
				f, err := dv.frame()
				switch {
				case err != nil && to == "pending":
					dv.wantCode(err, 1008)
				case err != nil:
					t.Fatalf("the device wants INVALID_CLIENT_STATE: %v", err)
				case f.Type != peer.Error || f.ClientID != "" || f.RequestID != "" || f.Retryable:
					t.Errorf("the device gets %s", f)
				case f.Code != "INVALID_CLIENT_STATE" && (to != "pending" || f.Code != "INVALID_FRAME"):
					t.Errorf("the device gets %s", f)
				}
				dv = h.open()
				// And nothing has changed: the way on is that of the old state.
				next := allowed[from][0]
				m.set(dv, next)
			})
		}
	}
}

// A pending client has its pairing connection and nothing else.
func clientPending(t *testing.T, r *relay) {
	h := r.home(t)
	dv := h.open()
	m, c, x := h.introduce(dv)
	r.refuses(t, "a pending client", peer.ClientRole, m.Path(), m.Token, 403)
	x.answer(dv)
	x.receive(c, dv)
	m.set(dv, "revoked")
	c.wantEnd(4003)
	r.refuses(t, "a client that was never active", peer.ClientRole, m.Path(), m.Token, 401, 403, 404)
}

// A suspended client has its sockets closed. Its exchanges stay what they are, and
// go on when it is active again.
func clientSuspended(t *testing.T, r *relay) {
	h, dv, m, c := r.couple(t)
	unseen, taken := m.deal(), m.deal()
	taken.publish(c)
	taken.deliver(dv, c)
	unseen.publish(c)
	dv.want(unseen.delivery(peer.Request))
	m.set(dv, "suspended")
	c.wantClosed(4002)
	r.refuses(t, "a suspended client", peer.ClientRole, m.Path(), m.Token, 403)
	dv.settle()
	// What the device may do meanwhile is open, but for leaving the rails.
	dv.send(taken.resume())
	if f := dv.next("state"); f.Type != peer.State && f.Type != peer.Inactive {
		t.Errorf("a device that resumes gets %s", f)
	}
	m.set(dv, "active")
	c = m.dial()
	c.send(taken.resume())
	f := c.next("state")
	switch {
	case keyOf(f) == keyOf(taken.state("open", "delivered", "absent", "absent")):
		taken.answer(dv)
		taken.receive(c, dv)
		taken.complete(c)
		taken.finish(dv, c)
	case f.Type == peer.State && f.Exchange == "expired", f.Type == peer.Inactive:
		t.Log("suspending ended its exchanges")
	default:
		t.Errorf("after a suspension the state is %s", f)
	}
	dv.mayGet(unseen.delivery(peer.Request))
	m.deal().whole(c, dv)
	h.dial()
}

// Revoking forgets the client's token and ends its exchanges.
func clientRevoked(t *testing.T, r *relay) {
	h, dv, m, c := r.couple(t)
	x := m.deal()
	x.publish(c)
	dv.want(x.delivery(peer.Request))
	dv.mayGet(x.inactive(""), x.inactive(peer.Request))
	m.set(dv, "revoked")
	c.wantClosed(4003)
	r.refuses(t, "a revoked client", peer.ClientRole, m.Path(), m.Token, 401, 403, 404)
	r.refuses(t, "a revoked client's pairing", peer.ClientRole, m.PairingPath(), m.Token, 401, 403, 404, 409)
	dv.settle()
	dv.may = nil
	dv.send(x.message(peer.Response)) // nobody to give it to
	if f := dv.next("inactive"); (f.Type != peer.Inactive && f.Type != peer.Error) || f.Retryable {
		t.Errorf("a response to a revoked client is answered with %s", f)
	}
	dv.seeAgain()
	m.set(dv, "revoked") // again
	for _, state := range []string{"active", "suspended"} {
		dv.send(peer.Frame{Type: peer.SetClientState, ClientID: m.ID, State: state})
		dv.want(peer.Frame{Type: peer.Error, Code: "INVALID_CLIENT_STATE"})
	}
	h.open()
	// The same agent comes back as a new client.
	h.pair(h.open())
}

func clientUnknown(t *testing.T, r *relay) {
	h := r.home(t)
	dv := h.open()
	for _, state := range []string{"active", "suspended", "revoked"} {
		dv.send(peer.Frame{Type: peer.SetClientState, ClientID: newID(), State: state})
		f := dv.next("an error")
		if f.Type != peer.Error || f.Retryable || f.ClientID != "" {
			t.Errorf("the state of a client that there is not is answered with %s", f)
		}
	}
	dv.settle()
	h.pair(dv)
}
