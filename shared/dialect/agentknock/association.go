package agentknock

import (
	"time"

	"blindpost/shared/gateway"
	"blindpost/shared/relay"
)

// An exchange is associated with the connections on which its client has published or
// resumed it. The newest would be enough if it were known: but frames of two connections
// come in any order, and a connection whose network is gone looks alive. So the last few
// connections get receipts and responses.

// maxConns is how many connections of its client an exchange is associated with.
const maxConns = 4

// connAttrs are the attributes that hold them.
var connAttrs = [maxConns]string{"cn", "cn1", "cn2", "cn3"}

// associate puts a connection first, and drops those that the front knows to be gone.
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

// remind reports whether the message that the device has not acked is to be posted again,
// and notes that it was. That happens once per message and connection of the device:
// otherwise a client could cause any number of posts.
func (x *record) remind(device *relay.Member) bool {
	if device == nil || device.Conn == "" || !x.Live() {
		return false
	}
	// The mark is twice the epoch for a request, and one more for a completion.
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
