package sim

import (
	"bytes"
	"fmt"
	"net/http"
	"slices"
	"time"

	peer "blindpost/shared/client/agentknock"
)

// client is one client of a device.
type client struct {
	world    *world
	device   *device
	name     string
	id       string
	token    string
	address  string // where it pairs
	enrolled bool
	lines    []*line
	deals    []*deal
}

func newClient(w *world, d *device, n int) *client {
	return &client{
		world: w, device: d, name: fmt.Sprintf("client%d", n), id: w.newID(w.e.Now()), token: w.newToken(),
	}
}

func (c *client) String() string { return c.name }

// dial opens one more connection.
func (c *client) dial() {
	w := c.world
	path := "/v1/device/" + c.device.id + "/client/" + c.id
	if !c.enrolled {
		if c.address == "" {
			c.address = c.device.address
		}
		path = "/v1/address/" + c.address + "/request/" + c.id
	}
	l := newLine(c.device, c)
	l.pairing = !c.enrolled
	c.lines = append(c.lines, l)
	l.changes = w.store.changes[c.id]
	l.sock = w.e.Dial(l, c.name, path, http.Header{"Authorization": {"Bearer " + c.token}}, byte(10+len(w.clients)))
}

func (c *client) connected(l *line, accepted bool, status int) {
	if !accepted {
		// A client that was suspended for a moment meanwhile may be refused for that.
		store := &c.world.store
		if store.clientState(c) == "active" && store.changes[c.id] == l.changes && c.enrolled && status/100 == 4 {
			c.world.e.Violate(propAdmission, "%v is active and refused with %d", c, status)
		}
		if !c.enrolled && status/100 == 4 && len(c.lines) == 1 {
			c.startOver()
		}
		return
	}
	if c.world.diligent {
		c.recover(l)
	}
}

// startOver is a new attempt to pair: the one before has come to nothing.
func (c *client) startOver() {
	for _, x := range c.deals {
		x.over = true
	}
	c.deals, c.address = nil, ""
	c.id, c.token = c.world.newID(c.world.e.Now()), c.world.newToken()
}

func (c *client) ended(l *line) {
	c.lines = slices.DeleteFunc(c.lines, func(x *line) bool { return x == l })
}

func (c *client) send(l *line, f peer.Frame) {
	switch f.Type {
	case peer.Message:
		l.sent[identity(f)] = true
		x := c.world.deals[f.RequestID]
		if !slices.Contains(x.sentOn[f.Kind], l) {
			x.sentOn[f.Kind] = append(x.sentOn[f.Kind], l)
		}
	case peer.Resume:
		l.resumed[f.RequestID] = true
	}
	l.sock.Send(f.Encode(), true)
}

// recover says on a new connection what the table of section "Reconnection and
// recovery" says.
func (c *client) recover(l *line) {
	if !c.enrolled && len(c.deals) == 0 {
		x := c.world.newDeal(c, c.id)
		x.pairing = true
		c.deals = append(c.deals, x)
	}
	for _, x := range c.deals {
		if !x.finished() && (x.pairing || !l.pairing) {
			c.proceed(l, x)
		}
	}
}

// proceed does the next thing in an exchange.
func (c *client) proceed(l *line, x *deal) {
	switch {
	case x.phantom:
		c.send(l, x.frame(peer.Message, peer.Completion))
	case !x.acked && x.response == nil:
		c.send(l, x.frame(peer.Message, peer.Request))
	case x.response != nil:
		c.send(l, x.frame(peer.Ack, peer.Response))
		c.send(l, x.frame(peer.Message, peer.Completion))
	case x.abort:
		c.send(l, x.frame(peer.Message, peer.Completion))
	default:
		c.send(l, x.frame(peer.Resume, ""))
	}
}

// open are its connections that are open.
func (c *client) open() []*line {
	var all []*line
	for _, l := range c.lines {
		if l.sock.Open() && l.sock.Attached() {
			all = append(all, l)
		}
	}
	return all
}

