package skald

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/protobuf/proto"

	"blindpost/shared/dialect/skald/skaldpb"
)

func TestPairAndTalk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newPipeRelay(t)
		agent := r.agent(t, func(c *AgentConfig) { c.Policy = AutoApprove })
		if got := next[Connected](t, agent.recorder); got.Namespace != agent.Identity().Namespace() {
			t.Errorf("connected to namespace %v", got.Namespace)
		}
		client := r.client(t, func(c *ClientConfig) { c.Platform, c.DeviceToken = PlatformIOS, "push-token" })
		if err := client.Run(t.Context()); !errors.Is(err, ErrNotPaired) {
			t.Errorf("ran before pairing: %v", err)
		}

		window, err := agent.StartPairing(t.Context(), 2*time.Minute)
		if err != nil {
			t.Fatal(err)
		}
		if got := time.Until(window.Expires); got != 2*time.Minute {
			t.Errorf("window is open for %v", got)
		}
		doc, err := window.QR.Marshal()
		if err != nil {
			t.Fatal(err)
		}
		scanned, err := ParsePairingQR(doc)
		if err != nil {
			t.Fatal(err)
		}
		if scanned.RelayURL != "ws://relay.test/v1/ws" {
			t.Errorf("code leads to %s", scanned.RelayURL)
		}
		if err := client.Pair(t.Context(), scanned); err != nil {
			t.Fatal(err)
		}
		request := next[PairingRequested](t, agent.recorder)
		if p := request.Peer; !request.Expected || p.Key != client.Identity().PublicKey() ||
			p.Exchange != client.Identity().ExchangeKey() || p.Platform != PlatformIOS || p.Status != StatusPending {
			t.Errorf("pairing request %+v", request)
		}
		if got := next[Declared](t, agent.recorder); got != (Declared{Clients: 1, Known: 1}) {
			t.Errorf("%+v", got)
		}

		client.start(client.Run)
		next[Connected](t, client.recorder)
		if got := next[PresenceChange](t, agent.recorder); got != (PresenceChange{Peer: request.Peer.Key, Online: true}) {
			t.Errorf("%+v", got)
		}
		if p, ok := client.Agent(); !ok || p.Key != agent.Identity().PublicKey() {
			t.Errorf("client's agent is %v, %v", p.Key, ok)
		}

		for i, live := range []bool{false, true} {
			p, err := client.NewPayload(KindHello, map[string]string{"text": fmt.Sprint("to agent ", i)})
			if err != nil {
				t.Fatal(err)
			}
			if err := client.Send(t.Context(), p, live); err != nil {
				t.Fatal(err)
			}
			got := next[Message](t, agent.recorder)
			if got.From != client.Identity().PublicKey() || got.Payload.String() != p.String() ||
				textOf(got.Payload) != fmt.Sprint("to agent ", i) || got.Live != live || got.Counter != uint64(i+1) {
				t.Errorf("agent got %+v, want %v", got, p)
			}
			if err := agent.Send(t.Context(), got.From, note(t, fmt.Sprint("to client ", i)), live); err != nil {
				t.Fatal(err)
			}
			back := next[Message](t, client.recorder)
			if back.From != agent.Identity().PublicKey() || textOf(back.Payload) != fmt.Sprint("to client ", i) ||
				back.Live != live || !uuidV4.MatchString(back.Payload.ID) || !back.Payload.Fresh(time.Now()) {
				t.Errorf("client got %+v", back)
			}
		}
		online, err := client.Presence(t.Context())
		if err != nil || len(online) != 2 || !slices.Contains(online, agent.Identity().PublicKey()) {
			t.Errorf("online: %v, %v", online, err)
		}

		// The relay has seen ciphertext only.
		for _, f := range r.frames() {
			b, _ := proto.Marshal(f)
			if strings.Contains(string(b), "to agent") || strings.Contains(string(b), "to client") {
				t.Error("the relay has seen a plaintext")
			}
		}
		if err := client.stop(); err != nil {
			t.Errorf("client ended with %v", err)
		}
		if got := next[PresenceChange](t, agent.recorder); got.Online {
			t.Errorf("%+v", got)
		}
		if err := agent.stop(); err != nil {
			t.Errorf("agent ended with %v", err)
		}
		if got := next[Disconnected](t, agent.recorder); got != (Disconnected{WasConnected: true, Final: true}) {
			t.Errorf("%+v", got)
		}
	})
}

