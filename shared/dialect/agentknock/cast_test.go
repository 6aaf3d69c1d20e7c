package agentknock

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/oklog/ulid/v2"

	peer "blindpost/shared/client/agentknock"
	"blindpost/shared/gateway"
	"blindpost/shared/table"
)

const stageDevice = "01KJME0000DEV1CE0000000000"

const stageAddress = "0123456789abcdef0123456789abcdef"

// cast are a device and a client that play by the rules, over as many connections as
// it takes.
type cast struct {
	*stage
	device *actor
	client *actor
	deals  []*stageDeal
}

// actor is one side.
type actor struct {
	name        string
	path, token string
	role        peer.Role
	conn        gateway.Conn
	// away reports whether it does not want to be connected now.
	away func() bool
	// out are frames to send on the connection.
	out []peer.Frame
	// hear takes a frame; resume says on a new connection what has to be said.
	hear   func(peer.Frame)
	resume func()
	// sent, if set, is told what it has sent.
	sent func(peer.Frame)
}

// stageDeal is one exchange, as both sides know it.
type stageDeal struct {
	client, id string
	pairing    bool
	abort      bool // the client completes without waiting for a response
	leave      bool // the client leaves when its request is accepted

	// of the client
	acked, completed bool
	response         string
	// of the device
	taken       map[string]string // payloads, by kind
	answered    bool
	activated   bool
	said        bool // its response
	gotReceipts map[string]bool
}

func (x *stageDeal) payload(kind string) string {
	return fmt.Sprintf(`{"of":"%s %s", "twice":1,"twice":2}`, x.id, kind)
}

func (x *stageDeal) frame(typ, kind string) peer.Frame {
	f := peer.Frame{Type: typ, ClientID: x.client, RequestID: x.id, Kind: kind}
	if typ == peer.Message {
		f.Payload = []byte(x.payload(kind))
	}
	return f
}

func stageID(n int, at time.Time) string {
	var id ulid.ULID
	_ = id.SetTime(ulid.Timestamp(at))
	id[15] = byte(n)
	return id.String()
}

// newCast sets the scene: a device that is claimed and has a client, unless the story
// is about pairing.
func newCast(t testing.TB, functions bool, deals ...*stageDeal) *cast {
	c := &cast{stage: newStage(t, functions), deals: deals}
	token := peer.NewToken()
	hash, _ := hashToken(token)
	ctx := t.Context()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(c.knock.claim(ctx, stageDevice, hash, func() error { return nil }))
	m, err := c.relay.GetMember(ctx, groupOf(stageDevice), deviceMember)
	must(err)
	must(c.knock.setAddress(ctx, m, stageAddress))
	must(c.knock.setPush(ctx, m, "fid"))
	c.device = &actor{name: "device", path: "/v1/device/" + stageDevice, token: token, role: peer.DeviceRole}
	c.device.hear, c.device.resume = c.deviceHears, c.deviceResumes

	client := stageID(200, c.now)
	c.client = &actor{name: "client", token: peer.NewToken(), role: peer.ClientRole}
	c.client.hear, c.client.resume = c.clientHears, c.clientResumes
	c.client.path = "/v1/device/" + stageDevice + "/client/" + client
	for i, x := range deals {
		x.client, x.id = client, stageID(i+1, c.now)
		x.taken, x.gotReceipts = map[string]string{}, map[string]bool{}
		if x.pairing {
			x.id = client
			c.client.path = "/v1/address/" + stageAddress + "/request/" + client
		}
	}
	if !deals[0].pairing {
		hash, _ := hashToken(c.client.token)
		a := &attempt{Address: stageAddress, Token: hash}
		h := deviceKeys{stageDevice, m.Generation}
		record := a.client(client)
		record.State = stateActive
		_, err := c.durable.Write(ctx, table.Op{Action: table.Put, Key: h.clientKey(client), Set: record.attrs()})
		must(err)
	}
	c.crashAt, c.ops = 0, 0
	return c
}

