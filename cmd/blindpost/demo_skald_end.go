package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"

	skaldclient "blindpost/shared/client/skald"
	"blindpost/shared/gateway"
)

// revokeBen takes the permission from a phone that is online.
func (d *skaldDemo) revokeBen(ctx context.Context) error {
	d.chapter("A lost phone", "Ben has lost his phone. The agent takes back its permission.")
	if err := d.check(d.within(ctx, func(ctx context.Context) error { return d.agent.Revoke(ctx, d.ben.key()) }),
		"the relay confirms that Ben's phone is out"); err != nil {
		return err
	}
	_ = d.check(d.within(ctx, func(ctx context.Context) error {
		e, err := awaitEvent(ctx, d.ben.events, "the end of the connection", func(e skaldclient.Disconnected) bool { return e.WasConnected && e.Err != nil })
		if err != nil {
			return err
		}
		var closed *skaldclient.CloseError
		if !errors.As(e.Err, &closed) || closed.Code != gateway.ClosePolicy {
			return fmt.Errorf("it ended otherwise: %w", e.Err)
		}
		return nil
	}), "its connection is cut")
	_ = d.check(d.within(ctx, func(ctx context.Context) error {
		select {
		case <-d.ben.run.done:
		case <-ctx.Done():
			return errors.New("it still tries")
		}
		return refusedWith(d.ben.run.err, skaldclient.CodeUnauthorized)
	}), "it tries to come back and is refused")
	_ = d.check(d.within(ctx, func(ctx context.Context) error {
		sealed := skaldclient.Sealed{Ciphertext: bytes.Repeat([]byte{0x5e}, 64)}
		if err := d.agent.SendSealed(ctx, d.ben.key(), sealed, false); err != nil {
			return err
		}
		_, err := awaitEvent(ctx, d.heard, "the relay's answer", func(e skaldclient.Fault) bool {
			return skaldclient.IsCode(e.Err, skaldclient.CodeNotFound)
		})
		return err
	}), "the relay takes no message for it any more")
	return nil
}

// revokeAna takes the permission from a phone that sleeps, and gives it back.
func (d *skaldDemo) revokeAna(ctx context.Context) error {
	d.tell("Ana's phone sleeps, and two messages wait for it, when the agent takes back its permission too. Later she pairs it again.")
	d.ana.offline()
	err := d.within(ctx, func(ctx context.Context) error {
		if err := d.awaitPresence(ctx, d.heard, d.ana, false); err != nil {
			return err
		}
		for _, text := range []string{"the code of the safe is 4711", "and the key is under the mat"} {
			if _, err := d.tellPhone(ctx, d.ana, text); err != nil {
				return err
			}
		}
		return d.agent.Revoke(ctx, d.ana.key())
	})
	if err == nil {
		err = d.bringIn(ctx, d.ana)
	}
	if d.check(err, "Ana's phone is out, pairs again, and is in again") != nil {
		return nil
	}
	_ = d.check(d.within(ctx, func(ctx context.Context) error { return d.reaches(ctx, d.ana, "welcome back") }),
		"the first message that it gets is a new one: the mailbox was emptied with the permission")
	return nil
}

// search looks at all that the relay has seen.
func (d *skaldDemo) search(ctx context.Context) error {
	d.chapter("What the relay knows",
		"The relay stops. Now all that it has written is searched for what was said: its database, its log, and what it gave to the push provider; as text, in hex and in base64.")
	d.agentRun.stop()
	if err := errors.Join(d.ana.close(), d.ben.close()); err != nil {
		return d.check(err, "the phones go home")
	}
	complaints := slices.Concat(d.heard.complaints(), d.ana.events.complaints(), d.ben.events.complaints())
	_ = d.check(errors.Join(complaints...), "no message has come twice, unreadable, or for another peer")
	everything, howMuch, err := d.written(ctx)
	if err != nil {
		return err
	}
	d.tell("%s", howMuch)
	namespace := d.agent.Identity().Namespace()
	_ = d.check(foundIn(everything, namespace[:]), "the search works: it does find the namespace, which the relay has to know")
	_ = d.check(nothingSaid(everything, d.texts), "none of the %d texts is there", len(d.texts))
	return d.check(d.noToken(everything), "none of the %d pairing tokens is there", len(d.tokens))
}

// onDisk searches the relay's files while it runs.
func (d *skaldDemo) onDisk() error {
	contents, err := d.relay.files()
	if err != nil {
		return err
	}
	key := d.ben.key()
	if err := foundIn(contents, key[:]); err != nil {
		return err
	}
	return nothingSaid(contents, d.texts)
}

func (d *skaldDemo) noToken(contents [][]byte) error {
	for _, token := range d.tokens {
		if foundIn(contents, token) == nil {
			return errors.New("there is one")
		}
	}
	return nil
}