// Stored messages wait for who is away, live ones come back as PeerOffline.
func TestSendToAnAbsentPeer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newPipeRelay(t)
		agent, client := r.pair(t, nil, nil)
		key := client.Identity().PublicKey()
		client.stop()
		synctest.Wait()

		if err := agent.Send(t.Context(), key, note(t, "live"), true); err != nil {
			t.Fatal(err)
		}
		if got := next[PeerOffline](t, agent.recorder); got.Peer != key {
			t.Errorf("%+v", got)
		}
		for i := range 3 {
			if err := agent.Send(t.Context(), key, note(t, fmt.Sprint(i)), false); err != nil {
				t.Fatal(err)
			}
		}
		client.recorder = newRecorder(t)
		client.member.cfg.OnEvent = ToChannel(client.events)
		client.start(client.Run)
		for i := range 3 {
			if got := next[Message](t, client.recorder); textOf(got.Payload) != fmt.Sprint(i) || got.Live {
				t.Errorf("message %d is %q", i, textOf(got.Payload))
			}
		}
	})
}

func TestAskingPolicy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newPipeRelay(t)
		agent := r.agent(t, nil) // no policy: ask
		next[Connected](t, agent.recorder)
		client := r.client(t, nil)
		window, err := agent.StartPairing(t.Context(), 0)
		if err != nil {
			t.Fatal(err)
		}
		if err := client.Pair(t.Context(), window.QR); err != nil {
			t.Fatal(err)
		}
		key := next[PairingRequested](t, agent.recorder).Peer.Key
		began := time.Now()
		client.start(client.Run)
		for range 3 {
			got := next[Disconnected](t, client.recorder)
			if !IsCode(got.Err, CodeUnauthorized) || got.Final || got.WasConnected {
				t.Errorf("%+v", got)
			}
		}
		if err := agent.Send(t.Context(), key, note(t, "x"), false); !errors.Is(err, ErrUnknownPeer) {
			t.Errorf("sent to a pending client: %v", err)
		}

		// A pending client is reported again after each reconnect.
		agent.Reconnect()
		if got := next[PairingRequested](t, agent.recorder); got.Peer.Key != key || !got.Expected {
			t.Errorf("%+v", got)
		}
		if err := agent.Approve(t.Context(), key); err != nil {
			t.Fatal(err)
		}
		next[Connected](t, client.recorder)
		// Refused after 0, 1 and 3 s, admitted after 7.
		if got := time.Since(began); got != 7*time.Second {
			t.Errorf("admitted after %v", got)
		}
		// The window was closed behind the client.
		if agent.ledger.view().Window != nil || r.namespace(agent.Identity()).token != nil {
			t.Error("the pairing window is still open")
		}
	})
}

func TestDenyingPolicy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newPipeRelay(t)
		asked := 0
		decision := Deny
		agent := r.agent(t, func(c *AgentConfig) {
			c.Policy = func(context.Context, PairingRequest) Decision {
				asked++
				return decision
			}
		})
		next[Connected](t, agent.recorder)
		client := r.client(t, func(c *ClientConfig) { c.PendingTimeout = time.Minute })
		pair := func() {
			t.Helper()
			window, err := agent.StartPairing(t.Context(), 0)
			if err != nil {
				t.Fatal(err)
			}
			if err := client.Pair(t.Context(), window.QR); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
		}
		pair()
		if got := agent.Peers(); asked != 1 || len(got) != 1 || got[0].Status != StatusDenied {
			t.Errorf("asked %d times, peers %+v", asked, got)
		}
		// The relay still has it pending, and says so at each connect. Nobody
		// is asked again.
		agent.Reconnect()
		next[Connected](t, agent.recorder)
		synctest.Wait()
		if asked != 1 {
			t.Errorf("asked %d times", asked)
		}
		client.start(client.Run)
		if err := client.result(); !IsCode(err, CodeUnauthorized) {
			t.Errorf("denied client ended with %v", err)
		}
		// A new window is a new question.
		decision = Allow
		pair()
		if got := agent.Peers(); asked != 2 || len(got) != 1 || got[0].Status != StatusAuthorized {
			t.Errorf("asked %d times, peers %+v", asked, got)
		}
	})
}

