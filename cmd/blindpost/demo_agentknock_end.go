package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	peer "blindpost/shared/client/agentknock"
)

// revoke suspends the agent, lets it in again, and revokes it.
func (d *agentknockDemo) revoke(ctx context.Context) error {
	d.chapter("An agent that is revoked", "A stranger may have got at the machine on which the agent runs. Mia suspends it, looks into it, and then revokes it.")
	if err := d.check(d.within(ctx, func(ctx context.Context) error { return d.desk.SetClientState(ctx, d.agent.ID, "suspended") }),
		"Mia suspends the agent"); err != nil {
		return err
	}
	_ = d.check(d.within(ctx, func(ctx context.Context) error { return d.ended(ctx, 4002) }), "its connection is cut, and the code says why")
	_ = d.check(d.within(ctx, func(ctx context.Context) error {
		_, err := d.agent.Dial(ctx, peer.Options{})
		return refusedWithStatus(err, 403)
	}), "it tries to come back and is refused")
	d.agentOff()
	d.tell("It was a false alarm.")
	if err := d.check(d.within(ctx, func(ctx context.Context) error { return d.desk.SetClientState(ctx, d.agent.ID, "active") }),
		"Mia lets it in again"); err != nil {
		return err
	}
	d.session = d.agent.Start(ctx, peer.SessionOptions{})
	request := d.session.Begin(peer.NewID(time.Now()), d.say(askRelease))
	if err := d.answer(ctx, request, askRelease, allowRelease, "published"); err != nil {
		return err
	}
	d.tell("Weeks later, the project is over.")
	if err := d.check(d.within(ctx, func(ctx context.Context) error { return d.desk.SetClientState(ctx, d.agent.ID, "revoked") }),
		"Mia revokes the agent"); err != nil {
		return err
	}
	_ = d.check(d.within(ctx, func(ctx context.Context) error { return d.ended(ctx, 4003) }), "its connection is cut")
	return d.check(d.within(ctx, func(ctx context.Context) error {
		_, err := d.agent.Dial(ctx, peer.Options{})
		return refusedWithStatus(err, 401, 403, 404)
	}), "its token is of no more use")
}

// ended waits until the agent has given up because of code. The code may come with the
// close of its connection, or with the refusal of the next one.
func (d *agentknockDemo) ended(ctx context.Context, code int) error {
	select {
	case <-d.session.Done():
	case <-ctx.Done():
		return errors.New("it still tries")
	}
	if err := d.session.Err(); peer.CodeOf(err) != code {
		return fmt.Errorf("it ended otherwise: %w", err)
	}
	return nil
}

// search looks at all that the relay has seen.
func (d *agentknockDemo) search(ctx context.Context) error {
	d.chapter("What the relay knows",
		"The relay stops. Now all that it has written is searched for what was said: its database, its log, and what it gave to the push provider; as text, in hex and in base64.")
	d.agentOff()
	d.phoneOff()
	_ = d.check(d.nothingTwice(), "no message has come twice, or for another peer")
	everything, howMuch, err := d.written(ctx)
	if err != nil {
		return err
	}
	d.tell("%s", howMuch)
	_ = d.check(foundIn(everything, []byte(d.device.ID)), "the search works: it does find the phone's id, which the relay has to know")
	_ = d.check(noneIn(everything, d.texts), "none of the %d texts is there", len(d.texts))
	return d.check(noneIn(everything, d.tokens), "none of the %d tokens is there: the relay has only hashes of them", len(d.tokens))
}

// noneIn reports whether none of some texts is in what was written. Texts that are
// too short to say anything are not looked for.
func noneIn(contents [][]byte, texts []string) error {
	for _, text := range texts {
		if len(text) > 10 && foundIn(contents, []byte(text)) == nil {
			return fmt.Errorf("there is %.20q", text)
		}
	}
	return nil
}
