package main

import (
	"context"
	"errors"
	"fmt"
	"slices"

	skaldclient "blindpost/shared/client/skald"
)

// waiting are the messages for a phone that sleeps.
var waiting = []string{
	"one: the nightly backup is done",
	"two: the boat drags its anchor",
	"three: somebody rang at the door",
	"four: the tests are green",
	"five: please call your mother",
}

// sleep sends messages to a phone that is away.
func (d *skaldDemo) sleep(ctx context.Context) error {
	d.chapter("A sleeping phone",
		"Some messages make sense at once or never: those are sent live. The others wait in a mailbox at the relay, sealed, and a push wakes the phone.")
	_ = d.check(d.within(ctx, func(ctx context.Context) error {
		p, err := d.notify("are you there")
		if err != nil {
			return err
		}
		if err := d.agent.Send(ctx, d.ben.key(), p, true); err != nil {
			return err
		}
		_, err = awaitEvent(ctx, d.heard, "the relay's answer", func(e skaldclient.PeerOffline) bool { return e.Peer == d.ben.key() })
		return err
	}), "a live message to Ben comes back: he is not there")
	return nil
}

// wake leaves five messages for Ben and lets him come back.
func (d *skaldDemo) wake(ctx context.Context) error {
	var sent []skaldclient.Payload
	err := d.within(ctx, func(ctx context.Context) error {
		for _, text := range waiting {
			p, err := d.tellPhone(ctx, d.ben, text)
			if err != nil {
				return err
			}
			sent = append(sent, p)
		}
		if _, err := d.settled(ctx); err != nil {
			return err
		}
		if refused := d.heard.complaints(); len(refused) > 0 {
			return refused[0]
		}
		return nil
	})
	_ = d.check(err, "five messages to Ben wait in his mailbox")
	_ = d.check(d.within(ctx, func(ctx context.Context) error { return d.relay.pushes.wait(ctx, d.ben.token, 1) }),
		"the relay has asked the push provider to wake his phone")
	_ = d.check(d.onDisk(), "the relay's database has them only sealed")
	d.tell("Ben opens the app.")
	if err := d.check(d.within(ctx, d.ben.online), "his phone connects again"); err != nil {
		return err
	}
	_ = d.check(d.within(ctx, func(ctx context.Context) error { return d.collect(ctx, sent) }),
		"the five messages come, each once, in the order in which they were sent")
	_ = d.check(d.within(ctx, func(ctx context.Context) error {
		if err := d.awaitPresence(ctx, d.heard, d.ben, true); err != nil {
			return err
		}
		return d.reaches(ctx, d.ben, "six: good morning")
	}), "the agent sees him online, and a sixth message reaches him at once")
	return nil
}

// collect reads messages and checks their order: by content, and by the counter
// that the sender has sealed into each.
func (d *skaldDemo) collect(ctx context.Context, sent []skaldclient.Payload) error {
	if len(sent) != len(waiting) {
		return errors.New("they were not all sent")
	}
	last := uint64(0)
	for i, p := range sent {
		m, err := d.ben.events.readMessage(ctx, d.agentKey(), p)
		if err != nil {
			return fmt.Errorf("number %d: %w", i+1, err)
		}
		if m.Counter <= last {
			return fmt.Errorf("number %d has an old counter", i+1)
		}
		last = m.Counter
	}
	return nil
}

// lift lets a phone lose its network, of which neither end is told.
func (d *skaldDemo) lift(ctx context.Context) error {
	d.chapter("A phone in a lift",
		"Ana's network vanishes: no goodbye, the connection just stops carrying anything. The relay cannot know, and neither can the agent.")
	d.ana.net.vanish()
	var sent skaldclient.Payload
	_ = d.check(d.within(ctx, func(ctx context.Context) error {
		var err error
		if sent, err = d.tellPhone(ctx, d.ana, "the lift is stuck on the third floor"); err != nil {
			return err
		}
		online, err := d.settled(ctx)
		if err == nil && !slices.Contains(online, d.ana.key()) {
			err = errors.New("she counts as away")
		}
		return err
	}), "the agent sends Ana a message; to the relay she still looks online")
	d.tell("The lift opens, and her phone connects by another network.")
	d.ana.client.Reconnect()
	_ = d.check(d.within(ctx, func(ctx context.Context) error {
		_, err := d.ana.events.readMessage(ctx, d.agentKey(), sent)
		return err
	}), "the message is there: the relay had kept it, because her phone had never confirmed it")
	return nil
}