func TestRevoke(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newPipeRelay(t)
		agent, client := r.pair(t, nil, nil)
		other := r.join(t, agent, func(c *ClientConfig) { c.Rand = &zeroJitter{n: 99} })
		key := client.Identity().PublicKey()

		if err := agent.Revoke(t.Context(), key); err != nil {
			t.Fatal(err)
		}
		if got := r.authorizes(); got[len(got)-1] != 1 {
			t.Errorf("declared %v clients", got)
		}
		if err := client.result(); !errors.Is(err, ErrRevoked) {
			t.Errorf("revoked client ended with %v", err)
		}
		if err := agent.Send(t.Context(), key, note(t, "x"), false); !errors.Is(err, ErrUnknownPeer) {
			t.Errorf("sent to a revoked client: %v", err)
		}
		if err := agent.Send(t.Context(), other.Identity().PublicKey(), note(t, "still here"), false); err != nil {
			t.Fatal(err)
		}
		if got := next[Message](t, other.recorder); textOf(got.Payload) != "still here" {
			t.Errorf("%+v", got)
		}

		// What the relay still delivers of the revoked one is dropped.
		session, err := NewSession(client.Identity(), RoleClient, agent.Identity().PublicKey(), agent.Identity().ExchangeKey())
		if err != nil {
			t.Fatal(err)
		}
		sealed, err := session.Seal(100, []byte("{}"))
		if err != nil {
			t.Fatal(err)
		}
		r.peer(agent.Identity().PublicKey()).out <- MessageFrame(key, sealed, false)
		if got := next[Dropped](t, agent.recorder); got.From != key || !errors.Is(got.Err, ErrUnknownPeer) {
			t.Errorf("%+v", got)
		}
		if err := agent.Revoke(t.Context(), PublicKey{1}); !errors.Is(err, ErrUnknownPeer) {
			t.Errorf("revoked a stranger: %v", err)
		}
	})
}

// A decision that is taken without a connection reaches the relay with the next
// one.
func TestRevokeWhileAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newPipeRelay(t)
		store := &MemoryStore{}
		agent, client := r.pair(t, func(c *AgentConfig) { c.Store = store }, nil)
		agent.stop()
		wantNotConnected(t, agent.Revoke(t.Context(), client.Identity().PublicKey()))

		r.agent(t, func(c *AgentConfig) { c.Store = store })
		if err := client.result(); !errors.Is(err, ErrRevoked) {
			t.Errorf("revoked client ended with %v", err)
		}
	})
}

// A client that comes back after it was revoked has the same key as before, so
// the counters must go on on both sides.
func TestPairingAnewKeepsCounters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newPipeRelay(t)
		agent, client := r.pair(t, nil, nil)
		key := client.Identity().PublicKey()
		for range 5 {
			if err := agent.Send(t.Context(), key, note(t, "before"), false); err != nil {
				t.Fatal(err)
			}
			if err := client.Send(t.Context(), note(t, "before"), false); err != nil {
				t.Fatal(err)
			}
			next[Message](t, client.recorder)
			next[Message](t, agent.recorder)
		}
		if err := agent.Revoke(t.Context(), key); err != nil {
			t.Fatal(err)
		}
		if err := client.result(); !errors.Is(err, ErrRevoked) {
			t.Fatal(err)
		}
		window, err := agent.StartPairing(t.Context(), 0)
		if err != nil {
			t.Fatal(err)
		}
		if err := client.Pair(t.Context(), window.QR); err != nil {
			t.Fatal(err)
		}
		client.recorder = newRecorder(t)
		client.member.cfg.OnEvent = ToChannel(client.events)
		client.start(client.Run)
		next[Connected](t, client.recorder)
		if err := agent.Send(t.Context(), key, note(t, "after"), false); err != nil {
			t.Fatal(err)
		}
		if got := next[Message](t, client.recorder); got.Counter != 6 || textOf(got.Payload) != "after" {
			t.Errorf("%+v", got)
		}
		if err := client.Send(t.Context(), note(t, "after"), false); err != nil {
			t.Fatal(err)
		}
		if got := next[Message](t, agent.recorder); got.Counter != 6 || textOf(got.Payload) != "after" {
			t.Errorf("%+v", got)
		}
	})
}