func (c *cast) deal(id string) *stageDeal {
	i := slices.IndexFunc(c.deals, func(x *stageDeal) bool { return x.id == id })
	if i < 0 {
		c.t.Fatalf("a frame is about %s, which is unknown", id)
	}
	return c.deals[i]
}

func (a *actor) send(f peer.Frame) { a.out = append(a.out, f) }

func (c *cast) clientResumes() {
	for _, x := range c.deals {
		switch {
		case x.completed:
		case x.response != "":
			// Whether the ack has arrived it cannot know.
			c.client.send(x.frame(peer.Ack, peer.Response))
			c.client.send(x.frame(peer.Message, peer.Completion))
		case x.abort && x.acked:
			c.client.send(x.frame(peer.Message, peer.Completion))
		case !x.acked:
			c.client.send(x.frame(peer.Message, peer.Request))
		default:
			c.client.send(x.frame(peer.Resume, ""))
		}
	}
}

func (c *cast) clientHears(f peer.Frame) {
	x := c.deal(f.RequestID)
	switch f.Type {
	case peer.Ack:
		if f.Kind == peer.Completion {
			x.completed = true
			return
		}
		first := !x.acked
		x.acked = true
		if first && x.abort {
			c.client.send(x.frame(peer.Message, peer.Completion))
		}
		if first && x.leave {
			c.hangUp(c.client.conn)
			c.client.conn, c.client.out = "", nil
		}
	case peer.Receipt:
		if f.Kind == peer.Request && !x.acked {
			c.t.Errorf("a receipt of %s came before its ack", x.id)
		}
		x.gotReceipts[f.Kind] = true
	case peer.State:
		x.acked = true
	case peer.Message:
		if x.response != "" && x.response != string(f.Payload) || string(f.Payload) != x.payload(peer.Response) {
			c.t.Errorf("the response to %s is %s", x.id, f.Payload)
		}
		x.acked, x.response = true, string(f.Payload)
		c.client.send(x.frame(peer.Ack, peer.Response))
		c.client.send(x.frame(peer.Message, peer.Completion))
	default:
		c.t.Errorf("the client is told %s", f)
	}
}

func (c *cast) deviceResumes() {
	for _, x := range c.deals {
		if x.pairing && x.taken[peer.Request] != "" && !x.activated {
			c.device.send(peer.Frame{Type: peer.SetClientState, ClientID: x.client, State: "active"})
		}
		if x.said && !x.answered {
			c.device.send(x.frame(peer.Message, peer.Response))
		}
	}
}

func (c *cast) deviceHears(f peer.Frame) {
	switch f.Type {
	case peer.PushRegistration, peer.CaughtUp:
		return
	case peer.ClientState:
		for _, x := range c.deals {
			x.activated = true
		}
		return
	case peer.Error:
		// The state that was asked for is in force, and the answer was lost.
		if f.Code == codeInvalidClientState {
			for _, x := range c.deals {
				x.activated = true
			}
			return
		}
		c.t.Errorf("the device is told %s", f)
		return
	}
	x := c.deal(f.RequestID)
	switch {
	case f.Type == peer.Message:
		before, again := x.taken[f.Kind]
		if again && before != string(f.Payload) || string(f.Payload) != x.payload(f.Kind) {
			c.t.Errorf("the %s of %s is %s", f.Kind, x.id, f.Payload)
		}
		if f.AddressID != "" != x.pairing {
			c.t.Errorf("the %s of %s has the address %q", f.Kind, x.id, f.AddressID)
		}
		if f.Kind == peer.Completion && x.taken[peer.Request] == "" {
			c.t.Errorf("the completion of %s came before its request", x.id)
		}
		x.taken[f.Kind] = string(f.Payload)
		c.device.send(x.frame(peer.Ack, f.Kind))
		if f.Kind == peer.Request && !again {
			x.said = true
			if x.pairing {
				c.device.send(peer.Frame{Type: peer.SetClientState, ClientID: x.client, State: "active"})
			}
			c.device.send(x.frame(peer.Message, peer.Response))
		}
	case f.Type == peer.Ack || f.Type == peer.Inactive && x.abort:
		x.answered = true // or refused, which is as good
	case f.Type == peer.Receipt:
	default:
		c.t.Errorf("the device is told %s", f)
	}
}

