package main

import (
	"context"
	"path/filepath"
	"strings"
	"testing"

	skaldclient "blindpost/shared/client/skald"
)

// household is a relay, and the folder for the state of an agent and its clients.
type household struct {
	t     *testing.T
	relay *demoRelay
	ca    string
	dir   string
}

func newHousehold(t *testing.T) *household {
	relay, ca := testRelay(t)
	return &household{t: t, relay: relay, ca: ca, dir: t.TempDir()}
}

func (h *household) flags(state string) []string {
	return []string{"--ca", h.ca, "--state", filepath.Join(h.dir, state)}
}

func (h *household) agent(more ...string) *process {
	h.t.Helper()
	return start(h.t, "agent", runAgent, append(append(h.flags("agent.json"), "--relay", h.relay.url(skaldclient.DefaultPath)), more...)...)
}

func (h *household) client(name string, more ...string) *process {
	h.t.Helper()
	return start(h.t, name, runClient, append(append(h.flags(name+".json"), "--name", name), more...)...)
}

// pair brings a client in, through questions and answers.
func (h *household) pair(agent, client *process) {
	h.t.Helper()
	code := agent.expect(`{"v":1,`)
	client.expect("paste the line")
	client.enter(code)
	client.expect("Paired.")
	agent.expect("wants in")
	agent.enter("y")
	agent.expect("is in.")
	client.expect("Connected.")
	client.expect("The agent is online.")
}

func TestChatInBothDirections(t *testing.T) {
	t.Parallel()
	h := newHousehold(t)
	agent := h.agent()
	agent.expect("namespace  ")
	agent.expect("Connected.")
	phone := h.client("phone")
	h.pair(agent, phone)
	agent.expect(`is called "phone"`)

	agent.enter("the kettle is on")
	phone.expect("agent: the kettle is on")
	phone.enter("coming")
	agent.expect("client 1 (phone): coming")
	phone.enter("/live on the stairs")
	agent.expect("client 1 (phone) (live): on the stairs")
	phone.enter("//bin/sh")
	agent.expect("client 1 (phone): /bin/sh")
	phone.enter("/who")
	if line := phone.expect("Online: "); !strings.Contains(line, "agent") || !strings.Contains(line, "you") {
		t.Errorf("the phone lists %q", line)
	}

	t.Log("The phone sleeps; what is sent meanwhile waits for it.")
	phone.hangUp()
	phone.ends(0)
	agent.expect("Client 1 (phone) is away.")
	agent.enter("/live are you there")
	agent.expect("Not delivered: client 1 (phone) is not online.")
	agent.enter("first")
	agent.expect("the relay keeps this")
	agent.enter("second")
	agent.expect("the relay keeps this")
	phone = h.client("phone")
	phone.expect("agent: first")
	phone.expect("agent: second")
	agent.expect("Client 1 (phone) is online.")

	t.Log("The agent sleeps; the same holds for it.")
	agent.enter("/quit")
	agent.expect("Bye.")
	agent.ends(0)
	phone.expect("Agent is away.")
	phone.enter("good night")
	phone.expect("the relay keeps this")
	agent = h.agent()
	agent.expect("paired     with 1 client")
	agent.expect("1 of 1 client online.")
	agent.expect(": good night")
	agent.hasPrinted(`Client 1 is called "phone".`)

	t.Log("The agent revokes the phone.")
	agent.enter("/revoke 1")
	agent.expect("Client 1 (phone) is out")
	phone.expect("The agent has taken back its permission")
	phone.ends(1)
	agent.enter("anybody?")
	agent.expect("No client is paired, so this is not sent.")
	agent.enter("/clients")
	agent.expect("revoked")

	t.Log("It can pair again.")
	agent.enter("/pair")
	phone = h.client("phone", "--pair", agent.expect(`{"v":1,`))
	phone.expect("Paired.")
	agent.expect("wants in")
	agent.enter("/allow 1")
	agent.expect("is in.")
	phone.expect("Connected.")
	agent.enter("welcome back")
	phone.expect("agent: welcome back")
}

func TestChatWithTwoClients(t *testing.T) {
	t.Parallel()
	h := newHousehold(t)
	agent := h.agent("--yes")
	code := agent.expect(`{"v":1,`)
	one := h.client("one", "--pair", code)
	agent.expect("is in.")
	one.expect("Connected.")

	t.Log("A code is good for one client.")
	late := h.client("late", "--pair", code)
	late.expect("Not paired: the pairing code was used before")
	late.ends(1)

	agent.enter("/pair")
	two := h.client("two")
	two.expect("paste the line")
	two.enter("no code at all")
	two.expect("Not paired: ")
	t.Log("A terminal may have broken the line when it was copied.")
	fresh := agent.expect(`{"v":1,`)
	two.enter(fresh[:100])
	two.enter(fresh[100:200])
	two.enter(fresh[200:])
	two.expect("Paired.")
	agent.expect("is in.")
	two.expect("Connected.")

	agent.expect(`is called "two"`)
	agent.enter("to both")
	one.expect("agent: to both")
	two.expect("agent: to both")
	agent.enter("/to 2 only two")
	two.expect("agent: only two")
	agent.enter("/to 1")
	agent.expect("goes to client 1 (one) only")
	agent.enter("only one")
	one.expect("agent: only one")
	agent.enter("/to all")
	agent.enter("both again")
	one.expect("agent: both again")
	two.expect("agent: both again")
	if strings.Contains(two.out.all(), "only one") || strings.Contains(one.out.all(), "only two") {
		t.Error("a message reached a client that it was not for")
	}

	t.Log("Commands that make no sense say so.")
	for command, answer := range map[string]string{
		"/allow 1":    "Client 1 (one) is in already",
		"/deny 1":     "does not wait for an answer",
		"/to 7 hello": "Which client?",
		"/revoke me":  "Which client?",
		"/live":       "/live TEXT",
		"/nonsense":   "There is no command /nonsense",
	} {
		agent.enter(command)
		agent.expect(answer)
	}
}

