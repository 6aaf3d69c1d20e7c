package conformance

import (
	"encoding/json"
	"fmt"

	peer "blindpost/shared/client/agentknock"
)

// deal is one exchange: its frames, and its steps.
type deal struct {
	m        *member
	id       string
	address  string // of an initial pairing
	payloads map[string]json.RawMessage
}

// deal makes an exchange that nobody knows yet.
func (m *member) deal() *deal { return m.dealWith(newID()) }

func (m *member) dealWith(id string) *deal {
	x := &deal{m: m, id: id, payloads: make(map[string]json.RawMessage)}
	for _, kind := range []string{peer.Request, peer.Response, peer.Completion} {
		x.payloads[kind] = m.h.r.payload(kind)
	}
	return x
}

// pairing is the exchange of the client's initial pairing.
func (m *member) pairing() *deal {
	x := m.dealWith(m.ID)
	x.address = m.AddressID
	return x
}

// payload makes a payload that must not be found in a log.
func (r *relay) payload(label string) json.RawMessage {
	secret := peer.TokenOf(18)
	r.secrets.Add("a payload", []byte(secret))
	return raw(fmt.Sprintf(`{"envelope": "%s", "of": %q}`, secret, label))
}

func (x *deal) frame(kind string) peer.Frame {
	return peer.Frame{Type: peer.Message, ClientID: x.m.ID, RequestID: x.id, Kind: kind}
}

// message is the message as it is published.
func (x *deal) message(kind string) peer.Frame {
	f := x.frame(kind)
	f.Payload = x.payloads[kind]
	return f
}

// delivery is the message as the other side gets it.
func (x *deal) delivery(kind string) peer.Frame {
	f := x.message(kind)
	if kind != peer.Response {
		f.AddressID = x.address
	}
	return f
}

func (x *deal) ack(kind string) peer.Frame {
	f := x.frame(kind)
	f.Type = peer.Ack
	return f
}

func (x *deal) receipt(kind string) peer.Frame {
	f := x.frame(kind)
	f.Type = peer.Receipt
	return f
}

func (x *deal) resume() peer.Frame {
	return peer.Frame{Type: peer.Resume, ClientID: x.m.ID, RequestID: x.id}
}

// inactive is the end of the exchange, or of one message of it.
func (x *deal) inactive(kind string) peer.Frame {
	f := x.frame(kind)
	f.Type = peer.Inactive
	return f
}

// state is a snapshot.
func (x *deal) state(exchange, request, response, completion string) peer.Frame {
	f := x.frame("")
	f.Type, f.Snapshot = peer.State, peer.Snapshot{Exchange: exchange, Request: request, Response: response, Completion: completion}
	return f
}

// refusal is an error about the exchange.
func (x *deal) refusal(code string, retryable bool) peer.Frame {
	f := x.frame("")
	f.Type, f.Code, f.Retryable = peer.Error, code, retryable
	return f
}

// The steps of an exchange, in their order.

// publish sends the request to the relay.
func (x *deal) publish(c *end) {
	c.t.Helper()
	c.send(x.message(peer.Request))
	c.want(x.ack(peer.Request))
}

// deliver brings the request to the device.
func (x *deal) deliver(dv, c *end) {
	c.t.Helper()
	dv.want(x.delivery(peer.Request))
	dv.send(x.ack(peer.Request))
	c.want(x.receipt(peer.Request))
}

// answer sends the response to the relay.
func (x *deal) answer(dv *end) {
	dv.t.Helper()
	dv.send(x.message(peer.Response))
	dv.want(x.ack(peer.Response))
}

// receive brings the response to the client.
func (x *deal) receive(c, dv *end) {
	c.t.Helper()
	c.want(x.delivery(peer.Response))
	c.send(x.ack(peer.Response))
	dv.want(x.receipt(peer.Response))
}

// complete sends the completion to the relay.
func (x *deal) complete(c *end) {
	c.t.Helper()
	c.send(x.message(peer.Completion))
	c.want(x.ack(peer.Completion))
}

// finish brings the completion to the device.
func (x *deal) finish(dv, c *end) {
	c.t.Helper()
	dv.want(x.delivery(peer.Completion))
	dv.send(x.ack(peer.Completion))
	c.want(x.receipt(peer.Completion))
}

// whole goes all the way.
func (x *deal) whole(c, dv *end) {
	c.t.Helper()
	x.publish(c)
	x.deliver(dv, c)
	x.answer(dv)
	x.receive(c, dv)
	x.complete(c)
	x.finish(dv, c)
}