// remembers reports whether the relay has accepted the request of an exchange.
func (c *cast) remembers(x *stageDeal) bool {
	return slices.ContainsFunc(c.everything(devicePartition), func(it table.Item) bool { return it.Key.Sort == exchangeSort+x.id })
}

// done reports whether all has happened that is to happen.
func (c *cast) done() bool {
	for _, x := range c.deals {
		if !x.completed || x.taken[peer.Completion] == "" || (!x.abort && !x.answered) {
			return false
		}
	}
	return len(c.device.out) == 0 && len(c.client.out) == 0
}

// turn lets an actor do one thing: dial, read, or send.
func (c *cast) turn(a *actor) bool {
	if a.conn != "" && c.conns[a.conn].closed {
		a.conn, a.out = "", nil
	}
	if a.conn == "" {
		if a.away != nil && a.away() {
			return false
		}
		if a.conn = c.dial(a.path, a.token); a.conn != "" {
			a.resume()
		}
		return true
	}
	conn := c.conns[a.conn]
	switch {
	case len(conn.inbox) > 0:
		text := conn.inbox[0]
		conn.inbox = conn.inbox[1:]
		f, err := peer.Decode([]byte(text), a.role)
		if err != nil {
			c.t.Errorf("the %s is sent %s: %v", a.name, text, err)
		}
		a.hear(f)
	case len(a.out) > 0:
		f := a.out[0]
		a.out = a.out[1:]
		c.frame(a.conn, string(f.Encode()))
		if a.sent != nil {
			a.sent(f)
		}
	default:
		return false
	}
	return true
}

// play goes on until all is done and quiet.
func (c *cast) play() {
	for range 2000 {
		c.now = c.now.Add(time.Millisecond)
		if c.turn(c.client) || c.turn(c.device) || c.work() {
			continue
		}
		if c.done() {
			return
		}
		if !c.pass() {
			c.t.Fatalf("nothing happens any more, and it is not done: client %+v, device %+v, deal %+v", c.client, c.device, c.deals[0])
		}
	}
	c.t.Fatal("it goes on for ever")
}

// check holds the promises against what is left.
func (c *cast) check() {
	for c.turn(c.client) || c.turn(c.device) || c.work() {
		continue
	}
	payloads, open, u := c.stored()
	if payloads != 0 || open != 0 || u.Open != 0 || u.Bytes != 0 {
		c.t.Errorf("%d payloads and %d open exchanges are left, the counters are %+v", payloads, open, u)
	}
	for _, x := range c.deals {
		if !x.abort && x.response != x.payload(peer.Response) {
			c.t.Errorf("the client of %s has the response %q", x.id, x.response)
		}
		it := c.everything(devicePartition)
		i := slices.IndexFunc(it, func(it table.Item) bool { return it.Key.Sort == exchangeSort+x.id })
		if i < 0 {
			c.t.Errorf("%s is not remembered", x.id)
			continue
		}
		r := recordFrom(x.id, it[i].Attrs)
		want := Exchange{Settled, Delivered, Delivered, Delivered}
		if r.Exchange != want && !(x.abort && r.Phase == Settled) {
			c.t.Errorf("%s is %v", x.id, r.Exchange)
		}
	}
	// A device that comes again is sent nothing.
	c.hangUp(c.device.conn)
	for c.work() {
		continue
	}
	again := c.dial(c.device.path, c.device.token)
	for c.work() {
		continue
	}
	if got := c.conns[again].inbox; len(got) != 2 || !strings.Contains(got[1], peer.CaughtUp) {
		c.t.Errorf("in the end the device is still sent %s", got)
	}
}
