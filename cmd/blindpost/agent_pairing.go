package main

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	skaldclient "blindpost/shared/client/skald"
)

func (a *agentChat) ownCommands() []chatCommand {
	return []chatCommand{
		{"to", "N TEXT", "send TEXT to client N only; `/to N` alone does so with all further lines, until `/to all`", false, a.sendTo},
		{"clients", "", "list the paired clients", true, a.listClients},
		{"pair", "", "show a new pairing code", false, a.pair},
		{"allow", "N", "let client N in; so does `y` when you are asked", true, a.allowCommand},
		{"deny", "N", "turn client N away; so does `n`", true, a.denyCommand},
		{"revoke", "N", "take client N's permission back, and delete what waits for it at the relay", true, a.revoke},
	}
}

// pair opens a pairing window at the relay and shows its code.
func (a *agentChat) pair(ctx context.Context, _ string) {
	ctx, cancel := context.WithTimeout(ctx, askRelay)
	defer cancel()
	p, err := a.agent.StartPairing(ctx, 0)
	if err != nil {
		a.screen.warn("No pairing code: %s. /pair tries again.", explain(err))
		return
	}
	code, err := p.QR.Marshal()
	if err != nil {
		a.screen.warn("No pairing code: %s.", explain(err))
		return
	}
	a.screen.showQR(string(code))
	a.screen.note("Scan this with a Skald app, or run `blindpost client` and paste this line there:\n")
	a.screen.print("%s", code)
	a.screen.note("\nIt lets one client in, until %s. /pair shows a new one.", p.Expires.Local().Format("15:04"))
	if onThisComputer(p.QR.RelayURL) {
		a.screen.note("It leads to this computer, so it works on this computer only. For a phone, start the agent with --public-url wss://NAME.")
	}
	a.alarm = time.After(time.Until(p.Expires))
}

// tick runs when the pairing code has expired.
func (a *agentChat) tick(context.Context) {
	a.screen.note("The pairing code has expired. /pair shows a new one.")
}

// paired handles a client that has come through a pairing window.
func (a *agentChat) paired(ctx context.Context, r skaldclient.PairingRequest) {
	key := r.Peer.Key
	if r.Expected {
		a.alarm = nil // the code on the screen was used
	}
	known := func(o skaldclient.PairingRequest) bool { return o.Peer.Key == key }
	switch {
	case r.Peer.Status == skaldclient.StatusAuthorized:
		a.screen.note("%s has paired again.", capital(a.who(key)))
	case a.allowAll && r.Expected:
		a.allow(ctx, key)
	case !slices.ContainsFunc(a.asked, known):
		a.asked = append(a.asked, r)
		a.ask(r)
	}
}

// ask asks the person about a client.
func (a *agentChat) ask(r skaldclient.PairingRequest) {
	if !r.Expected {
		a.screen.warn("Careful: no pairing code of yours was open for this client.")
	}
	a.screen.print("Client %d wants in. Its key is %s. If the other side shows the same key, let it in: y or n?",
		a.number(r.Peer.Key), shownKey(r.Peer.Key))
}

// answer takes the yes or no to the oldest question.
func (a *agentChat) answer(ctx context.Context, text string) bool {
	if len(a.asked) == 0 {
		return false
	}
	key := a.asked[0].Peer.Key
	switch strings.ToLower(text) {
	case "y", "yes":
		a.allow(ctx, key)
	case "n", "no":
		a.deny(ctx, key)
	default:
		return false
	}
	if len(a.asked) > 0 {
		a.ask(a.asked[0])
	}
	return true
}

// decided takes a client off the list of questions.
func (a *agentChat) decided(key skaldclient.PublicKey) {
	a.asked = slices.DeleteFunc(a.asked, func(r skaldclient.PairingRequest) bool { return r.Peer.Key == key })
}

func (a *agentChat) allow(ctx context.Context, key skaldclient.PublicKey) {
	a.decided(key)
	if a.confirmed(ctx, key, a.agent.Approve) {
		a.screen.note("%s (key %s) is in.", capital(a.who(key)), shownKey(key))
	}
}

func (a *agentChat) deny(ctx context.Context, key skaldclient.PublicKey) {
	a.decided(key)
	ctx, cancel := context.WithTimeout(ctx, askRelay)
	defer cancel()
	if err := a.agent.Reject(ctx, key); err != nil {
		a.screen.warn("%s.", capital(explain(err)))
		return
	}
	a.screen.note("%s is turned away.", capital(a.who(key)))
}

