package agentknock

import (
	"strings"
	"testing"

	peer "blindpost/shared/client/agentknock"
)

// A completion that arrives while the device's connection is only opening neither
// comes before push_registration nor makes the relay take the device for lost.
func TestWhileADeviceConnects(t *testing.T) {
	for _, functions := range []bool{false, true} {
		x := &stageDeal{}
		c := newCast(t, functions, x)
		client := c.dial(c.client.path, c.client.token)
		first := c.dial(c.device.path, c.device.token)
		for c.work() {
			continue
		}
		c.frame(client, string(x.frame(peer.Message, peer.Request).Encode()))
		c.frame(first, string(x.frame(peer.Ack, peer.Request).Encode()))

		second := c.dial(c.device.path, c.device.token)
		c.conns[second].open = false
		c.frame(client, string(x.frame(peer.Message, peer.Completion).Encode()))
		c.conns[second].open = true
		for c.work() {
			continue
		}
		got := c.conns[second].inbox
		if len(got) != 3 || !strings.Contains(got[0], peer.PushRegistration) || !strings.Contains(got[1], `"kind":"completion"`) ||
			!strings.Contains(got[2], peer.CaughtUp) {
			t.Errorf("functions=%t: the device is sent %s", functions, got)
		}
		if m, err := c.relay.GetMember(t.Context(), groupOf(stageDevice), deviceMember); err != nil || m.Conn != second {
			t.Errorf("functions=%t: the device is taken for connected by %q, %v", functions, m.Conn, err)
		}
	}
}
