package bench

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"

	peer "blindpost/shared/client/agentknock"
)

// knockClients is how many clients ask one device.
const knockClients = 4

// agentknock is where the relay's Agentknock endpoints are.
func (t *Target) agentknock() *peer.Relay {
	at := &peer.Relay{URL: "wss://" + t.Host, TLS: t.TLS}
	at.DialContext = func(ctx context.Context, network, _ string) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, network, t.Addr)
	}
	return at
}

// openKnocks makes devices and pairs clients with them: n clients in all.
func openKnocks(f *fleet, n, size int) (*knockRun, error) {
	r := &knockRun{
		fleet: f, clock: time.Now(), payload: json.RawMessage(`"` + strings.Repeat("x", size-2) + `"`),
		devices: make([]*answerer, (n+knockClients-1)/knockClients), knockers: make([]*knocker, n),
	}
	at := f.target.agentknock()
	err := f.each(len(r.devices), openers, func(i int) error {
		if err := r.openDevice(at, i); err != nil {
			return fmt.Errorf("failed to pair: %w", err)
		}
		return nil
	})
	return r, err
}

// openDevice makes one device and its clients.
func (r *knockRun) openDevice(at *peer.Relay, i int) error {
	ctx, cancel := context.WithTimeout(r.fleet.ctx, callTime)
	defer cancel()
	a := &answerer{run: r, device: peer.NewDevice(at, time.Now())}
	address := peer.NewAddress()
	err := a.device.Claim(ctx)
	for _, call := range []func() error{
		func() error { return a.device.SetAddress(ctx, address) },
		func() error { return a.device.SetPairing(ctx, true) },
	} {
		if err == nil {
			err = call()
		}
	}
	if err != nil {
		return err
	}
	r.devices[i] = a
	desk := a.device.Start(ctx, peer.DeskOptions{OnMessage: func(peer.Incoming) {}, Impatient: true})
	defer desk.Stop()
	pairing, lost := context.WithCancelCause(ctx)
	defer lost(nil)
	go func() {
		select {
		case <-desk.Done(): // its clients would wait for it in vain
			lost(desk.Err())
		case <-pairing.Done():
		}
	}()
	for j := i * knockClients; j < min((i+1)*knockClients, len(r.knockers)); j++ {
		k := &knocker{run: r, client: peer.NewClient(at, address, time.Now()), open: make(map[string]*knock)}
		k.client.DeviceID = a.device.ID
		if err := r.pairKnocker(pairing, desk, k); err != nil {
			return err
		}
		r.knockers[j] = k
	}
	desk.Stop()
	return r.connect(ctx, a, r.knockers[i*knockClients:min((i+1)*knockClients, len(r.knockers))])
}

// pairKnocker goes through an initial pairing.
func (r *knockRun) pairKnocker(ctx context.Context, desk *peer.Desk, k *knocker) error {
	session := k.client.Start(ctx, peer.SessionOptions{Pairing: true, Impatient: true})
	defer session.Stop()
	x := session.Begin(k.client.ID, r.payload)
	if err := x.Delivered(ctx); err != nil {
		return err
	}
	if err := desk.SetClientState(ctx, k.client.ID, "active"); err != nil {
		return err
	}
	answer := desk.Respond(k.client.ID, k.client.ID, r.payload)
	if _, err := x.Response(ctx); err != nil {
		return err
	}
	if err := answer.Received(ctx); err != nil {
		return err
	}
	return x.Complete(ctx, r.payload)
}

// connect opens the connections that are measured.
func (r *knockRun) connect(ctx context.Context, a *answerer, clients []*knocker) (err error) {
	dialled, caught := make(chan struct{}), make(chan struct{})
	ready := false // the reader's
	a.conn, err = a.device.Dial(ctx, peer.Options{OnFrame: func(f peer.Frame) {
		if ready {
			a.hear(f)
			return
		}
		<-dialled // the first frames may be here before a.conn is
		switch f.Type {
		case peer.CaughtUp:
			ready = true
			close(caught)
		case peer.Message: // the completion of a pairing
			_ = a.conn.Send(ctx, peer.Frame{Type: peer.Ack, ClientID: f.ClientID, RequestID: f.RequestID, Kind: f.Kind})
		}
	}})
	if err != nil {
		return err
	}
	close(dialled)
	r.watch("answering device", a.conn)
	select {
	case <-caught:
	case <-ctx.Done():
		return errors.New("the relay does not say that a device is caught up")
	}
	for _, k := range clients {
		if k.conn, err = k.client.Dial(ctx, peer.Options{OnFrame: k.hear}); err != nil {
			return err
		}
		r.watch("asking client", k.conn)
	}
	return nil
}

// watch makes the end of a connection the end of the fleet, and the other way round.
func (r *knockRun) watch(who string, c *peer.Conn) {
	context.AfterFunc(r.fleet.ctx, c.Drop)
	r.fleet.background(func() error {
		_, err := c.Next(context.Background())
		return fmt.Errorf("%s: %w", who, err)
	})
}
