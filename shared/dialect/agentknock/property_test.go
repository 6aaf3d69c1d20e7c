package agentknock

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	peer "blindpost/shared/client/agentknock"
	"blindpost/shared/gateway"
)

// chaos is a client and a device that do anything at any time, with the checks that must
// hold.
type chaos struct {
	*cast
	rt     *rapid.T
	serial int

	// what was seen of each exchange
	payloads map[string]string // of a message, by request id and kind
	ended    map[string]bool
	accepted map[string]bool // acked by the relay
	unacked  map[string]bool // a process of our own server died over it: its ack may be lost
}

func (c *chaos) fail(format string, args ...any) { c.rt.Fatalf(format, args...) }

// payload makes one that is never the same.
func (c *chaos) fresh(x *stageDeal, kind string) peer.Frame {
	c.serial++
	f := x.frame(peer.Message, kind)
	f.Payload = fmt.Appendf(nil, `{"n":%d}`, c.serial)
	return f
}

// read takes all that the relay has sent to an actor and holds it against what was
// seen before.
func (c *chaos) read(a *actor) {
	if a.conn == "" {
		return
	}
	conn := c.conns[a.conn]
	for _, text := range conn.inbox {
		f, err := peer.Decode([]byte(text), a.role)
		if err != nil {
			c.fail("the %s is sent %s: %v", a.name, text, err)
		}
		c.look(a, f)
	}
	conn.inbox = nil
	if conn.closed {
		a.conn = ""
	}
}

func (c *chaos) look(a *actor, f peer.Frame) {
	identity := f.RequestID + " " + f.Kind
	switch f.Type {
	case peer.Message:
		if before, ok := c.payloads[identity]; ok && before != string(f.Payload) {
			c.fail("the %s was delivered as %s and as %s", identity, before, f.Payload)
		}
		c.payloads[identity] = string(f.Payload)
		if f.Kind == peer.Completion && !c.accepted[identity] && !c.unacked[identity] && a.role == peer.DeviceRole {
			c.fail("the %s is delivered, and its client was never told that it was accepted", identity)
		}
	case peer.Ack:
		c.accepted[identity] = true
	case peer.Inactive:
		// Before its request was accepted an exchange is not yet.
		if f.Kind == "" && c.accepted[f.RequestID+" "+peer.Request] {
			c.ended[f.RequestID] = true
		}
	case peer.State:
		live := f.Exchange == "open" || f.Exchange == "closing"
		if live && c.ended[f.RequestID] {
			c.fail("%s has ended and is %s again", f.RequestID, f.Exchange)
		}
		c.ended[f.RequestID] = c.ended[f.RequestID] || !live
	case peer.Error:
		if f.Code == codeInvalidFrame {
			c.fail("a good frame is refused: %s", f)
		}
	}
}

// say sends a frame on the connection of an actor, which dials if it has none.
func (c *chaos) say(a *actor, f peer.Frame) {
	if a.conn == "" {
		if !c.welcome(a) {
			return
		}
		if a.conn = c.dial(a.path, a.token); a.conn == "" {
			return
		}
	}
	if c.frame(a.conn, string(f.Encode())) && !c.functions {
		c.unacked[f.RequestID+" "+f.Kind] = true // "Reconnection and recovery": the client sends it again
	}
	// Whoever sends, its acks are looked at before anything else.
	c.read(c.client)
	c.read(c.device)
}

// welcome reports whether the relay is to let an actor in.
func (c *chaos) welcome(a *actor) bool {
	end := c.inspect()
	defer end()
	client, err := c.knock.loadClient(c.t.Context(), c.home(), c.deals[0].client)
	if err != nil {
		c.fail("%v", err)
	}
	return a == c.device || client.State == stateActive
}

// inspect lets the test look at the table without being counted.
func (c *chaos) inspect() (end func()) {
	ops, at := c.ops, c.crashAt
	c.crashAt = 0
	return func() { c.ops, c.crashAt = ops, at }
}

func (c *chaos) home() deviceKeys {
	m, err := c.relay.GetMember(c.t.Context(), groupOf(stageDevice), deviceMember)
	if err != nil || m == nil {
		c.fail("there is no device: %v", err)
	}
	return deviceKeys{stageDevice, m.Generation}
}

// count holds the counters against what is there: they may be too high, never too
// low.
func (c *chaos) count() {
	end := c.inspect()
	defer end()
	h := c.home()
	entries, err := c.knock.entries(c.t.Context(), h)
	if err != nil {
		c.fail("%v", err)
	}
	var open, bytes, payloads int64
	for _, e := range entries {
		open, bytes = open+1, bytes+e.bytes
	}
	_, _, u := c.stored()
	client, err := c.knock.loadClient(c.t.Context(), h, c.deals[0].client)
	if err != nil || client == nil {
		c.fail("the client is lost: %v", err)
	}
	for _, it := range c.everything(devicePartition) {
		if strings.HasPrefix(it.Key.Sort, payloadSort) {
			payloads += int64(len(it.Attrs["p"].Raw()))
		}
	}
	if u.Open < open || u.Bytes < bytes || client.Open < open || client.Bytes < bytes || payloads > bytes {
		c.fail("%d exchanges with %d bytes are open and %d bytes are stored; counted are %d with %d, of the client %d with %d",
			open, bytes, payloads, u.Open, u.Bytes, client.Open, client.Bytes)
	}
}

