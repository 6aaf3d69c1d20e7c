package sim

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"

	peer "blindpost/shared/client/agentknock"
	"blindpost/shared/proof/engine"
)

// fidMark is in all push tokens and must never be seen in a log.
const fidMark = "FID-OF-THE-SIMULATION"

// device is one device.
type device struct {
	world   *world
	name    string
	id      string
	token   string
	address string
	lines   []*line
	newest  *line // that was admitted last, as far as it knows
	pushed  int   // step of the last push
	push    bool  // it is registered
	pushBad bool  // the provider has refused its token
	// wants is what it has asked for a client to be.
	wants map[*client]string
}

func newDevice(w *world, n int) *device {
	return &device{
		world: w, name: fmt.Sprintf("device%d", n), id: w.newID(w.e.Now()), token: w.newToken(),
		address: fmt.Sprintf("%032x", w.next()), wants: map[*client]string{}, pushed: -1,
	}
}

func (d *device) String() string { return d.name }

func (d *device) dial() {
	l := newLine(d, nil)
	d.lines = append(d.lines, l)
	header := http.Header{"Authorization": {"Bearer " + d.token}}
	l.sock = d.world.e.Dial(l, d.name, "/v1/device/"+d.id, header, 1)
}

func (d *device) connected(l *line, accepted bool, status int) {
	if !accepted {
		if status/100 == 4 {
			d.world.e.Violate(propAdmission, "%v is refused with %d", d, status)
		}
		return
	}
	d.newest = l
	if d.world.diligent {
		d.recover()
	}
}

func (d *device) ended(l *line) {
	d.lines = slices.DeleteFunc(d.lines, func(x *line) bool { return x == l })
	if d.newest == l {
		d.newest = nil
	}
}

func (d *device) line() *line {
	if d.newest != nil && d.newest.sock.Open() && d.newest.sock.Attached() {
		return d.newest
	}
	return nil
}

// isThere reports whether the device reads on any connection.
func (d *device) isThere() bool {
	return slices.ContainsFunc(d.lines, func(l *line) bool { return l.sock.Open() && l.sock.Attached() })
}

func (d *device) send(f peer.Frame) {
	if l := d.line(); l != nil {
		l.sock.Send(f.Encode(), true)
	}
}

// mine are the exchanges of its clients.
func (d *device) mine() []*deal {
	var all []*deal
	for _, x := range d.world.order {
		if x.client.device == d {
			all = append(all, x)
		}
	}
	return all
}

// recover says again what it does not know to have arrived.
func (d *device) recover() {
	for _, c := range d.world.clients {
		if c.device != d {
			continue
		}
		if want := d.wants[c]; want != "" && d.world.store.clientState(c) != want {
			d.setState(c, want)
		}
	}
	for _, x := range d.mine() {
		for _, k := range []string{peer.Request, peer.Completion} {
			if x.owes[k] {
				d.acknowledge(x, k)
			}
		}
		if x.taken[peer.Request] != nil && !x.answered {
			d.respond(x)
		}
	}
}

func (d *device) acknowledge(x *deal, kind string) {
	x.owes[kind] = false
	x.told[kind] = true
	d.send(x.frame(peer.Ack, kind))
}

func (d *device) respond(x *deal) {
	x.said = true
	d.send(x.frame(peer.Message, peer.Response))
}

func (d *device) setState(c *client, state string) {
	d.wants[c] = state
	d.send(peer.Frame{Type: peer.SetClientState, ClientID: c.id, State: state})
}

func (d *device) acts(add func(int, func())) {
	w := d.world
	l := d.line()
	if l == nil {
		if len(d.lines) == 0 || w.e.Plan.Churn > 0 {
			add(3, d.dial)
		}
		return
	}
	add(w.e.Plan.Churn, func() { l.sock.HangUp() })
	add(w.e.Plan.Churn, func() { l.sock.Lose() })
	add(w.e.Plan.Churn, d.dial)
	if l.sock.Queued() > 3 {
		return
	}
	mine := d.mine()
	for _, x := range mine {
		for _, k := range []string{peer.Request, peer.Completion} {
			if x.owes[k] {
				add(2, func() { d.acknowledge(x, k) })
			}
		}
		if x.taken[peer.Request] != nil && !x.answered {
			add(2, func() { d.respond(x) })
		}
		if x.pairing && x.taken[peer.Request] != nil && d.wants[x.client] == "" && x.clientID == x.client.id {
			add(4, func() { d.setState(x.client, "active") })
		}
	}
	if len(mine) > 0 {
		add(w.plan.odd, func() { d.odd(mine[w.e.Rand.IntN(len(mine))]) })
	}
	add(w.plan.changing, d.change)
}

