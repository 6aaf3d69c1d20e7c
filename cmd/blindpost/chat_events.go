package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	skaldclient "blindpost/shared/client/skald"
)

// event handles what happens to the connection.
func (t *talk) event(ctx context.Context, e skaldclient.Event) {
	switch e := e.(type) {
	case skaldclient.Connected:
		t.connected(ctx)
	case skaldclient.Disconnected:
		t.disconnected(e)
	case skaldclient.PresenceChange:
		// The same news may come twice.
		if was, known := t.online[e.Peer]; known && was == e.Online {
			return
		}
		t.online[e.Peer] = e.Online
		if e.Online {
			t.screen.note("%s is online.", capital(t.party.who(e.Peer)))
		} else {
			t.screen.note("%s is away.", capital(t.party.who(e.Peer)))
		}
		t.party.event(ctx, e)
	case skaldclient.PeerOffline:
		t.online[e.Peer] = false
		t.screen.warn("Not delivered: %s is not online. (Without /live it would wait at the relay.)", t.party.who(e.Peer))
	case skaldclient.Fault:
		t.screen.warn("%s.", capital(explain(e.Err)))
	case skaldclient.Dropped:
		t.screen.warn("A message from %s was refused: %s.", t.party.who(e.From), explain(e.Err))
	case skaldclient.SealedMessage:
		t.screen.note("A message from %s came that cannot be read here.", t.party.who(e.From))
	case skaldclient.Message:
		if !e.Payload.Fresh(time.Now()) {
			t.screen.warn("A message from %s is left out: its date is more than a week off.", t.party.who(e.From))
			return
		}
		t.party.event(ctx, e)
	default:
		t.party.event(ctx, e)
	}
}

func (t *talk) connected(ctx context.Context) {
	again := t.linkedOnce
	t.linked, t.linkedOnce, t.sent, t.failure = true, true, false, ""
	if again {
		t.screen.note("Connected again.")
	} else {
		t.screen.note("Connected.")
	}
	t.learnPresence(ctx)
	t.party.connected(ctx)
	held := t.held
	t.held = nil
	for _, text := range held {
		t.entered(ctx, line{text: text})
	}
}

func (t *talk) disconnected(e skaldclient.Disconnected) {
	t.linked = false
	clear(t.online)
	if e.Final || t.party.refused(e.Err) {
		return
	}
	why := explain(e.Err)
	switch {
	case e.WasConnected:
		t.screen.warn("Connection lost: %s. Connecting again …", why)
	case why != t.failure:
		t.screen.warn("No connection: %s. I keep trying.", why)
	}
	t.failure = why
}

// learnPresence asks who is online, for the remarks about peers that are away. The
// chat works without it.
func (t *talk) learnPresence(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, askRelay)
	defer cancel()
	online, err := t.session.Presence(ctx)
	if err != nil {
		return
	}
	for _, key := range online {
		t.online[key] = true
	}
}

func (t *talk) listOnline(ctx context.Context, _ string) {
	ctx, cancel := context.WithTimeout(ctx, askRelay)
	defer cancel()
	online, err := t.session.Presence(ctx)
	if err != nil {
		t.screen.warn("The relay does not say who is online: %s.", explain(err))
		return
	}
	names := make([]string, 0, len(online))
	clear(t.online)
	for _, key := range online {
		t.online[key] = true
		names = append(names, t.party.who(key))
	}
	t.screen.print("Online: %s", strings.Join(names, ", "))
}

// sendFailed says why a message was not sent. It reports whether it is worth
// sending again with the next connection.
func (t *talk) sendFailed(err error, to string) (later bool) {
	if errors.Is(err, skaldclient.ErrNotConnected) {
		return true
	}
	t.screen.warn("Not sent to %s: %s.", to, explain(err))
	return false
}

// received shows a message.
func (t *talk) received(m skaldclient.Message, from, text string) {
	at := m.Payload.Time().Local()
	stamp := at.Format("15:04")
	if time.Since(at) > 12*time.Hour {
		stamp = at.Format("Jan 2 15:04")
	}
	name := t.screen.styled(styleBold, from)
	if m.Live {
		name += " (live)"
	}
	t.screen.print("%s %s: %s", stamp, name, foreign(text))
}

// shownKey is a key in the form in which both sides show it: people compare 64 bits, in
// groups of four digits.
func shownKey(k skaldclient.PublicKey) string {
	return fmt.Sprintf("%x %x %x %x", k[0:2], k[2:4], k[4:6], k[6:8])
}
