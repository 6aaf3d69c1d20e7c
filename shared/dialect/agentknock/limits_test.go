package agentknock

import (
	"strings"
	"testing"
	"time"

	peer "blindpost/shared/client/agentknock"
)

// An expired exchange is subtracted from the counters once: by a recount, and not again when
// the exchange is read.
func TestExpiredIsCountedOutOnce(t *testing.T) {
	deals := []*stageDeal{{}, {}, {}, {}, {}}
	c := newCast(t, false, deals...)
	lim := DefaultLimits()
	lim.ClientOpenExchanges, lim.DeviceOpenExchanges, lim.ExchangeTTL = 2, 2, time.Hour
	c.knock.SetLimits(lim)
	conn := c.dial(c.client.path, c.client.token)
	say := func(f peer.Frame, want, code string) {
		t.Helper()
		c.conns[conn].inbox = nil
		c.frame(conn, string(f.Encode()))
		got, err := peer.Decode([]byte(c.conns[conn].inbox[0]), peer.ClientRole)
		if err != nil || got.Type != want || got.Code != code {
			t.Fatalf("%s is answered with %s, %v", f, got, err)
		}
	}
	request := func(i int) peer.Frame { return deals[i].frame(peer.Message, peer.Request) }
	say(request(0), peer.Ack, "")
	say(request(1), peer.Ack, "")
	say(request(2), peer.Error, codeCapacityExceeded)
	c.now = c.now.Add(time.Hour)
	say(request(2), peer.Ack, "")
	for i := range 2 {
		say(deals[i].frame(peer.Resume, ""), peer.State, "")
		say(deals[i].frame(peer.Message, peer.Completion), peer.Ack, "")
	}
	say(request(3), peer.Ack, "")
	say(request(4), peer.Error, codeCapacityExceeded)
}

// A late frame of an older connection does not take the exchange from the newer one, on
// which the client waits.
func TestLateFrameOfAnOlderConnection(t *testing.T) {
	x := &stageDeal{}
	c := newCast(t, true, x)
	older := c.dial(c.client.path, c.client.token)
	c.now = c.now.Add(time.Millisecond)
	newer := c.dial(c.client.path, c.client.token)
	request := string(x.frame(peer.Message, peer.Request).Encode())
	c.frame(newer, request)
	c.hangUp(older)
	for range 2 {
		c.frame(older, request)
		c.frame(older, string(x.frame(peer.Resume, "").Encode()))
	}
	device := c.dial(c.device.path, c.device.token)
	c.frame(device, string(x.frame(peer.Message, peer.Response).Encode()))
	inbox := c.conns[newer].inbox
	if len(inbox) == 0 || !strings.Contains(inbox[len(inbox)-1], `"kind":"response"`) {
		t.Errorf("the newer connection got %s, the older one %s", inbox, c.conns[older].inbox)
	}
	// An older one that is still there may take it up.
	last := c.dial(c.client.path, c.client.token)
	c.now = c.now.Add(time.Millisecond)
	c.frame(c.dial(c.client.path, c.client.token), string(x.frame(peer.Resume, "").Encode()))
	c.frame(last, string(x.frame(peer.Resume, "").Encode()))
	if inbox := c.conns[last].inbox; len(inbox) != 2 || !strings.Contains(inbox[1], `"kind":"response"`) {
		t.Errorf("the older connection got %s", inbox)
	}
}
