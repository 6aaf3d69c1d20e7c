package conformance

import (
	"fmt"
	"strings"
	"testing"

	peer "blindpost/shared/client/agentknock"
)

// clientKinds are the rows of "Message kinds and client role", clientFrames the
// rules of "Frame encoding" for what a client sends.
var (
	clientKinds = []story{
		{Name: "ClientKinds_Request", Tell: kindRequest},
		{Name: "ClientKinds_Response", Tell: kindResponse},
		{Name: "ClientKinds_Completion", Tell: kindCompletion},
		{Name: "ClientKinds_Forbidden", Tell: kindForbidden},
	}
	clientFrames = []story{
		{Name: "ClientFrames_Malformed", Tell: framesMalformed},
		{Name: "ClientFrames_UnknownMembersAreIgnored", Tell: framesUnknownMembers},
		{Name: "ClientFrames_MissingPayloadIsNotNull", Tell: framesNull},
		{Name: "ClientFrames_LargestFrame", Tell: framesLargest, Needs: carries(peer.MaxFrame)},
		{Name: "ClientFrames_Fragmented", Tell: framesFragmented},
	}
)

// A client publishes a request, the device accepts it for delivery.
func kindRequest(t *testing.T, r *relay) {
	_, dv, m, c := r.couple(t)
	x := m.deal()
	x.publish(c)
	x.deliver(dv, c)
	c.settle()
	dv.settle()
}

// The device publishes one response, the client accepts and acknowledges it.
func kindResponse(t *testing.T, r *relay) {
	h, dv, m, c := r.couple(t)
	x := m.deal()
	x.publish(c)
	x.deliver(dv, c)
	x.answer(dv)
	x.receive(c, dv)
	c.settle()
	dv.close()
	h.open()
}

// A completion may come after a response, before one, and before anything.
func kindCompletion(t *testing.T, r *relay) {
	_, dv, m, c := r.couple(t)
	m.deal().whole(c, dv)
	x := m.deal() // aborted
	x.publish(c)
	x.deliver(dv, c)
	x.complete(c)
	x.finish(dv, c)
	c.settle()
	dv.settle()
}

// forbidden are the frames that only others may send.
func forbidden(x *deal, role peer.Role) []peer.Frame {
	all := []peer.Frame{
		x.receipt(peer.Request), x.receipt(peer.Response), x.receipt(peer.Completion), x.inactive(""), x.inactive(peer.Request),
		x.state("open", "accepted", "absent", "absent"), x.refusal("INVALID_FRAME", false), x.m.stateFrame("active"),
		{Type: peer.PushRegistration, State: "registered"}, {Type: peer.CaughtUp},
	}
	if role == peer.ClientRole {
		return append(all, x.message(peer.Response), x.ack(peer.Request), x.ack(peer.Completion),
			peer.Frame{Type: peer.SetClientState, ClientID: x.m.ID, State: "active"})
	}
	return append(all, x.message(peer.Request), x.message(peer.Completion), x.ack(peer.Response))
}

func kindForbidden(t *testing.T, r *relay) {
	_, dv, m, c := r.couple(t)
	x := m.deal()
	x.publish(c)
	x.deliver(dv, c)
	for _, f := range forbidden(x, peer.ClientRole) {
		e := m.dial()
		e.send(f)
		e.wantRejected(f.Type + " " + f.Kind)
		e.drop()
	}
	dv.settle()
	c.settle()
	c.send(x.resume())
	c.want(x.state("open", "delivered", "absent", "absent"))
}