// odd sends something that is late, early, repeated or wrong.
func (d *device) odd(x *deal) {
	switch d.world.e.Rand.IntN(6) {
	case 0:
		if x.taken[peer.Request] != nil {
			d.respond(x)
		}
	case 1:
		if x.taken[peer.Request] != nil {
			d.send(x.frame(peer.Resume, ""))
		}
	case 2:
		if x.told[peer.Request] {
			d.send(x.frame(peer.Ack, peer.Request))
		}
	case 3:
		if x.told[peer.Completion] {
			d.send(x.frame(peer.Ack, peer.Completion))
		}
	case 4:
		d.setState(x.client, []string{"active", "suspended"}[d.world.e.Rand.IntN(2)])
	case 5:
		if l := d.line(); l != nil {
			l.sock.Send([]byte(`{"type":"receipt"}`), true)
		}
	}
}

// change changes a client, or the device itself.
func (d *device) change() {
	w := d.world
	c := w.clients[w.e.Rand.IntN(len(w.clients))]
	switch w.e.Rand.IntN(8) {
	case 0:
		d.setState(c, "revoked")
	case 1, 2:
		d.setState(c, "suspended")
	case 3, 4:
		d.setState(c, "active")
	case 5:
		d.registerPush()
	case 6:
		d.call("pairing", fmt.Sprintf(`{"enabled":%t}`, w.e.Chance(700)))
	case 7:
		d.address = fmt.Sprintf("%032x", w.next())
		d.call("address", fmt.Sprintf(`{"address_id":%q}`, d.address))
	}
}

func (d *device) registerPush() {
	d.push, d.pushBad = true, false
	d.call("push", fmt.Sprintf(`{"fid":"%s-%d"}`, fidMark, d.world.next()))
}

// call calls one of its endpoints. What fails is asked for again.
func (d *device) call(verb, body string) {
	w := d.world
	w.e.Call(verb, func(ctx context.Context, in engine.Instance) (any, error) {
		r := httptest.NewRequestWithContext(ctx, http.MethodPost, "/v1/device/"+d.id+"/"+verb, strings.NewReader(body))
		r.Header.Set("Authorization", "Bearer "+d.token)
		r.Header.Set("Content-Type", "application/json")
		rec := httptest.NewRecorder()
		in.Dialect.(http.Handler).ServeHTTP(rec, r)
		return rec.Code, nil
	}, func(t *engine.Task) {
		status, _ := t.Result.(int)
		switch {
		case w.e.Failed():
		case t.Killed || status >= 500:
			d.again(t, verb, body)
		case status != http.StatusOK:
			w.e.Violate(propAdmission, "%v: %s is answered with %d", d, verb, status)
		}
	})
}

// again repeats a call, once the relay runs again.
func (d *device) again(_ *engine.Task, verb, body string) {
	d.world.e.Soon(func() { d.call(verb, body) })
}

// hears takes a frame of the relay.
func (d *device) hears(_ *line, f peer.Frame) {
	w := d.world
	switch f.Type {
	case peer.PushRegistration, peer.CaughtUp:
		return
	case peer.ClientState:
		for _, c := range w.clients {
			if c.id == f.ClientID && c.device != d {
				w.e.Violate(propOthers, "%v is sent %s", d, f)
			}
			if c.id == f.ClientID && f.State == "active" {
				c.enrolled = true
			}
		}
		return
	}
	x := w.deals[f.RequestID]
	if x == nil || x.client.device != d || x.clientID != f.ClientID {
		if f.Type != peer.Error && f.Type != peer.Inactive {
			w.e.Violate(propOthers, "%v is sent %s", d, f)
		}
		return
	}
	switch f.Type {
	case peer.Message:
		d.takes(x, f)
	case peer.Ack, peer.Inactive:
		x.answered = true
	}
}

// takes is a request or completion that arrives.
func (d *device) takes(x *deal, f peer.Frame) {
	w := d.world
	if before := x.taken[f.Kind]; before != nil && !bytes.Equal(before, f.Payload) {
		w.e.Violate(propFirst, "two %ss of %v: %s, then %s", f.Kind, x, before, f.Payload)
	}
	if !x.wasSent(f.Kind, f.Payload) {
		w.e.Violate(propFrames, "%v: nobody has sent %s", x, f.Payload)
	}
	if f.Kind == peer.Completion && x.taken[peer.Request] == nil {
		w.e.Violate(propOrder, "the completion of %v comes before its request", x)
	}
	if (f.AddressID != "") != x.pairing {
		w.e.Violate(propFrames, "the %s of %v has the address %q", f.Kind, x, f.AddressID)
	}
	x.taken[f.Kind] = f.Payload
	x.owes[f.Kind] = true
	if w.diligent || !w.e.Chance(w.plan.lazy) {
		d.acknowledge(x, f.Kind)
	}
	if w.diligent && f.Kind == peer.Request {
		if x.pairing && d.wants[x.client] == "" && x.clientID == x.client.id {
			d.setState(x.client, "active")
		}
		if !x.answered {
			d.respond(x)
		}
	}
}
