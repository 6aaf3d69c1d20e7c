package agentknock

import (
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	peer "blindpost/shared/client/agentknock"
	"blindpost/shared/gateway"
)

// upgrade asks for a connection that is not open yet when Connect has returned.
func (s *stage) upgrade(path, token string) gateway.Conn {
	s.serial++
	id := gateway.Conn("slow" + peer.NewID(s.now)[20:])
	s.conns[id] = &stageConn{}
	res, err := s.relay.Connect(s.t.Context(), gateway.ConnectEvent{
		Conn: id, Path: path, At: s.now, RemoteIP: netip.MustParseAddr("198.51.100.1"),
		Header: http.Header{"Authorization": {"Bearer " + token}},
	})
	if err != nil || !res.Accepted() {
		s.t.Fatalf("an upgrade is answered with %d, %v", res.Status, err)
	}
	return id
}

// Of two upgrades of a device that overlap the second cannot close the first, which is
// not open yet; it is closed when it is.
func TestOverlappingUpgrades(t *testing.T) {
	for _, functions := range []bool{false, true} {
		c := newCast(t, functions, &stageDeal{})
		first := c.upgrade(c.device.path, c.device.token)
		second := c.dial(c.device.path, c.device.token)
		c.conns[first].open = true
		for c.work() {
			continue
		}
		if x := c.conns[first]; !x.closed || x.code != gateway.CloseNormal || len(x.inbox) > 0 {
			t.Errorf("functions %t: the first connection is %+v", functions, x)
		}
		if got := c.conns[second].inbox; len(got) != 2 || !strings.Contains(got[1], peer.CaughtUp) {
			t.Errorf("functions %t: the second connection is sent %s", functions, got)
		}
	}
}

// A Connect may take as long as its front waits for it, which is for ever in one process
// and 29 s in front of functions. A device that is admitted so late gets push_registration
// all the same, and one that was replaced meanwhile is closed.
func TestUpgradeThatTakesLong(t *testing.T) {
	for _, functions := range []bool{false, true} {
		for _, replaced := range []bool{false, true} {
			synctest.Test(t, func(t *testing.T) {
				c := newCast(t, functions, &stageDeal{})
				slow := c.upgrade(c.device.path, c.device.token)
				if replaced {
					c.dial(c.device.path, c.device.token)
				}
				took := 5 * time.Minute
				if functions {
					took = 29 * time.Second
				}
				for c.settle(); c.now.Before(stageStart.Add(took)); c.settle() {
					c.now = c.now.Add(time.Second)
				}
				c.conns[slow].open = true
				for range 60 {
					c.now = c.now.Add(time.Second)
					c.settle()
				}
				x := c.conns[slow]
				if replaced && (!x.closed || len(x.inbox) > 0) || !replaced && (x.closed || len(x.inbox) != 2) {
					t.Errorf("functions %t, replaced %t: the connection is %+v", functions, replaced, x)
				}
				if len(c.jobs) > 0 {
					t.Errorf("functions %t, replaced %t: %d jobs are left", functions, replaced, len(c.jobs))
				}
			})
		}
	}
}

// A replaced connection that was not closed, because the handler that has replaced it died,
// is closed when it sends a frame, and the frame counts.
func TestReplacedConnectionThatSpeaks(t *testing.T) {
	c := newCast(t, true, &stageDeal{})
	old := c.dial(c.device.path, c.device.token)
	client := c.dial(c.client.path, c.client.token)
	for c.work() {
		continue
	}
	x := c.deals[0]
	c.frame(client, string(x.frame(peer.Message, peer.Request).Encode()))
	c.dial(c.device.path, c.device.token)
	// As if the close had not come to it.
	c.conns[old].closed, c.conns[old].code = false, 0
	c.ended = nil
	c.frame(old, string(x.frame(peer.Ack, peer.Request).Encode()))
	if got := c.conns[old]; !got.closed || got.code != gateway.CloseNormal {
		t.Errorf("the old connection is %+v", got)
	}
	if got := c.conns[client].inbox; len(got) != 2 || !strings.Contains(got[1], peer.Receipt) {
		t.Errorf("the client is sent %s", got)
	}
}

// A device may get a message, and ack it, before the handler that has accepted it has
// acked it. Its client hears the ack first all the same.
func TestAckBeforeReceipt(t *testing.T) {
	for _, k := range []string{peer.Request, peer.Completion} {
		t.Run(k, func(t *testing.T) {
			c := newCast(t, true, &stageDeal{})
			client := c.dial(c.client.path, c.client.token)
			x := c.deals[0]
			if k == peer.Completion {
				c.frame(client, string(x.frame(peer.Message, peer.Request).Encode()))
				c.conns[client].inbox = nil
			}
			// A handler in another process writes, and comes no further for a while.
			conn, err := c.relay.LoadConn(t.Context(), client)
			if err != nil {
				t.Fatal(err)
			}
			s, err := sessionOf(conn)
			if err != nil {
				t.Fatal(err)
			}
			m := move{
				scope: scope{Client: x.client, Request: x.id, Kind: kind(k)}, event: RequestSent,
				payload: []byte(x.payload(k)), conn: client, connAt: conn.At,
			}
			if k == peer.Completion {
				m.event = CompletionSent
			}
			if _, err := c.knock.apply(t.Context(), s.keys(), m); err != nil {
				t.Fatal(err)
			}
			device := c.dial(c.device.path, c.device.token)
			for c.work() {
				continue
			}
			c.frame(device, string(x.frame(peer.Ack, peer.Request).Encode()))
			c.frame(device, string(x.frame(peer.Ack, peer.Completion).Encode()))
			got := c.conns[client].inbox
			at := func(typ string) int {
				return slices.IndexFunc(got, func(text string) bool {
					return strings.Contains(text, `"type":"`+typ+`"`) && strings.Contains(text, `"kind":"`+k+`"`)
				})
			}
			if a, r := at(peer.Ack), at(peer.Receipt); a < 0 || r < a {
				t.Errorf("the client is sent %s", got)
			}
		})
	}
}

// A client that has asked for the state knows that its request was accepted: it is not
// told once more when the device comes.
func TestNoAckAfterTheState(t *testing.T) {
	x := &stageDeal{}
	c := newCast(t, true, x)
	first := c.dial(c.client.path, c.client.token)
	c.frame(first, string(x.frame(peer.Message, peer.Request).Encode()))
	c.hangUp(first)
	second := c.dial(c.client.path, c.client.token)
	c.frame(second, string(x.frame(peer.Resume, "").Encode()))
	device := c.dial(c.device.path, c.device.token)
	c.settle()
	c.frame(device, string(x.frame(peer.Ack, peer.Request).Encode()))
	got := c.conns[second].inbox
	if len(got) != 2 || !strings.Contains(got[0], peer.State) || !strings.Contains(got[1], peer.Receipt) {
		t.Errorf("the client is sent %s", got)
	}
}
