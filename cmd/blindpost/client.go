package main

import (
	"cmp"
	"context"
	"errors"
	"os"
	"time"

	skaldclient "blindpost/shared/client/skald"
)

const clientAbout = `Be a Skald client, as a phone is: pair with an agent by its pairing code, and chat
with it. The relay carries the messages and cannot read them.`

// A client that waits for the agent's permission connects again every knockEvery for as
// long as knockFor, and after that at the library's own intervals.
const (
	knockEvery = 3 * time.Second
	knockFor   = 5 * time.Minute
)

// clientChat is the client's side of a chat. Its alarm goes off when to connect again,
// unless the library decides that.
type clientChat struct {
	*talk
	client *skaldclient.Client
	relay  string // "" for the one of the pairing code
	name   string // of this device

	// paired says that this client has not introduced itself since it paired.
	paired bool
	// knocking says that the agent has yet to allow this client, and that the person was
	// told so at knockingSince.
	knocking      bool
	knockingSince time.Time
}

var _ party = (*clientChat)(nil)

func runClient(ctx context.Context, e env, args []string) int {
	f := newChatFlags(e, "client", clientAbout, "", "`url` of the relay, if it is another than the pairing code says")
	c := &clientChat{}
	var code string
	f.text(&code, "pair", "", "pairing `code` as the agent shows it; @FILE reads it from a file, - from the input. A client that is not paired asks for it by itself")
	hostname, _ := os.Hostname()
	f.text(&c.name, "name", cmp.Or(hostname, "blindpost client"), "`name` that the agent sees")
	if status, ok := f.parse(e, args); !ok {
		return status
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	s := newScreen(e, "> ")
	c.talk = newTalk(s, readLines(ctx, e.stdin), f.stay)
	c.party, c.relay = c, f.relay
	dial, err := f.dial(s)
	if err != nil {
		return chatFailed(s, err)
	}
	store, err := skaldclient.OpenFileStore(f.state)
	if err != nil {
		return chatFailed(s, err)
	}
	defer func() { _ = store.Close() }()
	c.client, err = skaldclient.NewClient(skaldclient.ClientConfig{
		Config: skaldclient.Config{Store: store, OnEvent: c.onEvent, Dial: dial},
		URL:    f.relay,
	})
	if err != nil {
		return chatFailed(s, err)
	}
	c.session = c.client
	s.note("Blindpost client\n  key        %s\n  state      %s", shownKey(c.client.Identity().PublicKey()), f.state)
	if _, paired := c.client.Agent(); code != "" || !paired {
		if status, ok := c.pair(ctx, code); !ok {
			return status
		}
	}
	agent, _ := c.client.Agent()
	s.note("  agent      %s\n/help lists what you can type.", shownKey(agent.Key))
	return c.loop(ctx)
}

// refused handles the refusal of a client that the agent has not allowed yet. That is
// no failure: the client waits for a person.
func (c *clientChat) refused(err error) bool {
	if !skaldclient.IsCode(err, skaldclient.CodeUnauthorized) {
		return false
	}
	if !c.knocking {
		c.knocking, c.knockingSince = true, time.Now()
		c.screen.note("The agent has to let this client in. It shows the key %s if all is well. Waiting …",
			shownKey(c.client.Identity().PublicKey()))
	}
	if time.Since(c.knockingSince) < knockFor {
		c.alarm = time.After(knockEvery)
	}
	return true
}

// tick asks again whether the agent has let us in.
func (c *clientChat) tick(context.Context) {
	if !c.linked {
		c.client.Reconnect()
	}
}

// connected introduces this client to an agent that has let it in.
func (c *clientChat) connected(ctx context.Context) {
	c.knocking = false
	agent, _ := c.client.Agent()
	if c.online[agent.Key] {
		c.screen.note("The agent is online.")
	} else {
		c.screen.note("The agent is away: the relay keeps what you send, sealed.")
	}
	if c.paired || c.online[agent.Key] {
		c.introduce(ctx)
	}
}

// introduce tells the agent the name of this client. An agent does not keep names over
// a restart.
func (c *clientChat) introduce(ctx context.Context) {
	p, err := c.client.NewPayload(skaldclient.KindHello, hello{deviceInfo{
		Platform: "android", // Skald has no name for a terminal
		Model:    "blindpost client",
		Version:  buildInfo().Version,
		Name:     c.name,
	}})
	if err == nil {
		err = c.client.Send(ctx, p, false)
	}
	if err == nil {
		c.paired, c.sent = false, true
	} else if !errors.Is(err, skaldclient.ErrNotConnected) {
		c.screen.warn("The agent was not told the name of this client: %s.", explain(err))
	}
}

// event shows messages.
func (c *clientChat) event(ctx context.Context, e skaldclient.Event) {
	switch e := e.(type) {
	case skaldclient.PresenceChange:
		if agent, _ := c.client.Agent(); e.Online && e.Peer == agent.Key {
			c.introduce(ctx)
		}
	case skaldclient.Message:
		if e.Payload.Kind != skaldclient.KindAck {
			c.received(e, c.who(e.From), payloadText(e.Payload))
		}
	}
}

// say sends a line to the agent.
func (c *clientChat) say(ctx context.Context, text string, live bool) (later []string) {
	if _, err := skaldclient.ParsePairingQR([]byte(text)); err == nil {
		c.screen.warn("That is a pairing code, and this client is paired already. To pair again: blindpost client --pair CODE")
		return nil
	}
	p, err := c.client.NewPayload(kindChat, chatText{Text: unslash(text)})
	if err == nil {
		err = c.client.Send(ctx, p, live)
	}
	if err != nil {
		if c.sendFailed(err, "the agent") {
			return []string{text}
		}
		return nil
	}
	c.sent = true
	if agent, _ := c.client.Agent(); !live && !c.online[agent.Key] {
		c.screen.note("The agent is away: the relay keeps this, sealed.")
	}
	return nil
}

func (c *clientChat) answer(context.Context, string) bool { return false }

func (c *clientChat) who(key skaldclient.PublicKey) string {
	agent, _ := c.client.Agent()
	switch key {
	case agent.Key:
		return "agent"
	case c.client.Identity().PublicKey():
		return "you"
	}
	return "another client (key " + shownKey(key) + ")"
}

func (c *clientChat) ended(err error) {
	if errors.Is(err, skaldclient.ErrRevoked) {
		c.screen.warn("The agent has taken back its permission, or the relay has forgotten this client after a week without a connection. To pair again: blindpost client --pair CODE")
	} else {
		c.screen.warn("Stopped: %s.", explain(err))
	}
}
