package skald

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/protobuf/proto"

	"blindpost/shared/dialect/skald/skaldpb"
)

// deliver has the relay send a message to an agent, as if from a client.
func (r *fakeRelay) deliver(to *Agent, from PublicKey, nonce, ciphertext []byte) {
	r.peer(to.Identity().PublicKey()).out <- &skaldpb.RelayFrame{Frame: &skaldpb.RelayFrame_Message{
		Message: &skaldpb.Message{Peer: from[:], Nonce: nonce, Ciphertext: ciphertext}}}
}

func TestReplaysAndForgeriesAreDropped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newPipeRelay(t)
		agent, client := r.pair(t, nil, nil)
		from := client.Identity().PublicKey()
		for i := range 3 {
			if err := client.Send(t.Context(), note(t, fmt.Sprint(i)), i == 1); err != nil {
				t.Fatal(err)
			}
			next[Message](t, agent.recorder)
		}
		sent := r.messages()
		session, err := NewSession(client.Identity(), RoleClient, agent.Identity().PublicKey(), agent.Identity().ExchangeKey())
		if err != nil {
			t.Fatal(err)
		}
		seal := func(counter uint64, framed string) *skaldpb.Message {
			s, err := session.sealFramed(counter, []byte(framed))
			if err != nil {
				t.Fatal(err)
			}
			return &skaldpb.Message{Nonce: s.Nonce[:], Ciphertext: s.Ciphertext}
		}
		flipped := proto.CloneOf(sent[2])
		flipped.Ciphertext[5] ^= 1
		renumbered := proto.CloneOf(sent[2])
		renumbered.Nonce[11] = 99
		for _, c := range []struct {
			name string
			m    *skaldpb.Message
			want error
		}{
			{"last one again", sent[2], ErrReplay},
			{"first one again", sent[0], ErrReplay},
			{"flipped bit", flipped, ErrOpen},
			{"another counter", renumbered, ErrOpen},
			{"no nonce", &skaldpb.Message{Ciphertext: sent[2].Ciphertext}, ErrOpen},
			{"nothing", &skaldpb.Message{}, ErrOpen},
			{"not framed", seal(4, "{}"), ErrFraming},
			{"its counter counts", seal(4, "\x01\x00{}"), ErrReplay},
			{"no payload", seal(5, "\x01\x00{}"), ErrPayload},
			{"its counter counts, too", seal(5, "\x01\x00{}"), ErrReplay},
		} {
			r.deliver(agent.Agent, from, c.m.Nonce, c.m.Ciphertext)
			if got := next[Dropped](t, agent.recorder); got.From != from || !errors.Is(got.Err, c.want) {
				t.Errorf("%s: %v, want %v", c.name, got.Err, c.want)
			}
		}
		// A forged counter has moved nothing: 6 is next.
		doc, err := Payload{Kind: KindHello, ID: someID}.Marshal()
		if err != nil {
			t.Fatal(err)
		}
		m := seal(6, "\x01\x00"+string(doc))
		r.deliver(agent.Agent, from, m.Nonce, m.Ciphertext)
		if got := next[Message](t, agent.recorder); got.Counter != 6 {
			t.Errorf("%+v", got)
		}
	})
}