func TestAgentTurnsAClientAway(t *testing.T) {
	t.Parallel()
	h := newHousehold(t)
	agent := h.agent()
	phone := h.client("phone", "--pair", agent.expect(`{"v":1,`))
	phone.expect("The agent has to let this client in.")
	agent.expect("wants in")
	agent.enter("n")
	agent.expect("Client 1 is turned away.")
	agent.enter("/clients")
	agent.expect("turned away")
	phone.stop()
	phone.ends(0)
}

func TestChatSurvivesARestartOfTheRelay(t *testing.T) {
	t.Parallel()
	h := newHousehold(t)
	agent := h.agent()
	phone := h.client("phone")
	h.pair(agent, phone)
	agent.expect("is called")
	h.relay.restart(t)
	phone.expect("Connection lost: the relay is shutting down.")
	phone.enter("still there?")
	phone.expect("Connected again.")
	agent.expect("Connected again.")
	agent.expect("client 1 (phone): still there?")
}

func TestChatByPipe(t *testing.T) {
	t.Parallel()
	h := newHousehold(t)
	agent := h.agent("--yes", "--stay")
	code := agent.expect(`{"v":1,`)
	agent.hangUp()

	t.Log("All input is there before the client has even paired.")
	pipe := h.client("pipe")
	pipe.enter(code)
	pipe.enter("one")
	pipe.enter("two")
	pipe.hangUp()
	pipe.ends(0)
	agent.expect("client 1 (pipe): one")
	agent.expect("client 1 (pipe): two")

	agent.stop()
	agent.ends(0)
}

func TestChatThatCannotBegin(t *testing.T) {
	t.Parallel()
	h := newHousehold(t)
	agent := h.agent()
	agent.expect("Connected.")

	second := h.agent()
	second.expect("Another process is using this state file")
	second.ends(1)

	wrongRole := start(t, "client", runClient, h.flags("agent.json")...)
	wrongRole.ends(1)

	unpaired := h.client("unpaired")
	unpaired.hangUp()
	unpaired.expect("Not paired.")
	unpaired.ends(1)

	noFile := h.client("nofile", "--pair", "@"+filepath.Join(h.dir, "none"))
	noFile.expect("Not paired: ")
	noFile.ends(1)

	untrusted := start(t, "agent", runAgent, "--relay", h.relay.url(skaldclient.DefaultPath), "--state", filepath.Join(h.dir, "other.json"))
	untrusted.expect("certificate is not trusted")
	untrusted.stop()
	untrusted.ends(0)

	insecure := start(t, "agent", runAgent, "--insecure", "--relay", h.relay.url(skaldclient.DefaultPath), "--state", filepath.Join(h.dir, "insecure.json"))
	insecure.expect("Careful, --insecure")
	insecure.expect("Connected.")
}

func TestChatSaysThatAMailboxIsFull(t *testing.T) {
	t.Parallel()
	h := newHousehold(t)
	limits := defaultDemo().limits
	limits.Relay.MailboxCap = 1
	h.relay.node.SetLimits(limits)
	agent := h.agent("--yes")
	phone := h.client("phone", "--pair", agent.expect(`{"v":1,`))
	agent.expect("is called")
	phone.enter("/quit")
	agent.expect("is away.")
	agent.enter("one is kept")
	agent.expect("the relay keeps this")
	agent.enter("two is not")
	agent.expect("The recipient's mailbox at the relay is full")
}

func TestChatFlags(t *testing.T) {
	commands := map[string]func(context.Context, env, []string) int{"agent": runAgent, "client": runClient}
	for name, run := range commands {
		t.Run(name, func(t *testing.T) {
			help := start(t, name, run, "--help")
			help.ends(0)
			for _, flag := range []string{"--relay", "--insecure", "--ca", "--state", "--stay"} {
				help.expect(flag)
			}
			for _, args := range [][]string{{"--nonsense"}, {"extra"}, {"--stay=perhaps"}} {
				wrong := start(t, name, run, args...)
				wrong.ends(2)
				wrong.expect("--help")
			}
			badURL := start(t, name, run, "--relay", "https://example.org", "--state", filepath.Join(t.TempDir(), "s.json"))
			badURL.expect("not wss or ws")
			badURL.ends(1)
			plain := start(t, name, run, "--relay", "ws://localhost:8443/v1/ws", "--state", filepath.Join(t.TempDir(), "s.json"))
			plain.expect("over TLS only")
			plain.ends(1)
		})
	}
}
