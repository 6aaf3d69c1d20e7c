package main

import (
	"context"
	"errors"
	"time"

	peer "blindpost/shared/client/agentknock"
)

// pair makes the phone accept the agent.
func (d *agentknockDemo) pair(ctx context.Context) error {
	d.chapter("Pairing",
		"Mia tells her agent the four words. It knocks at the address they stand for, with a token that it has just made up. What it says is sealed: the relay sees an envelope.")
	var err error
	if d.box, err = newSealer(); err != nil {
		return d.check(err, "agent and phone have a key")
	}
	d.agent = peer.NewClient(d.way(nil), d.address, time.Now())
	d.agent.DeviceID = d.device.ID
	d.tokens = append(d.tokens, d.agent.Token)
	_ = d.check(d.within(ctx, func(ctx context.Context) error {
		lost := peer.NewClient(d.way(nil), peer.AddressID("other", "words"), time.Now())
		_, err := lost.DialPairing(ctx, peer.Options{})
		return refusedWithStatus(err, 404)
	}), "with other words it would find no phone")
	const hello, welcome, done = "let me in: I am Mia's agent on build-7", "welcome, build-7", "thank you"
	knocking := d.agent.Start(ctx, peer.SessionOptions{Pairing: true})
	defer knocking.Stop()
	request := knocking.Begin(d.agent.ID, d.say(hello))
	if err := d.check(d.within(ctx, func(ctx context.Context) error {
		in, err := d.arrived(ctx, d.agent.ID, peer.Request, hello)
		if err == nil && in.AddressID != d.address {
			err = errors.New("it does not say at which address")
		}
		return err
	}), "the phone reads: %q", hello); err != nil {
		return err
	}
	_ = d.check(d.within(ctx, func(ctx context.Context) error {
		_, err := d.agent.Dial(ctx, peer.Options{})
		return refusedWithStatus(err, 403)
	}), "as long as Mia has not agreed, the agent is pending, and can do nothing else")
	if err := d.check(d.within(ctx, func(ctx context.Context) error {
		if err := d.desk.SetClientState(ctx, d.agent.ID, "active"); err != nil {
			return err
		}
		answer := d.desk.Respond(d.agent.ID, d.agent.ID, d.say(welcome))
		payload, err := request.Response(ctx)
		if err == nil {
			err = d.box.read(payload, welcome)
		}
		if err == nil {
			err = request.Complete(ctx, d.say(done))
		}
		if err == nil {
			err = answer.Received(ctx)
		}
		return err
	}), "Mia agrees, and the agent reads: %q", welcome); err != nil {
		return err
	}
	_ = d.check(d.within(ctx, func(ctx context.Context) error {
		_, err := d.arrived(ctx, d.agent.ID, peer.Completion, done)
		return err
	}), "the phone learns that it has arrived")
	return d.check(d.within(ctx, func(ctx context.Context) error {
		if err := d.device.SetPairing(ctx, false); err != nil {
			return err
		}
		_, err := peer.NewClient(d.way(nil), d.address, time.Now()).DialPairing(ctx, peer.Options{})
		return refusedWithStatus(err, 403)
	}), "pairing is off again: another agent that knows the words is turned away")
}