// Both sides stop and start again from their files. No counter comes twice, and
// what the relay plays back is refused.
func TestCountersSurviveARestart(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		r := newPipeRelay(t)
		open := func(name string) *FileStore {
			f, err := OpenFileStore(filepath.Join(dir, name))
			if err != nil {
				t.Fatal(err)
			}
			return f
		}
		agentStore, clientStore := open("agent"), open("client")
		agent, client := r.pair(t, func(c *AgentConfig) { c.Store = agentStore },
			func(c *ClientConfig) { c.Store = clientStore })
		talk := func() {
			t.Helper()
			for range 3 {
				if err := client.Send(t.Context(), note(t, "x"), false); err != nil {
					t.Fatal(err)
				}
				next[Message](t, agent.recorder)
				if err := agent.Send(t.Context(), client.Identity().PublicKey(), note(t, "x"), false); err != nil {
					t.Fatal(err)
				}
				next[Message](t, client.recorder)
			}
		}
		for range 4 {
			talk()
			agent.stop()
			client.stop()
			agentStore.Close()
			clientStore.Close()

			agentStore, clientStore = open("agent"), open("client")
			agent = r.agent(t, func(c *AgentConfig) { c.Store = agentStore })
			next[Connected](t, agent.recorder)
			client = r.client(t, func(c *ClientConfig) { c.Store = clientStore })
			client.start(client.Run)
			next[Connected](t, client.recorder)
			for _, m := range r.messages() {
				if from, _ := ParsePublicKey(m.GetPeer()); from != agent.Identity().PublicKey() {
					continue
				}
				r.deliver(agent.Agent, client.Identity().PublicKey(), m.GetNonce(), m.GetCiphertext())
				if got := next[Dropped](t, agent.recorder); !errors.Is(got.Err, ErrReplay) {
					t.Errorf("%v", got.Err)
				}
			}
		}
		talk()
		nonces := map[string]bool{}
		for _, m := range r.messages() {
			n := hex.EncodeToString(m.GetNonce())
			if nonces[n] {
				t.Errorf("nonce %s comes twice", n)
			}
			nonces[n] = true
		}
		if len(nonces) != 2*3*5 {
			t.Errorf("%d nonces", len(nonces))
		}
		// Each start skips what was reserved and not used.
		last := uint64(4*reserveBlock + 3)
		if s, err := agentStore.Load(); err != nil || s.Peers[0].ReceiveSeen != last {
			t.Errorf("agent has seen %+v, want %d: %v", s.Peers, last, err)
		}
		agent.stop()
		client.stop()
		agentStore.Close()
		clientStore.Close()
	})
}

// A counter that cannot be stored must not be used: no message leaves, and one
// that arrives is left to the relay.
func TestStoreThatFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newPipeRelay(t)
		store := &failingStore{}
		agent, client := r.pair(t, nil, func(c *ClientConfig) { c.Store = store })
		store.err = errDisk
		if err := client.Send(t.Context(), note(t, "x"), false); !errors.Is(err, errDisk) {
			t.Errorf("sent: %v", err)
		}
		if n := len(r.messages()); n != 0 {
			t.Errorf("%d messages reached the relay", n)
		}
		client.rest()
		if err := agent.Send(t.Context(), client.Identity().PublicKey(), note(t, "x"), false); err != nil {
			t.Fatal(err)
		}
		if got := next[Disconnected](t, client.recorder); !errors.Is(got.Err, errDisk) || got.Final {
			t.Errorf("%+v", got)
		}
		// It comes again when the disk has room: here, as the same frame.
		store.err = nil
		next[Connected](t, client.recorder)
		r.peer(client.Identity().PublicKey()).out <- &skaldpb.RelayFrame{Frame: &skaldpb.RelayFrame_Message{
			Message: func() *skaldpb.Message {
				m := proto.CloneOf(r.messages()[0])
				key := agent.Identity().PublicKey()
				m.Peer = key[:]
				return m
			}()}}
		if got := next[Message](t, client.recorder); textOf(got.Payload) != "x" {
			t.Errorf("%+v", got)
		}
		if err := client.Send(t.Context(), note(t, "x"), false); err != nil {
			t.Error(err)
		}
	})
}

