package skald

import (
	"bytes"
	"crypto/rand"
	"errors"
	"testing"

	"pgregory.net/rapid"
)

func mustIdentity(t interface{ Fatal(...any) }, seed byte) *Identity {
	id, err := NewIdentity(Seed{seed})
	if err != nil {
		t.Fatal(err)
	}
	return id
}

// mustSessions returns both ends of one pair.
func mustSessions(t interface{ Fatal(...any) }, agent, client *Identity) (atAgent, atClient *Session) {
	atAgent, err := NewSession(agent, RoleAgent, client.PublicKey(), client.ExchangeKey())
	if err != nil {
		t.Fatal(err)
	}
	atClient, err = NewSession(client, RoleClient, agent.PublicKey(), agent.ExchangeKey())
	if err != nil {
		t.Fatal(err)
	}
	return atAgent, atClient
}

// drawPlaintext mixes what compresses and what does not.
func drawPlaintext(t *rapid.T) []byte {
	n := rapid.IntRange(0, 4000).Draw(t, "length")
	if rapid.Bool().Draw(t, "compressible") {
		return bytes.Repeat([]byte{rapid.Byte().Draw(t, "byte")}, n)
	}
	return rapid.SliceOfN(rapid.Byte(), n, n).Draw(t, "plaintext")
}

func TestSealOpens(t *testing.T) {
	atAgent, atClient := mustSessions(t, mustIdentity(t, 1), mustIdentity(t, 2))
	rapid.Check(t, func(t *rapid.T) {
		from, to := atAgent, atClient
		if rapid.Bool().Draw(t, "to agent") {
			from, to = atClient, atAgent
		}
		plaintext := drawPlaintext(t)
		counter := rapid.Uint64Min(1).Draw(t, "counter")
		s, err := from.Seal(counter, plaintext)
		if err != nil {
			t.Fatal(err)
		}
		gotCounter, got, err := to.Open(s.Nonce[:], s.Ciphertext)
		if err != nil || gotCounter != counter || !bytes.Equal(got, plaintext) {
			t.Fatalf("opened to counter %d, %d bytes: %v", gotCounter, len(got), err)
		}
		// The sender cannot have its own message played back to it.
		if _, _, err := from.Open(s.Nonce[:], s.Ciphertext); !errors.Is(err, ErrOpen) {
			t.Fatalf("sender opened its own message: %v", err)
		}
	})
}

func TestAnyFlippedBitFailsToOpen(t *testing.T) {
	atAgent, atClient := mustSessions(t, mustIdentity(t, 1), mustIdentity(t, 2))
	rapid.Check(t, func(t *rapid.T) {
		plaintext := drawPlaintext(t)
		s, err := atAgent.Seal(rapid.Uint64Min(1).Draw(t, "counter"), plaintext)
		if err != nil {
			t.Fatal(err)
		}
		all := append(bytes.Clone(s.Nonce[:]), s.Ciphertext...)
		bit := rapid.IntRange(0, 8*len(all)-1).Draw(t, "bit")
		all[bit/8] ^= 1 << (bit % 8)
		if _, _, err := atClient.Open(all[:NonceSize], all[NonceSize:]); !errors.Is(err, ErrOpen) {
			t.Fatalf("opened with bit %d flipped: %v", bit, err)
		}
		cut := rapid.IntRange(0, len(s.Ciphertext)-1).Draw(t, "cut")
		if _, _, err := atClient.Open(s.Nonce[:], s.Ciphertext[:cut]); !errors.Is(err, ErrOpen) {
			t.Fatalf("opened when cut to %d bytes: %v", cut, err)
		}
	})
}

