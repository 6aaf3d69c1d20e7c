package main

import (
	"context"
	"errors"
	"fmt"

	skaldclient "blindpost/shared/client/skald"
)

// pairAna brings in the agent and the first phone.
func (d *skaldDemo) pairAna(ctx context.Context) error {
	d.chapter("Pairing",
		"An agent dials the relay and proves with a signature who it is. Then it shows a QR code: the relay's address, its own public keys, and a token that lets one phone in. (No need to scan it: two simulated phones are at hand.)")
	d.heard = newDemoEvents()
	var err error
	d.agent, err = skaldclient.NewAgent(skaldclient.AgentConfig{
		Config: skaldclient.Config{
			Store:   &skaldclient.MemoryStore{},
			OnEvent: d.heard.take,
			Dial:    d.dial,
			Backoff: demoBackoff,
		},
		URL: d.relay.url(skaldclient.DefaultPath),
	})
	if err != nil {
		return d.check(err, "the agent is made")
	}
	d.agentRun = startRun(d.agent.Run)
	if err := d.check(d.within(ctx, d.agent.WaitConnected), "the agent is connected and owns namespace %s", d.agent.Identity().Namespace()); err != nil {
		return err
	}
	if d.ana, err = newDemoPhone("Ana", d.relay, d.dial); err == nil {
		d.ben, err = newDemoPhone("Ben", d.relay, d.dial)
	}
	if err != nil {
		return d.check(err, "two phones are made")
	}
	code, err := d.openWindow(ctx, true)
	if err != nil {
		return d.check(err, "the agent opens a pairing window")
	}
	_ = d.check(d.wrongToken(ctx, code), "a stranger who guesses the token is turned away")
	if err := d.check(d.scan(ctx, d.ana, code), "Ana's phone scans the code, and the agent hears of it"); err != nil {
		return err
	}
	_ = d.check(d.within(ctx, func(ctx context.Context) error {
		return refusedWith(d.ben.client.Pair(ctx, code), skaldclient.CodePairingClosed)
	}),
		"Ben's phone scans the same code: the token has done its work, so it stays outside")
	_ = d.check(d.knock(ctx, d.ana), "Ana's phone wants to connect: not before the agent agrees")
	return d.check(d.admit(ctx, d.ana), "the agent agrees, and Ana's phone is in")
}

// pairBen brings in the second phone.
func (d *skaldDemo) pairBen(ctx context.Context) error {
	d.chapter("A second phone", "It needs a code of its own; the agent shows another one.")
	return d.check(d.bringIn(ctx, d.ben), "Ben's phone is in, too")
}

// bringIn pairs a phone by a code of its own, and allows it.
func (d *skaldDemo) bringIn(ctx context.Context, p *demoPhone) error {
	code, err := d.openWindow(ctx, false)
	if err == nil {
		err = d.scan(ctx, p, code)
	}
	if err == nil {
		err = d.admit(ctx, p)
	}
	return err
}

// openWindow has the agent show a pairing code, and returns what a phone reads
// from it.
func (d *skaldDemo) openWindow(ctx context.Context, draw bool) (skaldclient.PairingQR, error) {
	var p skaldclient.Pairing
	err := d.within(ctx, func(ctx context.Context) (err error) {
		p, err = d.agent.StartPairing(ctx, 0)
		return err
	})
	if err != nil {
		return p.QR, err
	}
	d.tokens = append(d.tokens, p.QR.Token[:])
	doc, err := p.QR.Marshal()
	if err != nil {
		return p.QR, err
	}
	if draw {
		d.screen.showQR(string(doc))
	}
	return skaldclient.ParsePairingQR(doc)
}

// wrongToken tries a code with another token.
func (d *skaldDemo) wrongToken(ctx context.Context, code skaldclient.PairingQR) error {
	stranger, err := skaldclient.NewClient(skaldclient.ClientConfig{
		Config: skaldclient.Config{Store: &skaldclient.MemoryStore{}, Dial: d.dial},
	})
	if err != nil {
		return err
	}
	for i := range code.Token {
		code.Token[i] ^= 0xff
	}
	return d.within(ctx, func(ctx context.Context) error {
		return refusedWith(stranger.Pair(ctx, code), skaldclient.CodePairingClosed)
	})
}

// scan pairs a phone, and waits until the agent was told.
func (d *skaldDemo) scan(ctx context.Context, p *demoPhone, code skaldclient.PairingQR) error {
	return d.within(ctx, func(ctx context.Context) error {
		if err := p.client.Pair(ctx, code); err != nil {
			return err
		}
		r, err := awaitEvent(ctx, d.heard, "the relay's word to the agent", func(r skaldclient.PairingRequested) bool {
			return r.Peer.Key == p.key()
		})
		switch {
		case err != nil:
			return err
		case r.Peer.Exchange != p.client.Identity().ExchangeKey():
			return errors.New("the agent was told another key")
		case !r.Expected:
			return errors.New("the agent did not expect it")
		}
		return nil
	})
}

// knock tries to connect as a client that is not allowed.
func (d *skaldDemo) knock(ctx context.Context, p *demoPhone) error {
	return d.within(ctx, func(ctx context.Context) error {
		c, err := skaldclient.Dial(ctx, d.relay.url(skaldclient.DefaultPath), d.dial)
		if err != nil {
			return err
		}
		defer c.Abort()
		auth := skaldclient.ClientAuth(p.client.Identity(), d.agent.Identity().Namespace(), "", skaldclient.PlatformAndroid)
		_, err = c.Authenticate(ctx, auth)
		return refusedWith(err, skaldclient.CodeUnauthorized)
	})
}

// admit allows a phone and lets it connect.
func (d *skaldDemo) admit(ctx context.Context, p *demoPhone) error {
	return d.within(ctx, func(ctx context.Context) error {
		if err := d.agent.Approve(ctx, p.key()); err != nil {
			return fmt.Errorf("failed to allow it: %w", err)
		}
		return p.online(ctx)
	})
}