// confirmed tells the relay a decision and reports whether the relay has confirmed it.
func (a *agentChat) confirmed(ctx context.Context, key skaldclient.PublicKey, decide func(context.Context, skaldclient.PublicKey) error) bool {
	ctx, cancel := context.WithTimeout(ctx, askRelay)
	defer cancel()
	err := decide(ctx, key)
	if err != nil {
		a.screen.warn("Noted, but the relay has not confirmed it: %s. The agent tells it again with the next connection.", explain(err))
	}
	return err == nil
}

func (a *agentChat) allowCommand(ctx context.Context, rest string) {
	p, ok := a.client(rest)
	switch {
	case !ok:
	case p.Status == skaldclient.StatusAuthorized:
		a.screen.warn("%s is in already.", capital(a.who(p.Key)))
	default:
		a.allow(ctx, p.Key)
	}
}

func (a *agentChat) denyCommand(ctx context.Context, rest string) {
	if key, ok := a.clientThatIs(rest, skaldclient.StatusPending, "does not wait for an answer"); ok {
		a.deny(ctx, key)
	}
}

func (a *agentChat) revoke(ctx context.Context, rest string) {
	if key, ok := a.clientThatIs(rest, skaldclient.StatusAuthorized, "has no permission"); ok {
		a.revokeKey(ctx, key)
	}
}

// clientThatIs finds a client for a command that only one status allows. Otherwise it
// says what is wrong.
func (a *agentChat) clientThatIs(rest string, status skaldclient.Status, wrong string) (skaldclient.PublicKey, bool) {
	p, ok := a.client(rest)
	if ok && p.Status != status {
		a.screen.warn("%s %s: it is %s.", capital(a.who(p.Key)), wrong, statusWords[p.Status])
		return p.Key, false
	}
	return p.Key, ok
}

func (a *agentChat) revokeKey(ctx context.Context, key skaldclient.PublicKey) {
	if a.to == key {
		a.to = skaldclient.PublicKey{}
	}
	if a.confirmed(ctx, key, a.agent.Revoke) {
		a.screen.note("%s is out: cut off, and what waited for it at the relay is gone.", capital(a.who(key)))
	}
}

// client finds a client by its number, and warns if there is none.
func (a *agentChat) client(number string) (skaldclient.Peer, bool) {
	peers := a.agent.Peers()
	n, err := strconv.Atoi(number)
	if err != nil || n < 1 || n > len(peers) {
		a.screen.warn("Which client? Give its number: /clients lists them.")
		return skaldclient.Peer{}, false
	}
	return peers[n-1], true
}

// sendTo sends one line to one client, or chooses who gets the following ones.
func (a *agentChat) sendTo(ctx context.Context, rest string) {
	number, text, _ := strings.Cut(rest, " ")
	if number == "all" {
		a.to = skaldclient.PublicKey{}
		a.screen.note("What you type goes to all clients.")
		return
	}
	p, ok := a.client(number)
	switch {
	case !ok:
	case p.Status != skaldclient.StatusAuthorized:
		a.screen.warn("%s gets nothing: it is %s.", capital(a.who(p.Key)), statusWords[p.Status])
	case text == "":
		a.to = p.Key
		a.screen.note("What you type goes to %s only. /to all ends that.", a.who(p.Key))
	default:
		a.hold(a.sayTo(ctx, p.Key, strings.TrimSpace(text), false)...)
	}
}

var statusWords = map[skaldclient.Status]string{
	skaldclient.StatusPending:    "waiting for your yes",
	skaldclient.StatusAuthorized: "allowed",
	skaldclient.StatusDenied:     "turned away",
	skaldclient.StatusRevoked:    "revoked",
}

func (a *agentChat) listClients(context.Context, string) {
	peers := a.agent.Peers()
	if len(peers) == 0 {
		a.screen.print("No client has paired yet. /pair shows a pairing code.")
		return
	}
	var b strings.Builder
	for i, p := range peers {
		status := statusWords[p.Status]
		if p.Status == skaldclient.StatusAuthorized && a.online[p.Key] {
			status += ", online"
		}
		fmt.Fprintf(&b, "%3d  key %s  %-22s paired %s  %s\n", i+1, shownKey(p.Key), status,
			p.PairedAt.Local().Format("2006-01-02 15:04"), a.names[p.Key])
	}
	a.screen.print("%s", strings.TrimRight(b.String(), "\n "))
}