// A relay that delivers a message under another sender's name, to another
// recipient or in another namespace breaks the additional data, even where the
// key is the same.
func TestWrongAADFailsToOpen(t *testing.T) {
	agent, client := mustIdentity(t, 1), mustIdentity(t, 2)
	atAgent, atClient := mustSessions(t, agent, client)
	s, err := atAgent.Seal(1, []byte("hello"))
	if err != nil {
		t.Fatal(err)
	}
	for i := range atClient.receiveAAD {
		other := *atClient
		other.receiveAAD[i] ^= 1
		if _, _, err := other.Open(s.Nonce[:], s.Ciphertext); !errors.Is(err, ErrOpen) {
			t.Fatalf("opened with byte %d of the additional data changed: %v", i, err)
		}
	}
	// The same with names: the client's exchange key under another name.
	renamed, err := NewSession(agent, RoleAgent, mustIdentity(t, 3).PublicKey(), client.ExchangeKey())
	if err != nil {
		t.Fatal(err)
	}
	s, err = atClient.Seal(1, []byte("hello"))
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := renamed.Open(s.Nonce[:], s.Ciphertext); !errors.Is(err, ErrOpen) {
		t.Fatalf("opened under another sender's name: %v", err)
	}
}

func TestWrongDirectionFailsToOpen(t *testing.T) {
	agent, client := mustIdentity(t, 1), mustIdentity(t, 2)
	atAgent, atClient := mustSessions(t, agent, client)
	// A sender that uses the wrong prefix, all else being right.
	confused := *atAgent
	confused.send = ClientToAgent
	s, err := confused.Seal(1, []byte("hello"))
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := atClient.Open(s.Nonce[:], s.Ciphertext); !errors.Is(err, ErrOpen) {
		t.Fatalf("opened with the other direction's nonce: %v", err)
	}
}

func TestNonceIsStrict(t *testing.T) {
	for _, c := range []struct {
		name  string
		nonce []byte
		ok    bool
	}{
		{"agent to client", []byte{0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 1}, true},
		{"client to agent", []byte{0, 0, 0, 2, 255, 255, 255, 255, 255, 255, 255, 255}, true},
		{"counter 0", []byte{0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0}, false},
		{"direction 0", []byte{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1}, false},
		{"direction 3", []byte{0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0, 1}, false},
		{"little endian", []byte{1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1}, false},
		{"11 bytes", make([]byte, 11), false},
		{"13 bytes", make([]byte, 13), false},
		{"nothing", nil, false},
	} {
		d, counter, err := ParseNonce(c.nonce)
		if (err == nil) != c.ok {
			t.Errorf("%s: %v", c.name, err)
		}
		if c.ok {
			if back := Nonce(d, counter); !bytes.Equal(back[:], c.nonce) {
				t.Errorf("%s: came back as %x", c.name, back)
			}
		}
	}
	atAgent, _ := mustSessions(t, mustIdentity(t, 1), mustIdentity(t, 2))
	if _, err := atAgent.Seal(0, nil); err == nil {
		t.Error("sealed with counter 0")
	}
}

// With a small-order key the shared secret would be zero for everyone.
func TestSmallOrderExchangeKeysAreRefused(t *testing.T) {
	id := mustIdentity(t, 1)
	for _, k := range []ExchangeKey{
		{},
		{1},
		{0xec, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
			0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f},
	} {
		if _, err := NewSession(id, RoleAgent, PublicKey{9}, k); err == nil {
			t.Errorf("agreed with %v", k)
		}
	}
}

func TestChallengeNonceHasOneLength(t *testing.T) {
	id := mustIdentity(t, 1)
	for _, n := range []int{0, 31, 33, 64} {
		if _, err := id.SignChallenge(make([]byte, n)); !errors.Is(err, ErrProtocol) {
			t.Errorf("signed a nonce of %d bytes: %v", n, err)
		}
	}
}

func BenchmarkSeal(b *testing.B) {
	atAgent, _ := mustSessions(b, mustIdentity(b, 1), mustIdentity(b, 2))
	for name, plaintext := range map[string][]byte{
		"500B":      bytes.Repeat([]byte("x"), 500),
		"10KB text": bytes.Repeat([]byte(`{"some":"json"}`), 700),
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for i := range b.N {
				if _, err := atAgent.Seal(uint64(i)+1, plaintext); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func TestGeneratedIdentitiesDiffer(t *testing.T) {
	a, err := GenerateIdentity(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	b, err := GenerateIdentity(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	if a.PublicKey() == b.PublicKey() || a.ExchangeKey() == b.ExchangeKey() {
		t.Error("two identities share a key")
	}
	if _, err := GenerateIdentity(bytes.NewReader(make([]byte, 31))); err == nil {
		t.Error("made an identity of 31 bytes")
	}
}
