package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"time"

	"blindpost/shared/skaldclient"
)

// skaldDemo is the story of an agent, two phones and their relay.
type skaldDemo struct {
	*demoReport
	demoSettings
	dir string

	relay    *demoRelay
	dial     skaldclient.DialOptions
	agent    *skaldclient.Agent
	heard    *demoEvents // by the agent
	agentRun *demoRun
	ana, ben *demoPhone

	// texts are all that was said, tokens all that opened a door: what the relay
	// must not know, or not keep.
	texts  []string
	tokens [][]byte
}

// play tells the story. A chapter returns an error if the following ones need
// what has failed in it.
func (d *skaldDemo) play(ctx context.Context) {
	defer d.close(ctx)
	for _, chapter := range []func(context.Context) error{
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
	} {
		err := chapter(ctx)
		if ctx.Err() != nil {
			return
		}
		if err != nil {
			d.tell("Without this, the rest makes no sense: the demo ends here.")
			return
		}
	}
}

// within gives something that has to happen its time.
func (d *skaldDemo) within(ctx context.Context, f func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, d.patience)
	defer cancel()
	return f(ctx)
}

// openRelay starts the relay.
func (d *skaldDemo) openRelay(ctx context.Context) error {
	d.chapter("A relay",
		"A phone and a computer at home cannot reach each other directly, so both dial out to a relay. Here is one, in this process, with a database file of its own.")
	var show func(string)
	if d.verbose {
		show = func(line string) { d.screen.print("      relay: %s", line) }
	}
	var err error
	if d.relay, err = startDemoRelay(d.dir, d.demoSettings, show); err != nil {
		return d.check(err, "the relay starts")
	}
	d.dial = skaldclient.DialOptions{TLSConfig: &tls.Config{RootCAs: d.relay.roots, MinVersion: tls.VersionTLS12}}
	if err := d.check(d.within(ctx, d.relay.healthy), "it serves %s, and the certificate is the one just made for it", d.relay.url()); err != nil {
		return err
	}
	_ = d.check(d.within(ctx, func(ctx context.Context) error {
		c, err := skaldclient.Dial(ctx, "ws://"+d.relay.addr, skaldclient.DialOptions{})
		if err == nil {
			c.Abort()
			return errors.New("it took the connection")
		}
		return nil
	}), "without TLS it lets nobody connect")
	return nil
}

// say makes a message that nobody but its reader may ever see.
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

// settled waits until the relay has handled all that the agent has sent, and
// returns who is online then: one connection's frames are handled in order.
func (d *skaldDemo) settled(ctx context.Context) (map[skaldclient.PublicKey]bool, error) {
	online, err := d.agent.Presence(ctx)
	if err == nil {
		err = d.agent.Flush(ctx) // what the relay said before has been noted, too
	}
	set := make(map[skaldclient.PublicKey]bool)
	for _, key := range online {
		set[key] = true
	}
	return set, err
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

// close ends whatever still runs.
func (d *skaldDemo) close(ctx context.Context) {
	d.agentRun.stop()
	for _, p := range []*demoPhone{d.ana, d.ben} {
		if err := p.close(); err != nil {
			d.screen.warn("demo: %v", err)
		}
	}
	d.stopRelay(ctx)
}

// stopRelay ends the relay, once.
func (d *skaldDemo) stopRelay(ctx context.Context) {
	if d.relay == nil {
		return
	}
	// What has ended the demo must not leave the database open.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	if err := d.relay.stop(ctx); err != nil {
		d.screen.warn("demo: the relay did not stop cleanly: %v", err)
	}
	d.relay = nil
}
