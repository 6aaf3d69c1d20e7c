package main

import (
	"context"
	"errors"
	"fmt"
	"slices"

	skaldclient "blindpost/shared/client/skald"
)

const agentAbout = `Be a Skald agent: the computer that phones pair with. Shows a QR code for a Skald
app, or a line for ` + "`blindpost client`" + ` in another terminal, and chats with the paired
clients. The relay carries the messages and cannot read them.`

// agentChat is the agent's side of a chat. Its alarm goes off when the pairing code on the
// screen expires.
type agentChat struct {
	*talk
	agent     *skaldclient.Agent
	relay     string
	publicURL string
	// allowAll lets in every client with a valid pairing code, without asking the person.
	allowAll bool

	// asked are the clients that wait for a yes or no, oldest first.
	asked []skaldclient.PairingRequest
	// names are what the clients call their devices, fit to print.
	names map[skaldclient.PublicKey]string
	// to is the client that gets the typed lines; zero for all clients.
	to skaldclient.PublicKey
}

var _ party = (*agentChat)(nil)

func runAgent(ctx context.Context, e env, args []string) int {
	f := newChatFlags(e, "agent", agentAbout, defaultRelay, "`url` of the relay")
	a := &agentChat{names: make(map[skaldclient.PublicKey]string)}
	f.text(&a.publicURL, "public-url", "", "`url` under which the other side reaches the relay, for the pairing code (default: as --relay)")
	f.yes(&a.allowAll, "yes", "let in every client that comes with a valid pairing code, without asking")
	if status, ok := f.parse(e, args); !ok {
		return status
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	s := newScreen(e, "> ")
	a.talk = newTalk(s, readLines(ctx, e.stdin), f.stay)
	a.party, a.relay = a, f.relay
	a.commands = append(a.ownCommands(), a.commands...)
	dial, err := f.dial(s)
	if err != nil {
		return chatFailed(s, err)
	}
	store, err := skaldclient.OpenFileStore(f.state)
	if err != nil {
		return chatFailed(s, err)
	}
	defer func() { _ = store.Close() }()
	a.agent, err = skaldclient.NewAgent(skaldclient.AgentConfig{
		Config:    skaldclient.Config{Store: store, OnEvent: a.onEvent, Dial: dial},
		URL:       f.relay,
		PublicURL: a.publicURL,
	})
	if err != nil {
		return chatFailed(s, err)
	}
	a.session = a.agent
	s.note("Blindpost agent\n  relay      %s\n  namespace  %s\n  state      %s", f.relay, a.agent.Identity().Namespace().Hex(), f.state)
	if n := len(a.allowed()); n > 0 {
		s.note("  paired     with %s", count(n, "client"))
	}
	s.note("/help lists what you can type.")
	return a.loop(ctx)
}

// chatFailed ends a command that could not begin.
func chatFailed(s *screen, err error) int {
	s.warn("%s.", capital(explain(err)))
	return 1
}

func (a *agentChat) refused(error) bool { return false }

func (a *agentChat) ended(err error) { a.screen.warn("Stopped: %s.", explain(err)) }

// connected shows a pairing code if no client is paired yet.
func (a *agentChat) connected(ctx context.Context) {
	clients := a.allowed()
	if len(clients) == 0 {
		if a.alarm == nil && len(a.asked) == 0 {
			a.pair(ctx, "")
		}
		return
	}
	online := 0
	for _, p := range clients {
		if a.online[p.Key] {
			online++
		}
	}
	a.screen.note("%d of %s online.", online, count(len(clients), "client"))
}

// event handles messages and pairing.
func (a *agentChat) event(ctx context.Context, e skaldclient.Event) {
	switch e := e.(type) {
	case skaldclient.PairingRequested:
		a.paired(ctx, e.PairingRequest)
	case skaldclient.Declared:
		if e.Known < e.Clients {
			a.screen.warn("The relay has forgotten %s: it forgets a namespace without a connection for a week. They have to pair again: /pair.",
				count(e.Clients-e.Known, "client"))
		}
	case skaldclient.Message:
		a.message(ctx, e)
	}
}

// say sends a line to all clients, or to the one that /to has chosen.
func (a *agentChat) say(ctx context.Context, text string, live bool) (later []string) {
	to := a.allowed()
	if a.to != (skaldclient.PublicKey{}) {
		to = slices.DeleteFunc(to, func(p skaldclient.Peer) bool { return p.Key != a.to })
	}
	if len(to) == 0 {
		a.screen.warn("No client is paired, so this is not sent. /pair shows a pairing code.")
		return nil
	}
	for _, p := range to {
		later = append(later, a.sayTo(ctx, p.Key, text, live)...)
	}
	return later
}

// sayTo sends a line to one client, as the kind of message that Skald apps show
// as a notification.
func (a *agentChat) sayTo(ctx context.Context, to skaldclient.PublicKey, text string, live bool) (later []string) {
	p, err := a.agent.NewPayload(skaldclient.KindNotification, notification{Title: "Blindpost", Body: unslash(text)})
	if err == nil {
		err = a.agent.Send(ctx, to, p, live)
	}
	if err != nil {
		if a.sendFailed(err, a.who(to)) {
			return []string{fmt.Sprintf("/to %d %s", a.number(to), text)}
		}
		return nil
	}
	a.sent = true
	if !live && !a.online[to] {
		a.screen.note("%s is away: the relay keeps this, sealed.", capital(a.who(to)))
	}
	return nil
}

// message shows a message, and answers the questions that apps ask by themselves.
func (a *agentChat) message(ctx context.Context, m skaldclient.Message) {
	from := a.who(m.From)
	switch m.Payload.Kind {
	case skaldclient.KindAck:
	case skaldclient.KindHello:
		var h hello
		if m.Payload.Decode(&h) == nil {
			a.rename(m.From, foreignLine(h.Device.Name))
		}
	case skaldclient.KindInboxRequest:
		a.sendInbox(ctx, m.From)
	case skaldclient.KindLogout:
		a.screen.note("%s has logged out.", capital(from))
		a.revokeKey(ctx, m.From)
	default:
		a.received(m, from, payloadText(m.Payload))
	}
}

// maxName bounds the name of a device, in runes.
const maxName = 40

// rename notes what a client calls itself.
func (a *agentChat) rename(key skaldclient.PublicKey, name string) {
	if r := []rune(name); len(r) > maxName {
		name = string(r[:maxName]) + "…"
	}
	if name == "" || a.names[key] == name {
		return
	}
	a.screen.note("%s is called %q.", capital(a.who(key)), name)
	a.names[key] = name
}

// sendInbox tells an app that the agent has no open questions. Apps ask after each
// connection, and wait for the answer.
func (a *agentChat) sendInbox(ctx context.Context, to skaldclient.PublicKey) {
	p, err := a.agent.NewPayload(skaldclient.KindInboxUpdate, inbox{
		Approvals:      []inboxItem{},
		Clarifications: []inboxItem{},
		Elicitations:   []inboxItem{},
	})
	if err == nil {
		err = a.agent.Send(ctx, to, p, true)
	}
	if err != nil && !errors.Is(err, skaldclient.ErrNotConnected) {
		a.screen.warn("No answer to %s: %s.", a.who(to), explain(err))
	}
}

// allowed are the clients that may take part.
func (a *agentChat) allowed() []skaldclient.Peer {
	return slices.DeleteFunc(a.agent.Peers(), func(p skaldclient.Peer) bool {
		return p.Status != skaldclient.StatusAuthorized
	})
}

// number is the number of a client in commands. Clients are numbered in the order of
// their first pairing, and keep their number.
func (a *agentChat) number(key skaldclient.PublicKey) int {
	return 1 + slices.IndexFunc(a.agent.Peers(), func(p skaldclient.Peer) bool { return p.Key == key })
}

func (a *agentChat) who(key skaldclient.PublicKey) string {
	switch n := a.number(key); {
	case key == a.agent.Identity().PublicKey():
		return "you"
	case n == 0:
		return "a stranger (" + shownKey(key) + ")"
	case a.names[key] != "":
		return fmt.Sprintf("client %d (%s)", n, a.names[key])
	default:
		return fmt.Sprintf("client %d", n)
	}
}
