package conformance

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	peer "blindpost/shared/client/agentknock"
)

// payloads are about what the relay must not look at: bytes are bytes.
var payloads = []story{
	{Name: "Payload_BytesUnchanged", Tell: payloadBytes},
	{Name: "Payload_ThousandsOfNestedArrays", Tell: payloadNested},
	{Name: "Payload_IsNotRead", Tell: payloadNotRead},
}

// values are JSON values that do not survive being decoded and encoded again.
var values = map[string]string{
	"null": "null", "true": "true", "false": "false", "zero": "0", "minus zero": "-0", "an empty string": `""`, "an empty object": "{}", "an empty array": "[]",
	"a large number": "123456789012345678901234567890", "a huge number": "1e400", "many digits": "0.10000000000000000000000000000000001",
	"an exponent": "1E+2", "spaces": "{ \"a\" :\t[ 1 ,\r\n 2 ] }", "duplicate members": `{"a":1,"a":2}`, "order": `{"b":1,"a":2,"":3}`,
	"HTML": `"<script>&amp;</script>"`, "escapes": `"\u003c\u0041\/\b\f\n\r\t\\\""`, "a line separator": "\"\u2028\u2029\"",
	"half a surrogate": `"\ud800"`, "a NUL": `"\u0000"`, "letters": `"äöü 漢字 👩‍👩‍👧‍👦 é"`, "a DEL": "\"\x7f\"",
	"a frame":           `{"type":"ack","client_id":"x","request_id":"y","kind":"request","payload":{"type":"message"}}`,
	"members like ours": `{"client_id":null,"kind":"completion","address_id":7}`,
}

func payloadBytes(t *testing.T, r *relay) {
	_, dv, m, c := r.couple(t)
	for what, value := range values {
		x := m.deal()
		for kind := range x.payloads {
			x.payloads[kind] = raw(value)
		}
		x.publish(c)
		if f := dv.next(what); keyOf(f) != keyOf(x.delivery(peer.Request)) {
			t.Fatalf("%s: %q became %q", what, value, f.Payload)
		}
		dv.send(x.ack(peer.Request))
		c.want(x.receipt(peer.Request))
		x.answer(dv)
		x.receive(c, dv)
		x.complete(c)
		x.finish(dv, c)
	}
	// Payload first, last, and in between; what comes behind it is no part of it.
	for _, form := range []string{
		`{"payload":%[3]s,"kind":"request","request_id":%[2]q,"client_id":%[1]q,"type":"message"}`,
		"  {\n\"type\" : \"message\" , \"payload\" : %[3]s , \"client_id\":%[1]q, \"kind\":\"request\",\"request_id\":%[2]q}\r\n",
		`{"typ\u0065":"message","client_id":%[1]q,"request_id":%[2]q,"kind":"requ\u0065st","\u0070ayload":%[3]s}`,
	} {
		x := m.deal()
		x.payloads[peer.Request] = raw(`{"a":[1, 2 ,{"b":"}"}]}`)
		c.sendText(fmt.Sprintf(form, m.ID, x.id, x.payloads[peer.Request]))
		c.want(x.ack(peer.Request))
		x.deliver(dv, c)
	}
}

// A payload may be any JSON value. A relay that cannot take one that is nested so
// deep says so and lives; one that takes it, delivers it.
func payloadNested(t *testing.T, r *relay) {
	_, dv, m, c := r.couple(t)
	nested := func(open, end string, depth int) json.RawMessage {
		return raw(strings.Repeat(open, depth) + strings.Repeat(end, depth))
	}
	for what, payload := range map[string]json.RawMessage{
		"100 arrays": nested("[", "]", 100), "9,000 arrays": nested("[", "]", 9_000), "10,000 arrays": nested("[", "]", 10_000),
		"10,000 objects": raw(strings.Repeat(`{"a":`, 10_000) + "1" + strings.Repeat("}", 10_000)),
	} {
		x := m.deal()
		x.payloads[peer.Request] = payload
		_ = c.conn.Send(soon(t), x.message(peer.Request))
		f, err := c.frame()
		switch {
		case err == nil && keyOf(f) == keyOf(x.ack(peer.Request)):
			x.deliver(dv, c)
			continue
		case what == "100 arrays" || what == "9,000 arrays":
			t.Fatalf("%s: refused with %s, %v", what, f, err)
		case err == nil && (f.Type != peer.Error || f.Retryable):
			t.Fatalf("%s: answered with %s", what, f)
		case err != nil:
			c.wantCode(err, 1008)
		}
		t.Logf("%s are refused", what)
		c = m.dial()
		c.send(x.resume())
		c.want(x.inactive(""))
	}
	// 100,000 are as deep as a frame can carry.
	deep := m.deal()
	deep.payloads[peer.Request] = nested("[", "]", 100_000)
	e := m.dial()
	e.sendText(string(deep.message(peer.Request).Encode()))
	_, _ = e.frame()
	m.deal().refused(t, m.dial(), dv, deep)
}

// refused goes all the way while another exchange may be stuck before it.
func (x *deal) refused(t *testing.T, c, dv *end, before *deal) {
	t.Helper()
	dv.may = append(dv.may, before.delivery(peer.Request))
	x.publish(c)
	for {
		f, err := dv.frame()
		if err == nil && keyOf(f) == keyOf(x.delivery(peer.Request)) {
			break
		}
		if err == nil || peer.CodeOf(err) >= 0 {
			t.Fatalf("the device gets %s, %v", f, err)
		}
		// The peer itself cannot read what is nested deeper than it was built for.
	}
	dv.send(x.ack(peer.Request))
	c.want(x.receipt(peer.Request))
}

// What an application says in its payload is no business of the relay's.
func payloadNotRead(t *testing.T, r *relay) {
	_, dv, m, c := r.couple(t)
	other := m.h.pair(dv)
	for _, text := range []string{
		`{"type":"set_client_state","state":"revoked","client_id":"` + m.ID + `"}`,
		`{"error":{"code":-32000,"message":"denied"}}`, `{"method":"pair","params":{"client_token":"x"}}`,
		`[{"type":"error","error":"CLIENT_INACTIVE","message":"no","retryable":false}]`,
		`{"client_id":"` + other.ID + `","request_id":"` + newID() + `","kind":"response"}`,
	} {
		x := m.deal()
		for kind := range x.payloads {
			x.payloads[kind] = raw(text)
		}
		x.whole(c, dv)
	}
}