// Whatever both sides do, at whatever time, and wherever the relay dies: every state
// is a valid one, no message is delivered with two payloads, nothing that has ended is
// alive again, and what is counted is there.
func TestAnythingGoes(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		functions := rapid.Bool().Draw(rt, "functions")
		c := &chaos{
			cast: newCast(t, functions, &stageDeal{}, &stageDeal{}, &stageDeal{}), rt: rt,
			payloads: map[string]string{}, ended: map[string]bool{}, accepted: map[string]bool{}, unacked: map[string]bool{},
		}
		lim := DefaultLimits()
		lim.ExchangeTTL, lim.RecoveryTTL = time.Hour, 30*time.Minute
		lim.ClientOpenExchanges, lim.ClientStoredBytes = 2, 20
		c.knock.SetLimits(lim)
		deal := func() *stageDeal { return rapid.SampledFrom(c.deals).Draw(rt, "deal") }
		set := func(state string) {
			c.say(c.device, peer.Frame{Type: peer.SetClientState, ClientID: c.deals[0].client, State: state})
		}
		rt.Repeat(map[string]func(*rapid.T){
			"request":         func(*rapid.T) { c.say(c.client, c.fresh(deal(), peer.Request)) },
			"completion":      func(*rapid.T) { c.say(c.client, c.fresh(deal(), peer.Completion)) },
			"response ack":    func(*rapid.T) { c.say(c.client, deal().frame(peer.Ack, peer.Response)) },
			"client resume":   func(*rapid.T) { c.say(c.client, deal().frame(peer.Resume, "")) },
			"response":        func(*rapid.T) { c.say(c.device, c.fresh(deal(), peer.Response)) },
			"request ack":     func(*rapid.T) { c.say(c.device, deal().frame(peer.Ack, peer.Request)) },
			"completion ack":  func(*rapid.T) { c.say(c.device, deal().frame(peer.Ack, peer.Completion)) },
			"device resume":   func(*rapid.T) { c.say(c.device, deal().frame(peer.Resume, "")) },
			"suspend":         func(*rapid.T) { set("suspended") },
			"activate":        func(*rapid.T) { set("active") },
			"client hangs up": func(*rapid.T) { c.drop(c.client) },
			"device hangs up": func(*rapid.T) { c.drop(c.device) },
			"work":            func(*rapid.T) { c.work() },
			"time": func(rt *rapid.T) {
				c.now = c.now.Add(time.Duration(rapid.Int64Range(0, int64(40*time.Minute)).Draw(rt, "time")))
			},
			"crash": func(rt *rapid.T) {
				c.ops, c.crashAt = 0, rapid.IntRange(1, 12).Draw(rt, "at")
				c.afterEffect = rapid.Bool().Draw(rt, "after its effect")
			},
			"": func(*rapid.T) {
				if c.ops >= c.crashAt {
					c.crashAt = 0
				}
				c.read(c.client)
				c.read(c.device)
				c.count()
				c.knock.SetLimits(lim) // a restarted process has other limits
			},
		})
	})
}

func (c *chaos) drop(a *actor) {
	if a.conn != "" {
		c.hangUp(a.conn)
		a.conn = ""
	}
}

// Anything in frames, to either side, ends in an answer that its peer may be sent.
func FuzzFrames(f *testing.F) {
	ids := `"client_id":"` + stageID(200, stageStart) + `","request_id":"` + stageID(1, stageStart) + `"`
	for _, s := range []string{
		`{"type":"message",` + ids + `,"kind":"request","payload":1}`, `{"type":"message",` + ids + `,"kind":"response","payload":null}`,
		`{"type":"message",` + ids + `,"kind":"completion","payload":"x"}`, `{"type":"ack",` + ids + `,"kind":"request"}`,
		`{"type":"ack",` + ids + `,"kind":"completion"}`, `{"type":"ack",` + ids + `,"kind":"response"}`, `{"type":"resume",` + ids + `}`,
		`{"type":"set_client_state",` + ids + `,"state":"revoked"}`,
	} {
		f.Add(s, s, true)
	}
	f.Fuzz(func(t *testing.T, first, second string, text bool) {
		c := newCast(t, true, &stageDeal{})
		for _, a := range []*actor{c.client, c.device} {
			a.conn = c.dial(a.path, a.token)
			for _, data := range []string{first, second} {
				if _, err := c.relay.Frame(t.Context(), gateway.FrameEvent{Conn: a.conn, Data: []byte(data), Text: text, At: c.now}); err != nil {
					t.Fatalf("the %s's frame: %v", a.name, err)
				}
			}
		}
		for c.work() {
			continue
		}
		for _, a := range []*actor{c.client, c.device} {
			for _, text := range c.conns[a.conn].inbox {
				if _, err := peer.Decode([]byte(text), a.role); err != nil && strings.Count(text, "[")+strings.Count(text, "{") < 9_000 {
					t.Errorf("the %s is sent %s: %v", a.name, text, err)
				}
			}
			if x := c.conns[a.conn]; x.closed && !slices.Contains([]gateway.CloseCode{1008, 1009, 4003}, x.code) {
				t.Errorf("the %s is closed with %d", a.name, x.code)
			}
		}
	})
}
