package stories

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	knockpeer "blindpost/shared/client/agentknock"
	"blindpost/shared/dialect/agentknock"
	"blindpost/shared/standalone"
)

// knock is a device in a bubble, with what is needed to talk to it.
type knock struct {
	w      *world
	relay  *knockpeer.Relay
	device *knockpeer.Device
	addr   string
}

// knockEnd is one end of one connection of Agentknock.
type knockEnd struct {
	w    *world
	name string
	*knockpeer.Conn
}

// knockRelay is the relay of the bubble as the peers of Agentknock see it.
func (w *world) knockRelay() *knockpeer.Relay {
	from := w.NewIP()
	return &knockpeer.Relay{
		URL: "ws://relay", HTTP: "http://relay",
		Header: http.Header{"X-Forwarded-Proto": {"https"}, "X-Forwarded-For": {from}},
		DialContext: func(context.Context, string, string) (net.Conn, error) {
			nc, ok := w.Pipes.Dial("127.0.0.1")
			if !ok {
				return nil, errors.New("nobody listens")
			}
			return nc, nil
		},
	}
}

// within is a context for what has to happen at once.
func (w *world) within() context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	w.T.Cleanup(cancel)
	return ctx
}

func (w *world) must(err error) {
	w.T.Helper()
	if err != nil {
		w.T.Fatal(err)
	}
}

// knock makes a device that is claimed and can be found.
func (w *world) knock() *knock {
	w.T.Helper()
	k := &knock{w: w, relay: w.knockRelay(), addr: knockpeer.NewAddress()}
	k.device = knockpeer.NewDevice(k.relay, time.Now())
	w.Secrets.AddToken("a token", k.device.Token)
	w.must(k.device.Claim(w.within()))
	w.must(k.device.SetAddress(w.within(), k.addr))
	return k
}

func (k *knock) end(name string, c *knockpeer.Conn, err error) *knockEnd {
	k.w.T.Helper()
	k.w.must(err)
	k.w.T.Cleanup(c.Drop)
	return &knockEnd{k.w, name, c}
}

// open connects the device and takes what comes up to caught_up.
func (k *knock) open() (dv *knockEnd, waited []knockpeer.Frame) {
	k.w.T.Helper()
	c, err := k.device.Dial(k.w.within(), knockpeer.Options{})
	dv = k.end("device", c, err)
	if f := dv.next(); f.Type != knockpeer.PushRegistration {
		k.w.T.Fatalf("the device is first sent %s", f)
	}
	for {
		f := dv.next()
		if f.Type == knockpeer.CaughtUp {
			return dv, waited
		}
		waited = append(waited, f)
	}
}

// client makes a client that is paired and active.
func (k *knock) client(dv *knockEnd) *knockpeer.Client {
	k.w.T.Helper()
	m := knockpeer.NewClient(k.relay, k.addr, time.Now())
	m.DeviceID = k.device.ID
	k.w.Secrets.AddToken("a token", m.Token)
	c, err := m.DialPairing(k.w.within(), knockpeer.Options{})
	p := k.end("pairing client", c, err)
	p.publish(m.ID, m.ID)
	dv.wantMessage(m.ID, knockpeer.Request)
	dv.send(ack(m.ID, m.ID, knockpeer.Request))
	dv.send(knockpeer.Frame{Type: knockpeer.SetClientState, ClientID: m.ID, State: "active"})
	if f := dv.next(); f.Type != knockpeer.ClientState || f.State != "active" {
		k.w.T.Fatalf("the device is sent %s", f)
	}
	p.want(knockpeer.Receipt)
	p.send(message(m.ID, m.ID, knockpeer.Completion, `"done"`))
	p.want(knockpeer.Ack)
	dv.wantMessage(m.ID, knockpeer.Completion)
	dv.send(ack(m.ID, m.ID, knockpeer.Completion))
	p.Close()
	return m
}

func (k *knock) dial(m *knockpeer.Client) *knockEnd {
	k.w.T.Helper()
	c, err := m.Dial(k.w.within(), knockpeer.Options{})
	return k.end("client", c, err)
}

func message(client, id, kind, payload string) knockpeer.Frame {
	return knockpeer.Frame{Type: knockpeer.Message, ClientID: client, RequestID: id, Kind: kind, Payload: json.RawMessage(payload)}
}

