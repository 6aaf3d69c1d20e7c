package stories

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"testing"
	"time"

	knockpeer "blindpost/shared/client/agentknock"
	"blindpost/shared/standalone"
)

// doorbell is a relay in a bubble, with a device and an active client. What time does
// to Agentknock is told here; the rest is in the conformance suite.
type doorbell struct {
	*world
	at      *knockpeer.Relay
	device  *knockpeer.Device
	address string
	client  *knockpeer.Client
}

// inDoorbellBubble tells a story with the default limits, where change does not say
// otherwise.
func inDoorbellBubble(t *testing.T, story func(t *testing.T, k *doorbell), change ...func(*standalone.Config)) {
	t.Helper()
	inBubble(t, func(t *testing.T, w *world) {
		k := &doorbell{world: w, address: knockpeer.NewAddress()}
		k.at = &knockpeer.Relay{
			URL:    "ws://relay",
			Header: http.Header{"X-Forwarded-Proto": {"https"}, "X-Forwarded-For": {"198.18.0.1"}},
			DialContext: func(context.Context, string, string) (net.Conn, error) {
				conn, ok := w.Pipes.Dial("127.0.0.1")
				if !ok {
					return nil, errors.New("nobody listens")
				}
				return conn, nil
			},
		}
		k.device = knockpeer.NewDevice(k.at, time.Now())
		k.Secrets.AddToken("a token", k.device.Token)
		for _, call := range []func(context.Context) error{
			k.device.Claim,
			func(ctx context.Context) error { return k.device.SetAddress(ctx, k.address) },
			func(ctx context.Context) error { return k.device.SetPairing(ctx, true) },
			func(ctx context.Context) error { return k.device.SetPush(ctx, "the-fid-of-the-phone") },
		} {
			if err := call(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		k.client = k.newClient()
		k.pair(k.client)
		k.Pushes.Take()
		story(t, k)
	}, append([]func(*standalone.Config){func(c *standalone.Config) { c.Limits.Relay.ConnectionsPerIP = 0 }}, change...)...)
}

func (k *doorbell) newClient() *knockpeer.Client {
	c := knockpeer.NewClient(k.at, k.address, time.Now())
	c.DeviceID = k.device.ID
	k.Secrets.AddToken("a token", c.Token)
	return c
}

// pair brings a client as far as being active, and its pairing to its end.
func (k *doorbell) pair(c *knockpeer.Client) {
	k.T.Helper()
	cc, dv := k.open(c.DialPairing(k.T.Context(), knockpeer.Options{})), k.dial()
	x := &asked{k, c, c.ID}
	cc.says(x.message(knockpeer.Request))
	dv.gets(x.message(knockpeer.Request))
	dv.says(x.ack(knockpeer.Request), knockpeer.Frame{Type: knockpeer.SetClientState, ClientID: c.ID, State: "active"})
	dv.gets(knockpeer.Frame{Type: knockpeer.ClientState, ClientID: c.ID, State: "active"})
	cc.gets(x.ack(knockpeer.Request), x.receipt(knockpeer.Request))
	cc.says(x.message(knockpeer.Completion))
	dv.gets(x.message(knockpeer.Completion))
	dv.says(x.ack(knockpeer.Completion))
	cc.gets(x.ack(knockpeer.Completion), x.receipt(knockpeer.Completion))
	cc.conn.Close()
	dv.conn.Close()
	k.Settle()
}

// caller is one end of a connection.
type caller struct {
	k    *doorbell
	conn *knockpeer.Conn
}

func (k *doorbell) open(conn *knockpeer.Conn, err error) *caller {
	k.T.Helper()
	if err != nil {
		k.T.Fatal(err)
	}
	k.T.Cleanup(conn.Drop)
	return &caller{k, conn}
}

// dial connects the device, and takes what is said on connect: these frames wait.
func (k *doorbell) dial(waiting ...frame) *caller {
	k.T.Helper()
	dv := k.open(k.device.Dial(k.T.Context(), knockpeer.Options{}))
	dv.gets(knockpeer.Frame{Type: knockpeer.PushRegistration, State: "registered"})
	dv.gets(waiting...)
	dv.gets(frame{Type: knockpeer.CaughtUp})
	return dv
}

// call connects the client.
func (k *doorbell) call() *caller {
	k.T.Helper()
	return k.open(k.client.Dial(k.T.Context(), knockpeer.Options{}))
}

type frame = knockpeer.Frame

func (c *caller) says(fs ...frame) {
	c.k.T.Helper()
	for _, f := range fs {
		if err := c.conn.Send(c.k.T.Context(), f); err != nil {
			c.k.T.Fatal(err)
		}
	}
}

// next takes the next frame, which comes now.
func (c *caller) next() frame {
	c.k.T.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	f, err := c.conn.Next(ctx)
	if err != nil {
		c.k.T.Fatal(err)
	}
	return f
}

// gets wants these frames; that a client is pending may be said in between.
func (c *caller) gets(fs ...frame) {
	c.k.T.Helper()
	for _, want := range fs {
		got := c.next()
		for got.Type == knockpeer.ClientState && got.State == "pending" {
			got = c.next()
		}
		if got.AddressID != "" {
			got.AddressID = "" // of initial pairings
		}
		if string(got.Encode()) != string(want.Encode()) {
			c.k.T.Fatalf("got %s, not %s", got, want)
		}
	}
}

// getsState wants a snapshot that is like this, or none if it is the zero value.
func (c *caller) getsState(x *asked, want knockpeer.Snapshot) {
	c.k.T.Helper()
	c.says(x.frame(knockpeer.Resume, ""))
	f := c.next()
	if want == (knockpeer.Snapshot{}) {
		if f.Type != knockpeer.Inactive || f.Kind != "" {
			c.k.T.Fatalf("got %s, not inactive", f)
		}
		return
	}
	if f.Type != knockpeer.State || f.Snapshot != want {
		c.k.T.Fatalf("got %s, not %+v", f, want)
	}
}

// asked is an exchange.
type asked struct {
	k      *doorbell
	client *knockpeer.Client
	id     string
}

func (k *doorbell) ask() *asked { return &asked{k, k.client, knockpeer.NewID(time.Now())} }

func (x *asked) frame(kind, of string) frame {
	return frame{Type: kind, ClientID: x.client.ID, RequestID: x.id, Kind: of}
}

func (x *asked) message(kind string) frame {
	f := x.frame(knockpeer.Message, kind)
	f.Payload = json.RawMessage(`{"sealed":"` + kind + `"}`)
	return f
}

func (x *asked) ack(kind string) frame     { return x.frame(knockpeer.Ack, kind) }
func (x *asked) receipt(kind string) frame { return x.frame(knockpeer.Receipt, kind) }

func snapshot(exchange, request, response, completion string) knockpeer.Snapshot {
	return knockpeer.Snapshot{Exchange: exchange, Request: request, Response: response, Completion: completion}
}
