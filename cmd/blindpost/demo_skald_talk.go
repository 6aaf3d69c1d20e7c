package main

import (
	"context"
	"errors"
	"fmt"

	skaldclient "blindpost/shared/client/skald"
)

// talk sends messages both ways. Their bodies are as in the apps.
func (d *skaldDemo) talk(ctx context.Context) error {
	d.chapter("Messages",
		"The agent asks Ana for permission, she answers. Both are encrypted on one end and decrypted on the other; the relay gets sealed bytes and an address.")
	const question, answer = "Send 240 EUR to Acme for invoice 1234?", "approved, but take the business account"
	ask, err := d.say(skaldclient.KindInboxUpdate, question, map[string]any{
		"badge":          1,
		"approvals":      []map[string]string{{"request_id": "appr_1", "tool_name": "pay", "agent_label": "Skald", "summary": question}},
		"clarifications": []string{},
		"elicitations":   []string{},
	})
	if err == nil {
		err = d.within(ctx, func(ctx context.Context) error {
			if err := d.agent.Send(ctx, d.ana.key(), ask, false); err != nil {
				return err
			}
			_, err := d.ana.events.readMessage(ctx, d.agentKey(), ask)
			return err
		})
	}
	if d.check(err, "Ana reads: %q", question) != nil {
		return err
	}
	reply, err := d.say(skaldclient.KindApprovalResponse, answer, map[string]string{"request_id": "appr_1", "decision": "approved", "reason": answer})
	if err == nil {
		err = d.within(ctx, func(ctx context.Context) error {
			if err := d.ana.client.Send(ctx, reply, false); err != nil {
				return err
			}
			_, err := d.heard.readMessage(ctx, d.ana.key(), reply)
			return err
		})
	}
	_ = d.check(err, "the agent reads: %q", answer)
	_ = d.check(d.liveRound(ctx), "Ben's app asks for the state of things, live, and the agent answers, live")
	return nil
}

// liveRound is a question and its answer on the live channel.
func (d *skaldDemo) liveRound(ctx context.Context) error {
	const secret = "nothing waits for you, Ben"
	question, err := d.ben.client.NewPayload(skaldclient.KindInboxRequest, nil)
	if err != nil {
		return err
	}
	answer, err := d.say(skaldclient.KindInboxUpdate, secret, map[string]any{
		"badge": 0, "approvals": []string{}, "clarifications": []string{}, "elicitations": []string{}, "note": secret,
	})
	if err != nil {
		return err
	}
	return d.within(ctx, func(ctx context.Context) error {
		if err := d.ben.client.Send(ctx, question, true); err != nil {
			return err
		}
		m, err := d.heard.readMessage(ctx, d.ben.key(), question)
		if err != nil {
			return err
		}
		if err := d.agent.Send(ctx, d.ben.key(), answer, true); err != nil {
			return err
		}
		back, err := d.ben.events.readMessage(ctx, d.agentKey(), answer)
		if err == nil && !(m.Live && back.Live) {
			err = errors.New("they did not come as live messages")
		}
		return err
	})
}

// presence looks at who is online.
func (d *skaldDemo) presence(ctx context.Context) error {
	d.chapter("Who is online", "Members of a namespace may know which of them are connected. Others may not.")
	_ = d.check(d.within(ctx, func(ctx context.Context) error {
		online, err := d.ana.client.Presence(ctx)
		if err != nil {
			return err
		}
		want := map[skaldclient.PublicKey]bool{d.agentKey(): true, d.ana.key(): true, d.ben.key(): true}
		for _, key := range online {
			if !want[key] {
				return errors.New("it names a stranger, or one twice")
			}
			delete(want, key)
		}
		if len(want) > 0 {
			return fmt.Errorf("%d are missing", len(want))
		}
		return nil
	}), "Ana asks who is online: the agent, Ben, and herself")
	d.ben.offline()
	_ = d.check(d.within(ctx, func(ctx context.Context) error {
		for name, events := range map[string]*demoEvents{"the agent": d.heard, "Ana": d.ana.events} {
			if err := d.awaitPresence(ctx, events, d.ben, false); err != nil {
				return fmt.Errorf("%s was not told: %w", name, err)
			}
		}
		return nil
	}), "Ben closes the app: the agent and Ana are told that he is away")
	return nil
}

// awaitPresence waits for the news that a phone came or went.
func (d *skaldDemo) awaitPresence(ctx context.Context, events *demoEvents, p *demoPhone, online bool) error {
	_, err := awaitEvent(ctx, events, "the news about "+p.name, func(e skaldclient.PresenceChange) bool {
		return e.Peer == p.key() && e.Online == online
	})
	return err
}