// malformed are texts that are no frames, for whatever role. ids is the members
// client_id and request_id of an exchange that may be.
func malformed(clientID, requestID string) map[string]string {
	ids := fmt.Sprintf(`"client_id":%q,"request_id":%q`, clientID, requestID)
	resume := `{"type":"resume",` + ids
	return map[string]string{
		"nothing":                      "",
		"a space":                      " ",
		"null":                         "null",
		"a number":                     "7",
		"a string":                     `"resume"`,
		"an array":                     "[" + resume + "}]",
		"no JSON":                      "resume",
		"half an object":               resume,
		"two objects":                  resume + "}" + resume + "}",
		"a trailing comma":             resume + ",}",
		"a comment":                    resume + "/**/}",
		"single quotes":                "{'type':'resume'}",
		"a BOM":                        "\ufeff" + resume + "}",
		"no type":                      "{" + ids + "}",
		"type null":                    `{"type":null,` + ids + "}",
		"type 7":                       `{"type":7,` + ids + "}",
		"type array":                   `{"type":["resume"],` + ids + "}",
		"type in upper case":           `{"type":"RESUME",` + ids + "}",
		"type is Type":                 `{"Type":"resume",` + ids + "}",
		"type is empty":                `{"type":"",` + ids + "}",
		"an unknown type":              `{"type":"nonsense",` + ids + "}",
		"no client_id":                 fmt.Sprintf(`{"type":"resume","request_id":%q}`, requestID),
		"no request_id":                fmt.Sprintf(`{"type":"resume","client_id":%q}`, clientID),
		"client_id 7":                  fmt.Sprintf(`{"type":"resume","client_id":7,"request_id":%q}`, requestID),
		"client_id null":               fmt.Sprintf(`{"type":"resume","client_id":null,"request_id":%q}`, requestID),
		"request_id object":            fmt.Sprintf(`{"type":"resume","client_id":%q,"request_id":{}}`, clientID),
		"request_id null":              fmt.Sprintf(`{"type":"resume","client_id":%q,"request_id":null}`, clientID),
		"ack without kind":             `{"type":"ack",` + ids + "}",
		"ack with kind null":           `{"type":"ack","kind":null,` + ids + "}",
		"ack of nothing":               `{"type":"ack","kind":"nothing",` + ids + "}",
		"no kind":                      `{"type":"message","payload":1,` + ids + "}",
		"kind 7":                       `{"type":"message","kind":7,"payload":1,` + ids + "}",
		"an unknown kind":              `{"type":"message","kind":"reply","payload":1,` + ids + "}",
		"kind in upper case":           `{"type":"message","kind":"REQUEST","payload":1,` + ids + "}",
		"a request without payload":    `{"type":"message","kind":"request",` + ids + "}",
		"a response without payload":   `{"type":"message","kind":"response",` + ids + "}",
		"a completion without payload": `{"type":"message","kind":"completion",` + ids + "}",
		"payload is PAYLOAD":           `{"type":"message","kind":"request","PAYLOAD":1,` + ids + "}",
		"a broken payload":             `{"type":"message","kind":"request","payload":{"a":},` + ids + "}",
		"a payload of NaN":             `{"type":"message","kind":"request","payload":NaN,` + ids + "}",
		"an unescaped newline":         "{\"type\":\"message\",\"kind\":\"request\",\"payload\":\"a\nb\"," + ids + "}",
		"a million brackets":           strings.Repeat("[", 100_000),
		"a frame that opens and opens": `{"type":"message",` + ids + `,"kind":"request","payload":` + strings.Repeat(`{"a":`, 40_000),
	}
}

func framesMalformed(t *testing.T, r *relay) {
	h, dv, m, c := r.couple(t)
	for what, text := range malformed(m.ID, newID()) {
		e := m.dial()
		e.sendText(text)
		e.wantRejected(what)
		e.drop()
	}
	dv.settle()
	c.settle()
	h.open()
}

// A receiver ignores unknown members, whatever they look like.
func framesUnknownMembers(t *testing.T, r *relay) {
	_, dv, m, c := r.couple(t)
	x := m.deal()
	with := func(f peer.Frame) string {
		text := string(f.Encode())
		return `{"future":{"type":"resume","deep":[[[]]]},"retry":null,"Type":"nonsense","KIND":7,"payloads":[1],` + text[1:len(text)-1] +
			`,"type ":"ack","error":"no","state":"revoked","":"","ünïcode":"x"}`
	}
	c.sendText(with(x.message(peer.Request)))
	c.want(x.ack(peer.Request))
	dv.want(x.delivery(peer.Request))
	dv.sendText(with(x.ack(peer.Request)))
	c.want(x.receipt(peer.Request))
	dv.sendText(with(x.message(peer.Response)))
	dv.want(x.ack(peer.Response))
	c.want(x.delivery(peer.Response))
	c.sendText(with(x.ack(peer.Response)))
	dv.want(x.receipt(peer.Response))
	c.sendText(with(x.resume()))
	c.want(x.state("open", "delivered", "delivered", "absent"))
}

// The presence of payload is significant, its value is not.
func framesNull(t *testing.T, r *relay) {
	_, dv, m, c := r.couple(t)
	x := m.deal()
	for kind := range x.payloads {
		x.payloads[kind] = raw("null")
	}
	x.whole(c, dv)
	y := m.deal()
	bare := y.message(peer.Request)
	bare.Payload = nil
	c.send(bare)
	if c.wantRejected("a message without payload") {
		c = m.dial()
	}
	c.send(y.resume())
	c.want(y.inactive(""))
	dv.settle()
}

// 256 KiB, to the byte, both ways.
func framesLargest(t *testing.T, r *relay) {
	_, dv, m, c := r.couple(t)
	x := m.deal()
	for _, kind := range []string{peer.Request, peer.Response, peer.Completion} {
		x.payloads[kind] = raw(`""`)
		room := peer.MaxFrame - len(x.message(kind).Encode())
		x.payloads[kind] = raw(`"` + strings.Repeat("x", room) + `"`)
		if size := len(x.message(kind).Encode()); size != peer.MaxFrame {
			t.Fatalf("the frame has %d bytes", size)
		}
	}
	x.whole(c, dv)
}

// A message may come in pieces; half of one is none.
func framesFragmented(t *testing.T, r *relay) {
	_, dv, m, c := r.couple(t)
	x := m.deal()
	e := m.dial()
	text := x.message(peer.Request).Encode()
	must(t, e.conn.SendPart(soon(t), text[:len(text)/2]))
	e.drop()
	c.send(x.resume())
	c.want(x.inactive(""))
	dv.settle()
}
