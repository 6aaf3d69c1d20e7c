package sim

import (
	"bytes"
	"fmt"

	peer "blindpost/shared/client/agentknock"
)

// deal is one exchange, as its client and its device know it.
type deal struct {
	id     string
	client *client
	// clientID is what the client was called when it began it.
	clientID string
	pairing  bool
	abort    bool // the client completes without waiting for a response
	// phantom is an exchange of which the client has sent only the completion.
	phantom bool

	// All payloads that were ever sent, by kind: which of them counts is for the relay
	// to decide.
	sent map[string][][]byte
	// sentOn are the connections on which the client has sent a message.
	sentOn map[string][]*line

	// Of the client.
	acked, completed bool
	over             bool // inactive, or refused for good
	response         []byte

	// Of the device.
	taken    map[string][]byte
	owes     map[string]bool // messages that it has and has not acked
	told     map[string]bool // acks that it has sent
	said     bool            // its response
	answered bool            // the relay has its response, or wants none
}

func (w *world) newDeal(c *client, id string) *deal {
	x := &deal{
		id: id, client: c, clientID: c.id, abort: w.e.Chance(w.plan.abort),
		sentOn: map[string][]*line{}, sent: map[string][][]byte{}, taken: map[string][]byte{}, owes: map[string]bool{}, told: map[string]bool{},
	}
	w.deals[id] = x
	w.order = append(w.order, x)
	return x
}

func (x *deal) String() string { return fmt.Sprintf("%s of %v", x.id, x.client) }

// frame makes a frame about the exchange. A message has the payload that it had the
// first time, or now and then another one.
func (x *deal) frame(typ, kind string) peer.Frame {
	f := peer.Frame{Type: typ, ClientID: x.clientID, RequestID: x.id, Kind: kind}
	if typ != peer.Message {
		return f
	}
	w := x.client.world
	if len(x.sent[kind]) == 0 || w.e.Chance(200) {
		x.sent[kind] = append(x.sent[kind], w.newPayload())
	}
	all := x.sent[kind]
	f.Payload = all[len(all)-1]
	return f
}

// wasSent reports whether a payload is one that the other side has sent.
func (x *deal) wasSent(kind string, payload []byte) bool {
	for _, p := range x.sent[kind] {
		if bytes.Equal(p, payload) {
			return true
		}
	}
	return false
}

// finished says that the client has nothing more to do with it.
func (x *deal) finished() bool { return x.completed || x.over }