// What a relay reports by itself is not taken for what a window was opened for.
func TestUnexpectedClients(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newPipeRelay(t)
		agent, client := r.pair(t, nil, nil)
		agent.rest()
		report := func(id *Identity, exchange ExchangeKey) {
			key := id.PublicKey()
			r.peer(agent.Identity().PublicKey()).out <- &skaldpb.RelayFrame{Frame: &skaldpb.RelayFrame_ClientPaired{
				ClientPaired: &skaldpb.ClientPaired{ClientEd25519Pub: key[:], ClientX25519Pub: exchange[:]}}}
		}
		stranger := mustIdentity(t, 3)
		report(stranger, stranger.ExchangeKey())
		if got := next[PairingRequested](t, agent.recorder); got.Expected || got.Peer.Key != stranger.PublicKey() {
			t.Errorf("%+v", got)
		}
		synctest.Wait()
		if got := agent.Peers(); len(got) != 2 || got[1].Status != StatusPending {
			t.Errorf("peers %+v", got)
		}

		// A window admits one: the next is a stranger again.
		if _, err := agent.StartPairing(t.Context(), time.Minute); err != nil {
			t.Fatal(err)
		}
		first, second := mustIdentity(t, 4), mustIdentity(t, 5)
		report(first, first.ExchangeKey())
		report(second, second.ExchangeKey())
		if got := next[PairingRequested](t, agent.recorder); !got.Expected {
			t.Errorf("%+v", got)
		}
		if got := next[PairingRequested](t, agent.recorder); got.Expected {
			t.Errorf("%+v", got)
		}

		// So is who comes after the time is over, and after StopPairing.
		if _, err := agent.StartPairing(t.Context(), time.Minute); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		late := mustIdentity(t, 6)
		report(late, late.ExchangeKey())
		if got := next[PairingRequested](t, agent.recorder); got.Expected {
			t.Errorf("%+v", got)
		}
		if _, err := agent.StartPairing(t.Context(), time.Minute); err != nil {
			t.Fatal(err)
		}
		if err := agent.StopPairing(t.Context()); err != nil {
			t.Fatal(err)
		}
		stopped := mustIdentity(t, 7)
		report(stopped, stopped.ExchangeKey())
		if got := next[PairingRequested](t, agent.recorder); got.Expected {
			t.Errorf("%+v", got)
		}

		// Keys that are nonsense, and a known name with another exchange key.
		for _, c := range []struct {
			id       *Identity
			exchange ExchangeKey
			want     error
		}{
			{client.Identity(), stranger.ExchangeKey(), ErrKeyChanged},
			{mustIdentity(t, 8), ExchangeKey{}, ErrProtocol},
			{agent.Identity(), stranger.ExchangeKey(), ErrProtocol},
		} {
			report(c.id, c.exchange)
			if got := next[Fault](t, agent.recorder); !errors.Is(got.Err, c.want) {
				t.Errorf("got %v, want %v", got.Err, c.want)
			}
		}
		if got := agent.Peers(); got[0].Exchange != client.Identity().ExchangeKey() || got[0].Status != StatusAuthorized {
			t.Errorf("client became %+v", got[0])
		}
	})
}

// A policy that takes its time, because it asks a human, is not asked twice,
// though the relay reports the client again after a reconnect.
func TestSlowPolicyIsAskedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newPipeRelay(t)
		asked := 0
		answer := make(chan Decision)
		agent := r.agent(t, func(c *AgentConfig) {
			c.Policy = func(context.Context, PairingRequest) Decision {
				asked++
				return <-answer
			}
		})
		next[Connected](t, agent.recorder)
		client := r.client(t, nil)
		window, err := agent.StartPairing(t.Context(), 0)
		if err != nil {
			t.Fatal(err)
		}
		if err := client.Pair(t.Context(), window.QR); err != nil {
			t.Fatal(err)
		}
		next[PairingRequested](t, agent.recorder)
		agent.Reconnect()
		next[PairingRequested](t, agent.recorder)
		client.start(client.Run)
		time.Sleep(time.Minute)
		answer <- Allow
		next[Connected](t, client.recorder)
		if asked != 1 {
			t.Errorf("asked %d times", asked)
		}
	})
}