func ack(client, id, kind string) knockpeer.Frame {
	return knockpeer.Frame{Type: knockpeer.Ack, ClientID: client, RequestID: id, Kind: kind}
}

func resume(client, id string) knockpeer.Frame {
	return knockpeer.Frame{Type: knockpeer.Resume, ClientID: client, RequestID: id}
}

func (e *knockEnd) send(f knockpeer.Frame) {
	e.w.T.Helper()
	e.w.must(e.Send(e.w.within(), f))
}

func (e *knockEnd) next() knockpeer.Frame {
	e.w.T.Helper()
	f, err := e.Next(e.w.within())
	if err != nil {
		e.w.T.Fatalf("the %s: %v", e.name, err)
	}
	return f
}

func (e *knockEnd) want(typ string) knockpeer.Frame {
	e.w.T.Helper()
	f := e.next()
	if f.Type != typ {
		e.w.T.Fatalf("the %s wants %s, gets %s", e.name, typ, f)
	}
	return f
}

func (e *knockEnd) wantMessage(id, kind string) knockpeer.Frame {
	e.w.T.Helper()
	f := e.want(knockpeer.Message)
	if f.RequestID != id || f.Kind != kind {
		e.w.T.Fatalf("the %s wants the %s of %s, gets %s", e.name, kind, id, f)
	}
	return f
}

func (e *knockEnd) wantState(id, want string) {
	e.w.T.Helper()
	f := e.want(knockpeer.State)
	got := strings.Join([]string{f.Exchange, f.Request, f.Response, f.Completion}, " ")
	if f.RequestID != id || got != want {
		e.w.T.Fatalf("the %s wants %s to be %s, it is %s", e.name, id, want, got)
	}
}

func (e *knockEnd) wantError(code string) knockpeer.Frame {
	e.w.T.Helper()
	f := e.want(knockpeer.Error)
	if f.Code != code {
		e.w.T.Fatalf("the %s wants %s, gets %s", e.name, code, f)
	}
	return f
}

// wantNothing wants nothing to have come.
func (e *knockEnd) wantNothing() {
	e.w.T.Helper()
	e.w.Settle()
	if got := e.Waiting(); len(got) > 0 {
		e.w.T.Fatalf("the %s is sent %s", e.name, got)
	}
}

func (e *knockEnd) wantClosed(code int) {
	e.w.T.Helper()
	f, err := e.Next(e.w.within())
	if err == nil {
		e.w.T.Fatalf("the %s wants to be closed, gets %s", e.name, f)
	}
	if got := knockpeer.CodeOf(err); got != code {
		e.w.T.Fatalf("the %s is closed with %d (%v), want %d", e.name, got, err, code)
	}
}

// publish sends a request and waits for its ack.
func (e *knockEnd) publish(client, id string) {
	e.w.T.Helper()
	e.send(message(client, id, knockpeer.Request, fmt.Sprintf("%q", id)))
	if f := e.want(knockpeer.Ack); f.RequestID != id {
		e.w.T.Fatalf("the %s gets %s", e.name, f)
	}
}

// pair is a device that is online and a client that is not.
func (w *world) pair() (*knock, *knockEnd, *knockpeer.Client) {
	w.T.Helper()
	k := w.knock()
	dv, _ := k.open()
	return k, dv, k.client(dv)
}

func newID() string { return knockpeer.NewID(time.Now()) }

// knocking changes the limits of Agentknock.
func knocking(change func(*agentknock.Limits)) func(*standalone.Config) {
	return func(c *standalone.Config) { change(&c.Limits.Agentknock) }
}

func TestKnockBubble(t *testing.T) {
	inBubble(t, func(_ *testing.T, w *world) {
		k, dv, m := w.pair()
		c, id := k.dial(m), newID()
		c.publish(m.ID, id)
		dv.wantMessage(id, knockpeer.Request)
		dv.send(ack(m.ID, id, knockpeer.Request))
		c.want(knockpeer.Receipt)
		dv.send(message(m.ID, id, knockpeer.Response, `{"a": 1e999}`))
		dv.want(knockpeer.Ack)
		if f := c.wantMessage(id, knockpeer.Response); string(f.Payload) != `{"a": 1e999}` {
			w.T.Errorf("the response is %s", f.Payload)
		}
		c.send(ack(m.ID, id, knockpeer.Response))
		dv.want(knockpeer.Receipt)
		c.wantNothing()
		dv.wantNothing()
	})
}
