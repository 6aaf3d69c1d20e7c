package conformance

import (
	"net/http"
	"testing"

	peer "blindpost/shared/client/agentknock"
)

// clientPairing are the statements of "Initial-pairing connection" and
// "Authenticated client connection".
var clientPairing = []story{
	{Name: "ClientPairing_WholeStory", Tell: pairingWhole},
	{Name: "ClientPairing_OneExchangeOnly", Tell: pairingOnly},
	{Name: "ClientPairing_IsResumed", Tell: pairingResumed},
	{Name: "ClientPairing_RefusedUpgradeAdmitsNothing", Tell: pairingRefused},
	{Name: "ClientPairing_WithoutPairingModeAnAttemptGoesOn", Tell: pairingDisabled},
	{Name: "ClientPairing_MayBeAborted", Tell: pairingAborted},
	{Name: "ClientPairing_TokenIsThatOfTheClient", Tell: pairingToken},
	{Name: "ClientConnection_SelectsNoOtherClient", Tell: connectionForeign},
	{Name: "ClientConnection_SeveralAtOnce", Tell: connectionSeveral},
}

func pairingWhole(t *testing.T, r *relay) {
	h := r.home(t)
	dv := h.open()
	m := h.pair(dv)
	m.deal().whole(m.dial(), dv)
}

// Every frame uses client_id = request_id.
func pairingOnly(t *testing.T, r *relay) {
	h := r.home(t)
	dv := h.open()
	m, c, x := h.introduce(dv)
	other := m.deal()
	c.send(other.message(peer.Request))
	if c.wantRejected("another exchange on a pairing connection") {
		c = m.dialPairing()
	}
	foreign := h.newMember().pairing()
	c.send(foreign.message(peer.Request))
	if c.wantRejected("another client on a pairing connection") {
		c = m.dialPairing()
	}
	c.send(x.resume())
	c.want(x.state("open", "delivered", "absent", "absent"))
	dv.settle()
}

func pairingResumed(t *testing.T, r *relay) {
	h := r.home(t)
	dv := h.open()
	m := h.newMember()
	dv.mayGet(m.stateFrame("pending"))
	x := m.pairing()
	c := m.dialPairing()
	c.drop() // before it has said anything
	c = m.dialPairing()
	x.publish(c)
	c.drop()
	dv.want(x.delivery(peer.Request))
	dv.send(x.ack(peer.Request))
	x.answer(dv)
	m.set(dv, "active")
	c = m.dialPairing()
	c.send(x.resume())
	c.want(x.state("open", "delivered", "accepted", "absent"))
	x.receive(c, dv)
	x.complete(c)
	x.finish(dv, c)
	// The same exchange from the authenticated side.
	c = m.dial()
	c.send(x.resume())
	c.want(x.state("settled", "delivered", "delivered", "delivered"))
}

func pairingRefused(t *testing.T, r *relay) {
	h := r.home(t)
	dv := h.open()
	must(t, h.device.SetPairing(soon(t), false))
	m := h.newMember()
	r.refuses(t, "an attempt", peer.ClientRole, m.PairingPath(), m.Token, http.StatusForbidden)
	must(t, h.device.SetPairing(soon(t), true))
	// Nothing was fixed: the id is free, for another token too.
	m.Token = h.newMember().Token
	dv.mayGet(m.stateFrame("pending"))
	c := m.dialPairing()
	x := m.pairing()
	x.publish(c)
	x.deliver(dv, c)
}

// While pairing is off, new attempts are refused. One that was admitted is none.
func pairingDisabled(t *testing.T, r *relay) {
	h := r.home(t)
	dv := h.open()
	m, c, x := h.introduce(dv)
	must(t, h.device.SetPairing(soon(t), false))
	c.drop()
	c = m.dialPairing()
	c.send(x.resume())
	c.want(x.state("open", "delivered", "absent", "absent"))
	x.answer(dv)
	x.receive(c, dv)
	must(t, h.device.SetPairing(soon(t), true))
}

func pairingAborted(t *testing.T, r *relay) {
	h := r.home(t)
	dv := h.open()
	_, c, x := h.introduce(dv)
	x.complete(c)
	x.finish(dv, c)
	c.send(x.resume())
	c.want(x.state("settled", "delivered", "absent", "delivered"))
}

func pairingToken(t *testing.T, r *relay) {
	h := r.home(t)
	dv := h.open()
	m := h.pair(dv)
	for what, token := range map[string]string{"a new one": peer.NewToken(), "the device's": h.device.Token} {
		r.refuses(t, "the client with "+what, peer.ClientRole, m.Path(), token, http.StatusUnauthorized)
	}
	m.dial().settle()
}

// A client_id inside a frame must match the connection.
func connectionForeign(t *testing.T, r *relay) {
	h, dv, m, c := r.couple(t)
	other := h.pair(dv)
	x := other.deal()
	victim := other.dial()
	x.publish(victim)
	x.deliver(dv, victim)
	x.answer(dv)
	victim.want(x.delivery(peer.Response))
	for _, f := range []peer.Frame{
		x.message(peer.Completion), x.ack(peer.Response), x.resume(), other.deal().message(peer.Request),
		{Type: peer.Message, ClientID: newID(), RequestID: newID(), Kind: peer.Request, Payload: raw("null")},
	} {
		c.send(f)
		if c.wantRejected(f.Type + " of another client") {
			c = m.dial()
		}
	}
	dv.settle()
	victim.settle()
	victim.send(x.resume())
	victim.want(x.state("open", "delivered", "accepted", "absent"))
}

// A client may have several connections: nothing says that a new one ends the old,
// and each is associated with the exchanges that it has published or resumed.
func connectionSeveral(t *testing.T, r *relay) {
	_, dv, m, c1 := r.couple(t)
	c2 := m.dial()
	x, y := m.deal(), m.deal()
	x.publish(c1)
	x.deliver(dv, c1)
	y.publish(c2)
	y.deliver(dv, c2)
	y.answer(dv)
	y.receive(c2, dv)
	x.answer(dv)
	x.receive(c1, dv)
	x.complete(c1)
	x.finish(dv, c1)
	y.complete(c2)
	y.finish(dv, c2)
	c1.settle()
	c2.settle()
}