// A phone that scans again, though it is authorised, is pending at the relay
// until it is declared again.
func TestAuthorizedClientPairsAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newPipeRelay(t)
		asked := 0
		agent, client := r.pair(t, func(c *AgentConfig) {
			c.Policy = func(context.Context, PairingRequest) Decision {
				asked++
				return Allow
			}
		}, nil)
		client.stop()
		window, err := agent.StartPairing(t.Context(), 0)
		if err != nil {
			t.Fatal(err)
		}
		before := len(r.authorizes())
		if err := client.Pair(t.Context(), window.QR); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if got := r.authorizes(); len(got) != before+1 || got[before] != 1 {
			t.Errorf("declared %v", got[before:])
		}
		if asked != 1 || agent.ledger.view().Window != nil {
			t.Errorf("asked %d times, window %v", asked, agent.ledger.view().Window)
		}
	})
}

// A relay cannot fill the agent's memory with clients.
func TestClientsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newPipeRelay(t)
		agent := r.agent(t, nil)
		next[Declared](t, agent.recorder)
		exchange := mustIdentity(t, 3).ExchangeKey()
		p := r.peer(agent.Identity().PublicKey())
		for i := range maxPeers + 2 {
			key := PublicKey{byte(i), byte(i >> 8), 1}
			p.out <- &skaldpb.RelayFrame{Frame: &skaldpb.RelayFrame_ClientPaired{
				ClientPaired: &skaldpb.ClientPaired{ClientEd25519Pub: key[:], ClientX25519Pub: exchange[:]}}}
		}
		for range 2 {
			if got := next[Fault](t, agent.recorder); !errors.Is(got.Err, errTooManyPeers) {
				t.Errorf("%+v", got)
			}
		}
		if n := len(agent.Peers()); n != maxPeers {
			t.Errorf("remembers %d", n)
		}
	})
}

// A client may come through the window while the agent is away, whether the
// agent was stopped or killed.
func TestClientPairsWhileAgentIsAway(t *testing.T) {
	for _, killed := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			r := newPipeRelay(t)
			store := &MemoryStore{}
			agent := r.agent(t, func(c *AgentConfig) { c.Store, c.Policy = store, AutoApprove })
			next[Connected](t, agent.recorder)
			window, err := agent.StartPairing(t.Context(), 0)
			if err != nil {
				t.Fatal(err)
			}
			if killed {
				// What it saves from here on is lost.
				s, err := store.Load()
				if err != nil {
					t.Fatal(err)
				}
				store = NewMemoryStore(s)
			}
			agent.stop()
			client := r.client(t, nil)
			if err := client.Pair(t.Context(), window.QR); err != nil {
				t.Fatal(err)
			}
			client.start(client.Run)
			time.Sleep(time.Hour)
			r.agent(t, func(c *AgentConfig) { c.Store, c.Policy = store, AutoApprove })
			next[Connected](t, client.recorder)
		})
	}
}

// A client that is approved late closes its own window, not one that has been
// opened since; and a relay may grant less time than was asked for.
func TestLateApprovalLeavesTheNextWindowOpen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newPipeRelay(t)
		r.misbehave(hooks{intercept: func(p *fakePeer, f *skaldpb.RelayFrame) bool {
			if start := f.GetPairingStart(); start != nil {
				start.Ttl = min(start.Ttl, 60)
			}
			return false
		}})
		agent := r.agent(t, nil)
		next[Connected](t, agent.recorder)
		one := r.client(t, nil)
		two := r.client(t, func(c *ClientConfig) { c.Rand = &zeroJitter{n: 99} })
		for _, c := range []testClient{one, two} {
			window, err := agent.StartPairing(t.Context(), 0)
			if err != nil {
				t.Fatal(err)
			}
			if got := time.Until(window.Expires); got != time.Minute {
				t.Errorf("window is open for %v", got)
			}
			if c == two {
				if err := agent.Approve(t.Context(), one.Identity().PublicKey()); err != nil {
					t.Fatal(err)
				}
			}
			if err := c.Pair(t.Context(), window.QR); err != nil {
				t.Fatal(err)
			}
			if got := next[PairingRequested](t, agent.recorder); !got.Expected {
				t.Errorf("%+v", got)
			}
		}
	})
}

