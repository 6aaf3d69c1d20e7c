package main

import (
	"context"
	"errors"
	"fmt"

	skaldclient "blindpost/shared/client/skald"
)

// skaldDemo is the story of an agent, two phones and their relay.
type skaldDemo struct {
	*demoStory

	dial     skaldclient.DialOptions
	agent    *skaldclient.Agent
	heard    *demoEvents // by the agent
	agentRun *demoRun
	ana, ben *demoPhone

	// texts and tokens are what the relay must not keep: all that was said, and all that
	// admitted a phone.
	texts  []string
	tokens [][]byte
}

func (d *skaldDemo) play(ctx context.Context) {
	defer d.close(ctx)
	d.tellChapters(ctx,
		d.openRelay,
		d.pairAna,
		d.pairBen,
		d.talk,
		d.presence,
		d.sleep,
		d.wake,
		d.lift,
		d.revokeBen,
		d.revokeAna,
		d.search,
	)
}

// openRelay starts the relay.
func (d *skaldDemo) openRelay(ctx context.Context) error {
	d.chapter("A relay",
		"A phone and a computer at home cannot reach each other directly, so both dial out to a relay. Here is one, in this process, with a database file of its own.")
	if err := d.startRelay(ctx, skaldclient.DefaultPath); err != nil {
		return err
	}
	d.dial = skaldclient.DialOptions{TLSConfig: d.relay.trusted()}
	_ = d.check(d.within(ctx, func(ctx context.Context) error {
		c, err := skaldclient.Dial(ctx, "ws://"+d.relay.addr, skaldclient.DialOptions{})
		if err == nil {
			c.Abort()
			return errors.New("it took the connection")
		}
		return nil
	}), "it refuses connections without TLS")
	return nil
}

// say makes a message that only its reader may ever see.
func (d *skaldDemo) say(kind skaldclient.Kind, text string, body any) (skaldclient.Payload, error) {
	d.texts = append(d.texts, text)
	return d.agent.NewPayload(kind, body)
}

// notify makes a notification.
func (d *skaldDemo) notify(text string) (skaldclient.Payload, error) {
	return d.say(skaldclient.KindNotification, text, notification{Title: "Skald", Body: text})
}

// tellPhone sends a stored message from the agent to a phone.
func (d *skaldDemo) tellPhone(ctx context.Context, p *demoPhone, text string) (skaldclient.Payload, error) {
	payload, err := d.notify(text)
	if err != nil {
		return payload, err
	}
	return payload, d.agent.Send(ctx, p.key(), payload, false)
}

// reaches sends a stored message from the agent to a phone, and waits until it is there.
func (d *skaldDemo) reaches(ctx context.Context, p *demoPhone, text string) error {
	sent, err := d.tellPhone(ctx, p, text)
	if err != nil {
		return err
	}
	_, err = p.events.readMessage(ctx, d.agentKey(), sent)
	return err
}

// settled waits until the relay has handled all that the agent has sent, and
// returns who is online then: one connection's frames are handled in order.
func (d *skaldDemo) settled(ctx context.Context) ([]skaldclient.PublicKey, error) {
	online, err := d.agent.Presence(ctx)
	if err == nil {
		err = d.agent.Flush(ctx) // the events of what the relay said before were taken, too
	}
	return online, err
}

// agentKey is the agent's name on the wire.
func (d *skaldDemo) agentKey() skaldclient.PublicKey { return d.agent.Identity().PublicKey() }

// refusedWith turns "was refused with this code" into success.
func refusedWith(err error, code string) error {
	switch {
	case err == nil:
		return errors.New("it was let in")
	case !skaldclient.IsCode(err, code):
		return fmt.Errorf("it was refused otherwise: %w", err)
	}
	return nil
}

// close ends what still runs.
func (d *skaldDemo) close(ctx context.Context) {
	d.agentRun.stop()
	for _, p := range []*demoPhone{d.ana, d.ben} {
		if err := p.close(); err != nil {
			d.screen.warn("demo: %v", err)
		}
	}
	d.stopRelay(ctx)
}
