package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	peer "blindpost/shared/client/agentknock"
)

// agentknockDemo is the story of a coding agent that has to ask before it acts, and
// of the phone of the person it asks.
type agentknockDemo struct {
	*demoStory

	network *network // of the phone
	device  *peer.Device
	fid     string // for pushes
	address string
	box     sealer // what phone and agent seal with
	agent   *peer.Client
	session *peer.Session // of the agent
	desk    *peer.Desk    // of the phone
	inbox   *demoEvents   // of the phone

	// texts and tokens are what the relay must not keep: all that was said, and all that
	// admits a peer.
	texts  []string
	tokens []string
}

// pairingWords are how a person tells the agent which phone to ask.
var pairingWords = []string{"amber", "harbor", "violin", "meadow"}

func (d *agentknockDemo) play(ctx context.Context) {
	defer d.close(ctx)
	d.tellChapters(ctx,
		d.openRelay,
		d.introducePhone,
		d.pair,
		d.sleep,
		d.wake,
		d.interrupt,
		d.restart,
		d.revoke,
		d.search,
	)
}

// openRelay starts the relay.
func (d *agentknockDemo) openRelay(ctx context.Context) error {
	d.chapter("A relay",
		"A coding agent runs somewhere in the cloud, the person it works for has a phone. Neither can reach the other directly, so both dial out to a relay. Here is one, in this process, with a database file of its own.")
	return d.startRelay(ctx, "")
}

// way is the relay as a peer reaches it, through n if it is set.
func (d *agentknockDemo) way(n *network) *peer.Relay {
	at := &peer.Relay{URL: d.relay.url(""), TLS: d.relay.trusted()}
	if n != nil {
		at.DialContext = n.dial
	}
	return at
}

// introducePhone registers the phone with the relay.
func (d *agentknockDemo) introducePhone(ctx context.Context) error {
	d.chapter("A phone",
		"Mia's phone gives itself an id and a secret token, and tells the relay both. The relay keeps only a hash of the token. Then the phone says where it can be found for pairing: an address made from four words.")
	var err error
	if d.network, err = newNetwork(d.relay.addr); err != nil {
		return d.check(err, "the phone has a network")
	}
	d.device = peer.NewDevice(d.way(d.network), time.Now())
	d.tokens = append(d.tokens, d.device.Token)
	d.address, d.fid = peer.AddressID(pairingWords...), "installation-of-mias-phone"
	d.inbox = newDemoEvents()
	if err := d.check(d.within(ctx, d.device.Claim), "the phone claims its id"); err != nil {
		return err
	}
	_ = d.check(d.within(ctx, func(ctx context.Context) error {
		thief := *d.device
		thief.Token = peer.NewToken()
		return refusedWithStatus(thief.Claim(ctx), 409)
	}), "no other phone can claim it afterwards")
	err = d.within(ctx, func(ctx context.Context) error {
		return errors.Join(d.device.SetAddress(ctx, d.address), d.device.SetPush(ctx, d.fid), d.device.SetPairing(ctx, true))
	})
	if err := d.check(err, "it sets its address, where to push to, and that it can be paired with"); err != nil {
		return err
	}
	return d.check(d.within(ctx, d.phoneOn), "it connects, and has nothing waiting for it")
}

// phoneOn opens the app on the phone, and waits until it has what waited for it.
func (d *agentknockDemo) phoneOn(ctx context.Context) error {
	d.desk = d.device.Start(ctx, peer.DeskOptions{OnMessage: func(in peer.Incoming) { d.inbox.put(in) }})
	return d.desk.CaughtUp(ctx)
}

// say seals a text for the other side.
func (d *agentknockDemo) say(text string) json.RawMessage {
	d.texts = append(d.texts, text)
	return d.box.seal(text)
}

// refusedWithStatus turns "was refused with this status" into success.
func refusedWithStatus(err error, statuses ...int) error {
	var no *peer.Refusal
	switch {
	case err == nil:
		return errors.New("it was let in")
	case !errors.As(err, &no):
		return fmt.Errorf("it was not refused, but: %w", err)
	}
	if !slices.Contains(statuses, no.Status) {
		return fmt.Errorf("it was refused otherwise: %w", err)
	}
	return nil
}

// close ends what still runs.
func (d *agentknockDemo) close(ctx context.Context) {
	d.agentOff()
	d.phoneOff()
	if d.network != nil {
		if err := d.network.close(); err != nil {
			d.screen.warn("demo: %v", err)
		}
		d.network = nil
	}
	d.stopRelay(ctx)
}

func (d *agentknockDemo) agentOff() {
	if d.session != nil {
		d.session.Stop()
		d.session = nil
	}
}

func (d *agentknockDemo) phoneOff() {
	if d.desk != nil {
		d.desk.Stop()
		d.desk = nil
	}
}
