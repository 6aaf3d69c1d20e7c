package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	peer "blindpost/shared/client/agentknock"
)

const (
	askDeploy, allowDeploy   = "May I deploy version 4.2 to production?", "yes, go ahead"
	askDelete, denyDelete    = "May I delete the backups from before May?", "no, keep them"
	askMerge, allowMerge     = "May I merge the fix of the login page?", "merge it, I have read it"
	askRelease, allowRelease = "May I publish the release notes?", "yes, with the second headline"
)

// sleep lets the agent ask while the phone is away.
func (d *agentknockDemo) sleep(ctx context.Context) error {
	d.chapter("A sleeping phone", "Mia puts her phone away; its app sleeps, and has no connection.")
	d.phoneOff()
	d.session = d.agent.Start(ctx, peer.SessionOptions{})
	d.tell("The agent wants to deploy. It is not allowed to without asking.")
	return nil
}

// wake asks, wakes the phone, and brings the answer back.
func (d *agentknockDemo) wake(ctx context.Context) error {
	before, _ := d.relay.pushes.to(d.fid)
	request := d.session.Begin(peer.NewID(time.Now()), d.say(askDeploy))
	if err := d.check(d.within(ctx, request.Accepted), "the relay takes the request: from now on it is the relay's job, and stored"); err != nil {
		return err
	}
	err := d.within(ctx, func(ctx context.Context) error { return d.relay.pushes.wait(ctx, d.fid, len(before)+1) })
	if err := d.check(err, "it has asked the push provider to wake the phone"); err != nil {
		return err
	}
	pushes, _ := d.relay.pushes.to(d.fid)
	wake := pushes[len(pushes)-1]
	d.tell("This is all that Google gets to see: %s", wake)
	_ = d.check(d.isBareWake(wake), "no text, no name, no id")
	d.tell("The phone wakes up.")
	if err := d.check(d.within(ctx, d.phoneOn), "it connects, and has been sent what waited for it"); err != nil {
		return err
	}
	return d.answer(ctx, request, askDeploy, allowDeploy, "deployed")
}

// isBareWake checks that a push holds nothing but the wake.
func (d *agentknockDemo) isBareWake(payload []byte) error {
	for _, what := range append([]string{d.device.ID, d.agent.ID, d.address}, d.texts...) {
		if foundIn([][]byte{payload}, []byte(what)) == nil {
			return fmt.Errorf("there is %q", what)
		}
	}
	if foundIn([][]byte{payload}, []byte("wake")) != nil {
		return errors.New("it is no wake either")
	}
	return nil
}

// answer makes the phone read a question, the agent the answer, and the phone what came
// of it.
func (d *agentknockDemo) answer(ctx context.Context, request *peer.Exchange, question, answer, report string) error {
	if err := d.check(d.within(ctx, func(ctx context.Context) error {
		_, err := d.arrived(ctx, request.ID(), peer.Request, question)
		return err
	}), "Mia reads: %q", question); err != nil {
		return err
	}
	if err := d.check(d.within(ctx, func(ctx context.Context) error {
		sent := d.desk.Respond(d.agent.ID, request.ID(), d.say(answer))
		payload, err := request.Response(ctx)
		if err == nil {
			err = d.box.read(payload, answer)
		}
		if err == nil {
			err = sent.Received(ctx)
		}
		return err
	}), "the agent reads: %q, and the phone knows that it has", answer); err != nil {
		return err
	}
	return d.check(d.within(ctx, func(ctx context.Context) error {
		err := request.Complete(ctx, d.say(report))
		if err == nil {
			_, err = d.arrived(ctx, request.ID(), peer.Completion, report)
		}
		return err
	}), "the agent reports: %q", report)
}

// interrupt breaks connections in the middle of an exchange.
func (d *agentknockDemo) interrupt(ctx context.Context) error {
	d.chapter("A bad network",
		"The agent asks again, and this time everything breaks: its own connection right after it has asked, and the phone's without any notice, as if Mia had stepped into a lift.")
	request := d.session.Begin(peer.NewID(time.Now()), d.say(askDelete))
	d.session.Drop()
	d.network.vanish()
	if err := d.check(d.within(ctx, request.Accepted), "the agent reconnects by itself, and the relay has its request, once"); err != nil {
		return err
	}
	d.tell("The lift opens, and the phone finds another network.")
	d.desk.Drop()
	if err := d.answer(ctx, request, askDelete, denyDelete, "kept"); err != nil {
		return err
	}
	return d.check(d.nothingTwice(), "no message came to Mia twice")
}

// nothingTwice looks for messages that came and were not expected.
func (d *agentknockDemo) nothingTwice() error {
	if n := len(d.inbox.left()); n > 0 {
		return fmt.Errorf("there are %d unexpected messages", n)
	}
	return nil
}

// restart stops the relay between a question and its answer.
func (d *agentknockDemo) restart(ctx context.Context) error {
	d.chapter("A relay that is restarted", "The agent asks, and before Mia has answered, the relay is stopped and started again.")
	d.network.bury() // the connection that was lost in the lift is of no more use
	request := d.session.Begin(peer.NewID(time.Now()), d.say(askMerge))
	if err := d.check(d.within(ctx, request.Delivered), "the phone has the question"); err != nil {
		return err
	}
	agentOpens, phoneOpens := d.session.Opens(), d.desk.Opens()
	if err := d.check(d.relay.reopen(ctx, d.limits), "the relay is back, with the same database"); err != nil {
		return err
	}
	err := d.within(ctx, func(ctx context.Context) error {
		if err := d.session.Opened(ctx, agentOpens+1); err != nil {
			return err
		}
		if err := d.desk.Opened(ctx, phoneOpens+1); err != nil {
			return err
		}
		return d.desk.CaughtUp(ctx)
	})
	if err := d.check(err, "agent and phone reconnect"); err != nil {
		return err
	}
	if err := d.answer(ctx, request, askMerge, allowMerge, "merged"); err != nil {
		return err
	}
	return d.check(d.nothingTwice(), "nothing was lost, and nothing came twice")
}
