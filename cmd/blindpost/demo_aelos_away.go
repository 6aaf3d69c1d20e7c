package main

import (
	"context"
	"errors"
	"fmt"

	peer "blindpost/shared/client/aelos"
)

// tunnel lets the boat lose its network, of which neither end is told.
func (d *aelosDemo) tunnel(ctx context.Context) error {
	d.chapter("A boat that reconnects", "The boat's network vanishes: no goodbye, the connection just stops carrying anything. The boat notices first, and dials again.")
	d.ana.events.forget()
	d.ben.events.forget()
	d.boat.events.forget()
	d.boat.net.vanish()
	d.boat.hangUp()
	err := d.within(ctx, func(ctx context.Context) error {
		if err := d.boatConnects(ctx); err != nil {
			return err
		}
		return d.boat.watched(ctx, 2)
	})
	if d.check(err, "the relay takes the new connection in place of the old one, and says again how many watch") != nil {
		return err
	}
	err = d.within(ctx, func(ctx context.Context) error {
		for _, v := range []*aelosViewer{d.ana, d.ben} {
			v.overlook()
			if _, err := v.instruments(ctx); err != nil {
				return fmt.Errorf("%s: %w", v.name, err)
			}
			if err := v.settled(ctx); err != nil {
				return fmt.Errorf("%s: %w", v.name, err)
			}
			if is, told, _ := takeEvent[peer.BoatIs](v.events, nil); told {
				return fmt.Errorf("%s was told that the boat's presence is %v", v.name, is.Online)
			}
		}
		return nil
	})
	_ = d.check(err, "Ana and Ben go on seeing the instruments, in the session that they had, and never heard that the boat was away")
	return nil
}

// away lets the boat leave and come back.
func (d *aelosDemo) away(ctx context.Context) error {
	d.chapter("A boat that leaves", "The boat switches off for a while, and says so.")
	d.boat.leave()
	err := d.within(ctx, func(ctx context.Context) error {
		for _, v := range []*aelosViewer{d.ana, d.ben} {
			if _, err := awaitEvent(ctx, v.events, "news for "+v.name, func(is peer.BoatIs) bool { return !is.Online }); err != nil {
				return err
			}
		}
		return nil
	})
	_ = d.check(err, "Ana and Ben are told at once that it is away")
	var answer peer.Answered
	err = d.within(ctx, func(ctx context.Context) (err error) {
		if _, err = d.ana.order("anchor/silence", 0); err != nil {
			return err
		}
		answer, err = awaitEvent[peer.Answered](ctx, d.ana.events, "an answer", nil)
		return err
	})
	_ = d.check(err, "Ana sends a command: the relay answers that it did not get through (%d %q), which is all that it may say", answer.StatusCode, answer.Message)
	d.boat.events.forget()
	err = d.within(ctx, func(ctx context.Context) error {
		if err := d.boatConnects(ctx); err != nil {
			return err
		}
		for _, v := range []*aelosViewer{d.ana, d.ben} {
			v.events.forget()
			if _, err := v.instruments(ctx); err != nil {
				return fmt.Errorf("%s: %w", v.name, err)
			}
		}
		if d.boat.times("anchor/silence") > 0 {
			return errors.New("the relay kept the command for the boat")
		}
		return nil
	})
	return d.check(err, "the boat is back, and both see the instruments; the command was not kept")
}

// viewersLeave ends the connections of all viewers.
func (d *aelosDemo) viewersLeave(ctx context.Context) error {
	d.chapter("The last viewer leaves", "Ben closes the app, and Ana's phone goes out without a goodbye.")
	d.boat.events.forget()
	d.ben.leave()
	d.ana.hangUp()
	err := d.within(ctx, func(ctx context.Context) error { return d.boat.watched(ctx, 0) })
	_ = d.check(err, "the boat is told that it has no viewers")
	_ = d.check(d.within(ctx, d.boat.quiet), "it sends nothing any more")
	return nil
}

// search looks at all that the relay has seen.
func (d *aelosDemo) search(ctx context.Context) error {
	d.chapter("What the relay knows",
		"The relay stops. Now all that passed through it is searched for what was said, inside of TLS, as the relay saw it, and so is what it has written: its log and its database; as text, in hex and in base64.")
	texts := []string{aelosDepth, aelosPosition, "ydwg.YD"}
	texts = append(append(texts, d.ana.said...), d.ben.said...)
	if err := d.boat.close(); err != nil {
		return d.check(err, "the boat goes home")
	}
	texts = append(texts, d.boat.said...)
	everything, _, err := d.written(ctx)
	if err != nil {
		return err
	}
	seen := d.wire.all()
	size := 0
	for _, m := range seen {
		size += len(m)
	}
	d.tell("%d messages with %d KiB passed through, among them %s.", len(seen), size>>10, count(int(d.boat.published.Load()), "snapshot"))
	everything = append(everything, seen...)
	_ = d.check(foundIn(everything, []byte(`"t":"hs1"`)), "the search works: it does find the handshakes, which the relay has to carry")
	return d.check(nothingSaid(everything, texts), "none of the %d readings, commands and answers is there", len(texts))
}