func (c *client) acts(add func(int, func())) {
	w := c.world
	open := c.open()
	if len(c.lines) == 0 {
		add(4, c.dial)
		return
	}
	if len(open) == 0 {
		return
	}
	if len(c.lines) < 3 {
		add(w.e.Plan.Churn, c.dial)
	}
	pick := func() *line { return open[w.e.Rand.IntN(len(open))] }
	add(w.e.Plan.Churn, func() { pick().sock.HangUp() })
	add(w.e.Plan.Churn, func() { pick().sock.Lose() })
	if !slices.ContainsFunc(open, func(l *line) bool { return l.sock.Queued() < 4 }) {
		return
	}
	if !c.enrolled && len(c.deals) == 0 {
		add(6, func() { c.recover(pick()) })
	}
	if c.enrolled && len(w.order) < w.plan.deals {
		add(4, func() {
			l := pick()
			if l.pairing {
				l.sock.HangUp()
				return
			}
			x := w.newDeal(c, w.newID(w.e.Now()))
			c.deals = append(c.deals, x)
			c.send(l, x.frame(peer.Message, peer.Request))
		})
	}
	if len(c.deals) > 0 {
		add(4, func() {
			l, x := pick(), c.deals[w.e.Rand.IntN(len(c.deals))]
			if !x.finished() && (x.pairing || !l.pairing) {
				c.proceed(l, x)
			}
		})
		add(w.plan.odd, func() {
			if l := pick(); !l.pairing || w.e.Chance(50) {
				c.odd(l)
			}
		})
	}
}

// odd sends something that is late, early, repeated or wrong.
func (c *client) odd(l *line) {
	w := c.world
	x := c.deals[w.e.Rand.IntN(len(c.deals))]
	switch w.e.Rand.IntN(10) {
	case 0, 1:
		c.send(l, x.frame(peer.Message, peer.Request))
	case 2:
		c.send(l, x.frame(peer.Message, peer.Completion))
	case 3:
		if x.response != nil {
			c.send(l, x.frame(peer.Ack, peer.Response))
		}
	case 4:
		c.send(l, x.frame(peer.Resume, ""))
	case 5: // a completion without its request, which comes later
		if c.enrolled {
			y := w.newDeal(c, w.newID(w.e.Now()))
			y.phantom = true
			c.deals = append(c.deals, y)
			c.send(l, y.frame(peer.Message, peer.Completion))
		}
	case 6: // an id that is too old
		if c.enrolled {
			y := w.newDeal(c, w.newID(w.e.Now().Add(-25*time.Hour)))
			y.over, y.phantom = true, true
			c.send(l, y.frame(peer.Message, peer.Request))
		}
	case 7: // somebody else's exchange
		y := w.order[w.e.Rand.IntN(len(w.order))]
		if y.client.device == c.device && w.store.exchanges[y.id] != nil {
			f := y.frame(peer.Message, peer.Request)
			f.ClientID = c.id
			l.sock.Send(f.Encode(), true)
		}
	case 8:
		l.sock.Send([]byte(`{"type":"message","client_id":"`+c.id+`"}`), true)
	case 9:
		l.sock.Send([]byte{1, 2, 3}, false)
	}
}

// hears takes a frame of the relay.
func (c *client) hears(l *line, f peer.Frame) {
	w := c.world
	if f.ClientID != "" && f.ClientID != c.id {
		w.e.Violate(propOthers, "%v is sent %s", c, f)
		return
	}
	x := w.deals[f.RequestID]
	if x == nil || x.clientID != c.id {
		if f.Type != peer.Error && !(f.Type == peer.Inactive || f.Type == peer.Ack) {
			w.e.Violate(propOthers, "%v is sent %s", c, f)
		}
		return
	}
	switch f.Type {
	case peer.Ack:
		c.hearsAck(l, x, f)
	case peer.Receipt:
		x.acked = true
	case peer.Inactive:
		if f.Kind == "" {
			x.over = true
		}
	case peer.Error:
		if !f.Retryable {
			x.over = true
		}
	case peer.Message:
		if x.response != nil && !bytes.Equal(x.response, f.Payload) {
			w.e.Violate(propFirst, "two responses to %v: %s, then %s", x, x.response, f.Payload)
		}
		if !x.wasSent(peer.Response, f.Payload) {
			w.e.Violate(propFrames, "%v: nobody has sent %s", x, f.Payload)
		}
		x.acked, x.response = true, f.Payload
		if w.diligent || w.e.Chance(700) {
			c.proceed(l, x)
		}
	case peer.State:
		x.acked = true
		if f.Completion != "absent" {
			x.completed = true
		}
		if f.Exchange == "expired" {
			x.over = true
		}
	}
}

func (c *client) hearsAck(l *line, x *deal, f peer.Frame) {
	if f.Kind == peer.Completion {
		x.completed = true
		return
	}
	first := !x.acked
	x.acked = true
	if first && x.abort && (c.world.diligent || c.world.e.Chance(500)) {
		c.proceed(l, x)
	}
}
