package conformance

import (
	"strings"
	"testing"

	peer "blindpost/shared/client/agentknock"
)

// clientErrors are the rows of "Error frame". INTERNAL_ERROR cannot be provoked from
// outside, RATE_LIMITED and CAPACITY_EXCEEDED are told with the limits.
// clientClosures are the rows of "WebSocket closure": 1011 cannot be provoked, and
// nobody has told the relay to suspend its service (4004).
var (
	clientErrors = []story{
		{Name: "ClientError_INVALID_FRAME", Tell: errorInvalidFrame},
		{Name: "ClientError_INVALID_REQUEST_ID", Tell: identifierTime},
		{Name: "ClientError_REQUEST_ID_CONFLICT", Tell: errorConflict},
		{Name: "ClientError_CLIENT_INACTIVE", Tell: errorInactive},
		{Name: "ClientError_RATE_LIMITED", Tell: limitRate, Own: &fewNew},
		{Name: "ClientError_CAPACITY_EXCEEDED", Tell: limitCapacity, Own: &fewOpen},
	}
	clientClosures = []story{
		{Name: "ClientClosure_1008_Binary", Tell: closureBinary, Needs: binary},
		{Name: "ClientClosure_1008_Invalid", Tell: closureInvalid},
		{Name: "ClientClosure_1009_TooLarge", Tell: closureTooLarge, Needs: carries(peer.MaxFrame + 1)},
		{Name: "ClientClosure_1013_RateLimit", Tell: limitFrames, Own: &fewFrames},
		{Name: "ClientClosure_4002_Suspended", Tell: closureSuspended},
		{Name: "ClientClosure_4003_Revoked", Tell: closureRevoked},
		{Name: "ClientClosure_GoodbyeIsAnswered", Tell: closureGoodbye},
	}
)

// An error, if there is one before the connection is closed, has its code.
func errorInvalidFrame(t *testing.T, r *relay) {
	_, _, m, _ := r.couple(t)
	for _, text := range []string{"{}", `{"type":"nonsense"}`, `{"type":"resume"}`, "nonsense"} {
		e := m.dial()
		e.sendText(text)
		f, err := e.frame()
		switch {
		case err != nil:
			e.wantCode(err, 1008)
		case f.Type != peer.Error || f.Code != "INVALID_FRAME" || f.Retryable:
			t.Errorf("%s is answered with %s", text, f)
		}
	}
}

// Request ids are unique. What the relay makes of one that two clients use is open:
// a conflict, or two exchanges that have nothing to do with each other.
func errorConflict(t *testing.T, r *relay) {
	h, dv, m, c := r.couple(t)
	other := h.pair(dv)
	oc := other.dial()
	x := m.deal()
	x.publish(c)
	x.deliver(dv, c)
	y := other.dealWith(x.id)
	oc.send(y.message(peer.Request))
	switch f := oc.next("ack or REQUEST_ID_CONFLICT"); {
	case keyOf(f) == keyOf(y.ack(peer.Request)):
		y.deliver(dv, oc)
		y.answer(dv)
		y.receive(oc, dv)
	case f.Type != peer.Error || f.Code != "REQUEST_ID_CONFLICT" || f.Retryable || f.RequestID != y.id || f.ClientID != other.ID:
		t.Errorf("the id of another exchange is answered with %s", f)
	}
	x.answer(dv)
	x.receive(c, dv)
	oc.settle()
	// Nor has it been taken away by a completion.
	oc = other.dial()
	oc.send(y.message(peer.Completion))
	_, _ = oc.frame()
	c.wantState(x, "open", "delivered", "delivered", "absent")
}

// A client that is not active any more is told so, or just hung up on.
func errorInactive(t *testing.T, r *relay) {
	_, dv, m, c := r.couple(t)
	dv.send(peer.Frame{Type: peer.SetClientState, ClientID: m.ID, State: "suspended"})
	x := m.deal()
	_ = c.conn.Send(soon(t), x.message(peer.Request))
	for {
		f, err := c.frame()
		if err != nil {
			c.wantCode(err, 4002)
			break
		}
		switch {
		case keyOf(f) == keyOf(x.ack(peer.Request)): // it was quicker
		case f.Type == peer.Error && f.Code == "CLIENT_INACTIVE" && !f.Retryable:
		default:
			t.Errorf("a suspended client gets %s", f)
		}
	}
}

func closureBinary(t *testing.T, r *relay) {
	h, dv, m, c := r.couple(t)
	x := m.deal()
	for _, data := range [][]byte{x.message(peer.Request).Encode(), {}, {0}, {0xff, 0xfe}} {
		e := m.dial()
		must(t, e.conn.SendBinary(soon(t), data))
		e.wantEnd(1008)
	}
	c.send(x.resume())
	c.want(x.inactive(""))
	must(t, dv.conn.SendBinary(soon(t), []byte("{}")))
	dv.wantEnd(1008)
	h.open()
}

func closureInvalid(t *testing.T, r *relay) {
	h, _, m, _ := r.couple(t)
	for _, text := range []string{`{"type":"nonsense"}`, "[]", "x", string(m.deal().message(peer.Response).Encode())} {
		e := m.dial()
		e.sendText(text)
		e.wantEnd(1008)
	}
	dv := h.open()
	dv.sendText(`{"type":"nonsense"}`)
	dv.wantEnd(1008)
}

// One byte more than 256 KiB.
func closureTooLarge(t *testing.T, r *relay) {
	h, dv, m, c := r.couple(t)
	x := m.deal()
	pad := func(f peer.Frame, size int) string {
		text := string(f.Encode())
		return text + strings.Repeat(" ", size-len(text))
	}
	e := m.dial()
	e.sendText(pad(x.message(peer.Request), peer.MaxFrame+1))
	e.wantEnd(1009)
	c.send(x.resume())
	c.want(x.inactive(""))
	c.sendText(pad(x.message(peer.Request), peer.MaxFrame))
	c.want(x.ack(peer.Request))
	x.deliver(dv, c)
	dv.sendText(pad(x.message(peer.Response), peer.MaxFrame+1))
	dv.wantEnd(1009)
	h.open()
	c.wantState(x, "open", "delivered", "absent", "absent")
}

// Suspending closes the client's sockets, all of them, and it cannot come back.
func closureSuspended(t *testing.T, r *relay) {
	h, dv, m, c := r.couple(t)
	other := h.pair(dv)
	oc, c2 := other.dial(), m.dial()
	m.set(dv, "suspended")
	c.wantClosed(4002)
	c2.wantClosed(4002)
	r.refuses(t, "a suspended client", peer.ClientRole, m.Path(), m.Token, 403)
	oc.settle()
	m.set(dv, "active")
	m.deal().whole(m.dial(), dv)
}

func closureRevoked(t *testing.T, r *relay) {
	h, dv, m, c := r.couple(t)
	other := h.pair(dv)
	oc, c2 := other.dial(), m.dial()
	m.set(dv, "revoked")
	c.wantClosed(4003)
	c2.wantClosed(4003)
	r.refuses(t, "a revoked client", peer.ClientRole, m.Path(), m.Token, 401, 403, 404)
	r.refuses(t, "a revoked client that pairs", peer.ClientRole, m.PairingPath(), m.Token, 401, 403, 404, 409)
	oc.settle()
	dv.settle()
}

func closureGoodbye(t *testing.T, r *relay) {
	_, dv, m, c := r.couple(t)
	must(t, c.conn.Ping(soon(t))) // clients in the field give up without a pong
	must(t, dv.conn.Ping(soon(t)))
	c.close()
	c = m.dial()
	m.deal().whole(c, dv)
}
