package agentknock

import (
	"context"
	"net/http"
	"net/netip"
	"testing"

	peer "blindpost/shared/client/agentknock"
	"blindpost/shared/gateway"
)

// A device connects while a message is to be posted to its connection before, and the
// Connect fails, at any step. The message must not wait for a connection that never opens:
// it is posted to the connection before, or the device gets a push.
func TestConnectThatFails(t *testing.T) {
	for _, after := range []bool{false, true} {
		for n := 1; ; n++ {
			x := &stageDeal{}
			c := newCast(t, false, x)
			client := c.dial(c.client.path, c.client.token)
			first := c.dial(c.device.path, c.device.token)
			c.frame(client, string(x.frame(peer.Message, peer.Request).Encode()))

			c.serial++
			id := gateway.Conn("fails")
			c.conns[id] = &stageConn{}
			ctx, cancel := context.WithCancel(t.Context())
			c.ops, c.failAt, c.afterEffect = 0, n, after
			c.failed = cancel // the peer has given up
			_, err := c.relay.Connect(ctx, gateway.ConnectEvent{
				Conn: id, Path: c.device.path, At: c.now, RemoteIP: netip.MustParseAddr("198.51.100.1"),
				Header: http.Header{"Authorization": {"Bearer " + c.device.token}},
			})
			c.failAt = 0
			cancel()
			if err == nil {
				if n <= 5 {
					t.Errorf("a Connect has only %d steps", n-1)
				}
				break
			}
			c.conns[id].closed = true
			c.settle()
			for c.pass() {
				c.settle()
			}
			if sent := c.count(first, peer.Request); sent == 0 && len(c.pushes) == 0 {
				t.Errorf("a failure of step %d, after=%t: the request is neither sent nor pushed for", n, after)
			}
			if m, err := c.relay.GetMember(t.Context(), groupOf(stageDevice), deviceMember); err != nil || m.Conn == id {
				t.Errorf("a failure of step %d, after=%t: the device is taken for connected, %v", n, after, err)
			}
		}
	}
}