func TestPairingWindows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newPipeRelay(t)
		agent := r.agent(t, nil)
		next[Connected](t, agent.recorder)
		for _, bad := range []time.Duration{-1, MaxPairingTTL + 1} {
			if _, err := agent.StartPairing(t.Context(), bad); err == nil {
				t.Errorf("opened a window for %v", bad)
			}
		}
		first, err := agent.StartPairing(t.Context(), time.Minute)
		if err != nil {
			t.Fatal(err)
		}
		second, err := agent.StartPairing(t.Context(), time.Minute)
		if err != nil {
			t.Fatal(err)
		}
		if first.QR.Token == second.QR.Token {
			t.Error("two windows share a token")
		}
		client := r.client(t, nil)
		closed := func(qr PairingQR) {
			t.Helper()
			if err := client.Pair(t.Context(), qr); !IsCode(err, CodePairingClosed) {
				t.Errorf("paired: %v", err)
			}
			if _, ok := client.Agent(); ok {
				t.Error("remembers an agent")
			}
		}
		closed(first.QR)
		if err := agent.StopPairing(t.Context()); err != nil {
			t.Fatal(err)
		}
		closed(second.QR)
		agent.stop()
		_, err = agent.StartPairing(t.Context(), 0)
		wantNotConnected(t, err)
		wantNotConnected(t, agent.StopPairing(t.Context()))
	})
}

// Every method that waits for the relay works from OnEvent, even when the
// answer comes behind more messages than the queue holds.
func TestRequestsFromOnEvent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newPipeRelay(t)
		var agent *Agent
		var mu sync.Mutex
		var failed []error
		handled := 0
		a, client := r.pair(t, func(c *AgentConfig) {
			record := c.OnEvent
			c.QueueSize = 4
			c.OnEvent = func(ctx context.Context, e Event) {
				if m, ok := e.(Message); ok {
					_, err1 := agent.StartPairing(ctx, 0)
					err2 := agent.StopPairing(ctx)
					_, err3 := agent.Presence(ctx)
					err4 := agent.Approve(ctx, m.From)
					err5 := agent.Send(ctx, m.From, note(t, "echo"), false)
					mu.Lock()
					failed = append(failed, err1, err2, err3, err4, err5)
					handled++
					mu.Unlock()
				}
				record(ctx, e)
			}
		}, nil)
		agent = a.Agent
		for range 30 {
			if err := client.Send(t.Context(), note(t, "x"), false); err != nil {
				t.Fatal(err)
			}
		}
		for range 30 {
			next[Message](t, client.recorder)
		}
		synctest.Wait()
		mu.Lock()
		defer mu.Unlock()
		if err := errors.Join(failed...); err != nil || handled != 30 {
			t.Errorf("handled %d: %v", handled, err)
		}
	})
}

// Many senders at once: everything arrives, in the order of the counters.
func TestConcurrentSendersKeepOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newPipeRelay(t)
		agent, client := r.pair(t, nil, nil)
		var senders sync.WaitGroup
		x := note(t, "x")
		for i := range 10 {
			senders.Go(func() {
				for range 10 {
					if err := agent.Send(t.Context(), client.Identity().PublicKey(), x, i%2 == 0); err != nil {
						t.Error(err)
					}
				}
			})
		}
		senders.Wait()
		for want := uint64(1); want <= 100; want++ {
			if got := next[Message](t, client.recorder); got.Counter != want {
				t.Fatalf("counter %d, want %d", got.Counter, want)
			}
		}
		if dropped := ofType[Dropped](client.rest()); len(dropped) > 0 {
			t.Errorf("dropped %v", dropped)
		}
	})
}

// A message gets its counter when it is its turn to be written, and not before:
// otherwise one that is slower to seal or to write would be overtaken.
func TestCountingAndWritingAreOneStep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newPipeRelay(t)
		agent, client := r.pair(t, nil, nil)
		key, x := client.Identity().PublicKey(), note(t, "x")
		send := func() <-chan error {
			sent := make(chan error, 1)
			go func() { sent <- agent.Send(t.Context(), key, x, false) }()
			return sent
		}
		turn := make(chan struct{})
		go func() { _ = agent.inOrder(t.Context(), func() error { <-turn; return nil }) }()
		synctest.Wait()
		sent := send()
		synctest.Wait()
		if len(sent) > 0 || agent.ledger.used[key] != 0 {
			t.Fatalf("did not wait for its turn: counter %d", agent.ledger.used[key])
		}
		// Who gives up waiting has used no counter either.
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := agent.Send(ctx, key, note(t, "x"), false); !errors.Is(err, context.Canceled) {
			t.Errorf("sent: %v", err)
		}
		close(turn)
		if err := <-sent; err != nil {
			t.Fatal(err)
		}
		if got := next[Message](t, client.recorder); got.Counter != 1 {
			t.Errorf("counter %d", got.Counter)
		}
	})
}