func TestSizes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newPipeRelay(t)
		agent, client := r.pair(t, nil, nil)
		noise := make([]byte, 600_000)
		if _, err := rand.Read(noise); err != nil {
			t.Fatal(err)
		}
		// Hexadecimal noise compresses to a little over a half.
		text := hex.EncodeToString(noise)
		for _, c := range []struct {
			text string
			live bool
			ok   bool
		}{
			{text[:100_000], false, true},
			{text[:130_000], false, false},
			{text[:130_000], true, true},
			{text[:900_000], true, true},
			{text[:1_100_000], true, false},
		} {
			err := client.Send(t.Context(), note(t, c.text), c.live)
			if (err == nil) != c.ok || !c.ok && !errors.Is(err, ErrTooLarge) {
				t.Errorf("%d bytes, live %v: %v", len(c.text), c.live, err)
			}
			if c.ok {
				if got := next[Message](t, agent.recorder); textOf(got.Payload) != c.text {
					t.Errorf("%d bytes, live %v: came as %d", len(c.text), c.live, len(textOf(got.Payload)))
				}
			}
		}
		for _, c := range []struct {
			size int
			live bool
			ok   bool
		}{
			{MaxStoredCiphertext, false, true},
			{MaxStoredCiphertext + 1, false, false},
			{MaxLiveCiphertext, true, true},
			{MaxLiveCiphertext + 1, true, false},
		} {
			err := client.SendSealed(t.Context(), agent.Identity().PublicKey(), Sealed{Ciphertext: noise[:c.size]}, c.live)
			if (err == nil) != c.ok || !c.ok && !errors.Is(err, ErrTooLarge) {
				t.Errorf("%d bytes of ciphertext, live %v: %v", c.size, c.live, err)
			}
		}
		// The relay's limits are for frames.
		b, err := EncodeMessage(PublicKey{1}, Sealed{Ciphertext: noise[:MaxStoredCiphertext]}, true)
		if err != nil || len(b) > 64<<10 {
			t.Errorf("stored frame of %d bytes: %v", len(b), err)
		}
		b, err = EncodeMessage(PublicKey{1}, Sealed{Ciphertext: noise[:MaxLiveCiphertext]}, true)
		if err != nil || len(b) > 512<<10 {
			t.Errorf("live frame of %d bytes: %v", len(b), err)
		}
	})
}

// Two clients have no keys with each other, but the relay carries what they
// seal by other means.
func TestSealedMessagesBetweenClients(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newPipeRelay(t)
		agent, one := r.pair(t, nil, nil)
		two := r.join(t, agent, func(c *ClientConfig) { c.Rand = &zeroJitter{n: 99} })
		s := Sealed{Nonce: [NonceSize]byte{1, 2, 3}, Ciphertext: []byte("sealed elsewhere")}
		if err := one.SendSealed(t.Context(), two.Identity().PublicKey(), s, true); err != nil {
			t.Fatal(err)
		}
		got := next[SealedMessage](t, two.recorder)
		if got.From != one.Identity().PublicKey() || string(got.Nonce) != string(s.Nonce[:]) ||
			string(got.Ciphertext) != string(s.Ciphertext) || !got.Live {
			t.Errorf("%+v", got)
		}
		if err := one.SendSealed(t.Context(), PublicKey{9}, s, false); err != nil {
			t.Fatal(err)
		}
		if got := next[Fault](t, one.recorder); !IsCode(got.Err, CodeNotFound) {
			t.Errorf("%+v", got)
		}
	})
}

// A relay that no longer reads: Send returns, with an error, after WriteTimeout.
func TestSendToAStuckRelay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newPipeRelay(t)
		stuck := make(chan struct{})
		r.misbehave(hooks{intercept: func(_ *fakePeer, f *skaldpb.RelayFrame) bool {
			if f.GetMessage() != nil {
				<-stuck
			}
			return false
		}})
		agent, client := r.pair(t, func(c *AgentConfig) { c.WriteTimeout = 10 * time.Second }, nil)
		defer close(stuck)
		key := client.Identity().PublicKey()
		if err := agent.Send(t.Context(), key, note(t, "x"), false); err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		err := agent.Send(t.Context(), key, note(t, "x"), false)
		if wantNotConnected(t, err); time.Since(began) != 10*time.Second {
			t.Errorf("returned after %v", time.Since(began))
		}
		if got := next[Disconnected](t, agent.recorder); got.Final {
			t.Errorf("%+v", got)
		}
		next[Connected](t, agent.recorder)
	})
}

func TestBadPayloadsAreNotSent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newPipeRelay(t)
		agent, client := r.pair(t, nil, nil)
		for name, p := range map[string]Payload{
			"no kind":    {},
			"bad id":     {Kind: KindHello, ID: "x"},
			"bad body":   {Kind: KindHello, Body: []byte("[")},
			"ts in body": {Kind: KindHello, Body: []byte(`{"ts":1}`)},
		} {
			if err := agent.Send(t.Context(), client.Identity().PublicKey(), p, false); !errors.Is(err, ErrPayload) {
				t.Errorf("%s: %v", name, err)
			}
		}
		if n := len(r.messages()); n != 0 {
			t.Errorf("%d messages were sent", n)
		}
	})
}
