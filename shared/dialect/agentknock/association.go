package agentknock

import (
	"time"

	"blindpost/shared/gateway"
	"blindpost/shared/relay"
)

// An exchange belongs to the connections on which its client has published or resumed
// it. One would be enough if it were known which: but frames of two connections come in
// any order, and of a connection whose network has vanished nobody knows that it is
// dead. So the last few get receipts and responses, and who is dead does not hear it.

// maxConns is how many connections of its client an exchange is associated with.
const maxConns = 4

// connAttrs are the attributes that hold them.
var connAttrs = [maxConns]string{"cn", "cn1", "cn2", "cn3"}

// associate puts a connection first. Those that the front knows to be gone are left out.
func (x *record) associate(c gateway.Conn, at time.Time, gone func(gateway.Conn) bool) {
	conns := []gateway.Conn{c}
	for _, other := range x.Conns {
		if other != c && len(conns) < maxConns && !gone(other) {
			conns = append(conns, other)
		}
	}
	x.Conns = conns
	if at.After(x.ConnAt) {
		x.ConnAt = at
	}
}

// remind reports whether the device is to be sent once more what it has not acked, and
// notes it. That is done once on each of its connections, or else a client could have
// it sent as often as it likes.
func (x *record) remind(device *relay.Member) bool {
	if device == nil || device.Conn == "" || !x.Live() {
		return false
	}
	// Twice the epoch, and one more for a completion.
	mark := 2 * device.Epoch
	switch {
	case x.Request == Accepted && takesMessages(device):
	case x.Request == Delivered && x.Completion == Accepted && greeted(device):
		mark++
	default:
		return false
	}
	if x.Reminded == mark {
		return false
	}
	x.Reminded = mark
	return true
}
