package skald

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"blindpost/shared/dialect/skald/skaldpb"
)

// A namespace that the relay has lost comes back with its agent.
func TestClientWaitsForItsNamespace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newPipeRelay(t)
		r.misbehave(hooks{refuse: func(a *skaldpb.Auth) string {
			if a.GetClient() != nil && len(r.dialTimes()) < 6 {
				return CodeNotFound
			}
			return ""
		}})
		r.pair(t, nil, nil)
	})
}

func TestPendingTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newPipeRelay(t)
		agent := r.agent(t, nil)
		next[Connected](t, agent.recorder)
		client := r.client(t, func(c *ClientConfig) { c.PendingTimeout = 10 * time.Minute })
		window, err := agent.StartPairing(t.Context(), 0)
		if err != nil {
			t.Fatal(err)
		}
		if err := client.Pair(t.Context(), window.QR); err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		client.start(client.Run)
		err = client.result()
		if waited := time.Since(began); !IsCode(err, CodeUnauthorized) || waited < 10*time.Minute || waited > 11*time.Minute+15*time.Second {
			t.Errorf("ended after %v with %v", waited, err)
		}
		// It was never authorised, so this is no revocation.
		if errors.Is(err, ErrRevoked) {
			t.Error(err)
		}
		// The next Run has as long again.
		client.recorder = newRecorder(t)
		began = time.Now()
		client.start(client.Run)
		if err := client.result(); !IsCode(err, CodeUnauthorized) || time.Since(began) < 10*time.Minute {
			t.Errorf("ended after %v with %v", time.Since(began), err)
		}
	})
}

func TestDeviceToken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newPipeRelay(t)
		agent, client := r.pair(t, nil, func(c *ClientConfig) { c.DeviceToken = "one" })
		key := client.Identity().PublicKey()
		token := func() string {
			r.mu.Lock()
			defer r.mu.Unlock()
			return r.namespaces[agent.Identity().Namespace()].tokens[string(key[:])]
		}
		if got := token(); got != "one" {
			t.Errorf("token %q", got)
		}
		client.SetDeviceToken("two")
		began := time.Now()
		client.Reconnect()
		next[Connected](t, client.recorder)
		if got := token(); got != "two" || time.Since(began) != 0 {
			t.Errorf("token %q after %v", got, time.Since(began))
		}
	})
}

// The relay's answer to a pairing may get lost, though the token is used up.
// The client tries whether it worked; a client that has an agent keeps it.
func TestPairingWithoutAnAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newPipeRelay(t)
		cut := false
		r.misbehave(hooks{refuse: func(a *skaldpb.Auth) string {
			if a.GetPairing() != nil && cut {
				return "cut"
			}
			return ""
		}})
		agent := r.agent(t, func(c *AgentConfig) { c.Policy = AutoApprove })
		next[Connected](t, agent.recorder)
		client := r.client(t, nil)
		window, err := agent.StartPairing(t.Context(), 0)
		if err != nil {
			t.Fatal(err)
		}
		// A relay that refuses has given an answer: nothing is remembered.
		cut = true
		if err := client.Pair(t.Context(), window.QR); !IsCode(err, "cut") {
			t.Fatal(err)
		}
		if _, ok := client.Agent(); ok {
			t.Error("remembers an agent after a refusal")
		}
		// A relay that drops the connection instead has given none.
		cut = false
		r.misbehave(hooks{drop: true})
		if err := client.Pair(t.Context(), window.QR); err == nil {
			t.Fatal("paired")
		}
		r.misbehave(hooks{})
		client.start(client.Run)
		next[Connected](t, client.recorder)
		client.stop()

		other := r.agent(t, func(c *AgentConfig) { c.Rand = &zeroJitter{n: 50} })
		next[Connected](t, other.recorder)
		window, err = other.StartPairing(t.Context(), 0)
		if err != nil {
			t.Fatal(err)
		}
		r.misbehave(hooks{drop: true})
		if err := client.Pair(t.Context(), window.QR); err == nil {
			t.Fatal("paired")
		}
		if p, _ := client.Agent(); p.Key != agent.Identity().PublicKey() {
			t.Error("gave its agent up for an uncertain one")
		}
	})
}

func TestPairChecksTheCode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newPipeRelay(t)
		_, client := r.pair(t, nil, nil)
		client.stop()
		before := len(r.dialTimes())
		agent, _ := client.Agent()
		own := client.Identity()
		for name, qr := range map[string]PairingQR{
			"nothing":              {},
			"another exchange key": {RelayURL: r.url, Namespace: NamespaceOf(agent.Key), AgentKey: agent.Key, AgentExchange: own.ExchangeKey()},
			"our own":              {RelayURL: r.url, Namespace: own.Namespace(), AgentKey: own.PublicKey(), AgentExchange: own.ExchangeKey()},
			"small-order key":      {RelayURL: r.url, Namespace: NamespaceOf(PublicKey{1}), AgentKey: PublicKey{1}},
			"another namespace":    {RelayURL: r.url, AgentKey: PublicKey{1}, AgentExchange: own.ExchangeKey()},
		} {
			if err := client.Pair(t.Context(), qr); err == nil {
				t.Errorf("%s: paired", name)
			}
		}
		if n := len(r.dialTimes()) - before; n != 0 {
			t.Errorf("dialled %d times", n)
		}
		if p, _ := client.Agent(); p != agent {
			t.Errorf("agent is now %+v", p)
		}
	})
}

func TestConfigIsChecked(t *testing.T) {
	good := Config{Store: &MemoryStore{}}
	agent := func(change func(*AgentConfig)) error {
		c := AgentConfig{Config: good, URL: "wss://relay.test"}
		change(&c)
		_, err := NewAgent(c)
		return err
	}
	client := func(change func(*ClientConfig)) error {
		c := ClientConfig{Config: Config{Store: &MemoryStore{}}}
		change(&c)
		_, err := NewClient(c)
		return err
	}
	if err := agent(func(*AgentConfig) {}); err != nil {
		t.Error(err)
	}
	if err := client(func(*ClientConfig) {}); err != nil {
		t.Error(err)
	}
	for name, err := range map[string]error{
		"no store":          agent(func(c *AgentConfig) { c.Store = nil }),
		"no URL":            agent(func(c *AgentConfig) { c.URL = "" }),
		"http":              agent(func(c *AgentConfig) { c.URL = "http://relay.test" }),
		"bad public URL":    agent(func(c *AgentConfig) { c.PublicURL = "relay.test" }),
		"negative queue":    agent(func(c *AgentConfig) { c.QueueSize = -1 }),
		"negative timeout":  agent(func(c *AgentConfig) { c.WriteTimeout = -1 }),
		"bad backoff":       agent(func(c *AgentConfig) { c.Backoff = Backoff{Min: 2, Max: 1} }),
		"two dialers":       agent(func(c *AgentConfig) { c.Dial.HTTPClient, c.Dial.DialContext = noClient, (&pipeListener{}).dial }),
		"state of a client": agent(func(c *AgentConfig) { c.Store = NewMemoryStore(State{Role: RoleClient}) }),
		"state of an agent": client(func(c *ClientConfig) { c.Store = NewMemoryStore(State{Role: RoleAgent}) }),
		"negative pending":  client(func(c *ClientConfig) { c.PendingTimeout = -1 }),
		"bad URL":           client(func(c *ClientConfig) { c.URL = "ftp://x" }),
		"store fails":       client(func(c *ClientConfig) { c.Store = &failingStore{err: errDisk} }),
	} {
		if err == nil {
			t.Errorf("%s: was taken", name)
		}
	}
}
