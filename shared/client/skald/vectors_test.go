package skald

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"os"
	"strings"
	"testing"
)

// loadVectors reads testdata/skald-crypto.txt: "NAME label = value", hex unless
// the label says b64.
func loadVectors(t *testing.T) map[string][]byte {
	t.Helper()
	f, err := os.Open("testdata/skald-crypto.txt")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	vectors := map[string][]byte{}
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		left, value, ok := strings.Cut(lines.Text(), "=")
		name := strings.Fields(left)
		if !ok || strings.HasPrefix(left, "#") || name[0] == "COUNTERS" {
			continue
		}
		value = strings.TrimSpace(value)
		decode := hex.DecodeString
		if strings.Contains(left, "b64") {
			// A base64 value may end in "=", which Cut leaves alone.
			decode = base64.StdEncoding.DecodeString
		}
		if vectors[name[0]], err = decode(value); err != nil {
			t.Fatalf("%s: %v", name[0], err)
		}
	}
	return vectors
}

func TestVectors(t *testing.T) {
	v := loadVectors(t)
	identity := func(name string) *Identity {
		id, err := NewIdentity(Seed(v[name]))
		if err != nil {
			t.Fatal(err)
		}
		return id
	}
	agent, client := identity("SEED_AGENT"), identity("SEED_CLIENT")
	agentSession, err := NewSession(agent, RoleAgent, client.PublicKey(), client.ExchangeKey())
	if err != nil {
		t.Fatal(err)
	}
	clientSession, err := NewSession(client, RoleClient, agent.PublicKey(), agent.ExchangeKey())
	if err != nil {
		t.Fatal(err)
	}
	secret, err := agent.sharedSecret(client.ExchangeKey())
	if err != nil {
		t.Fatal(err)
	}
	sessionKey, err := derive(secret, sessionSalt, sessionInfo)
	if err != nil {
		t.Fatal(err)
	}
	// The framed plaintexts of the vectors are not compressed.
	toClient, err := agentSession.Seal(1, v["PT_FRAMED_A2C"][2:])
	if err != nil {
		t.Fatal(err)
	}
	toAgent, err := clientSession.Seal(1, v["PT_FRAMED_C2A"][2:])
	if err != nil {
		t.Fatal(err)
	}
	signature, err := client.SignChallenge(v["CHALLENGE_NONCE"])
	if err != nil {
		t.Fatal(err)
	}
	key := func(k PublicKey) []byte { return k[:] }
	exchange := func(k ExchangeKey) []byte { return k[:] }
	ns := agent.Namespace()

	got := []struct {
		name  string
		value []byte
	}{
		{"V1", agent.exchange.Bytes()},
		{"V2", exchange(agent.ExchangeKey())},
		{"V3", agent.signing.Seed()},
		{"V4", key(agent.PublicKey())},
		{"V5", client.exchange.Bytes()},
		{"V6", exchange(client.ExchangeKey())},
		{"V7", client.signing.Seed()},
		{"V8", key(client.PublicKey())},
		{"V9", ns[:]},
		{"V10", secret},
		{"V11", sessionKey},
		{"V12", toClient.Nonce[:]},
		{"V13", agentSession.sendAAD[:]},
		{"V13", clientSession.receiveAAD[:]},
		{"V14", toClient.Ciphertext},
		{"V15", toAgent.Nonce[:]},
		{"V16", clientSession.sendAAD[:]},
		{"V16", agentSession.receiveAAD[:]},
		{"V17", toAgent.Ciphertext},
		{"V18", signature},
	}
	seen := map[string]bool{}
	for _, g := range got {
		seen[g.name] = true
		if want := v[g.name]; len(want) == 0 || !bytes.Equal(g.value, want) {
			t.Errorf("%s = %x, want %x", g.name, g.value, want)
		}
	}
	if len(seen) != 18 {
		t.Errorf("%d vectors were looked at, want 18", len(seen))
	}

	// What the vectors seal opens, and its payload comes out of Marshal as it
	// went in.
	for _, c := range []struct {
		by     *Session
		sealed Sealed
		framed string
		kind   Kind
	}{
		{clientSession, Sealed{Nonce: [NonceSize]byte(v["V12"]), Ciphertext: v["V14"]}, "PT_FRAMED_A2C", KindInboxUpdate},
		{agentSession, Sealed{Nonce: [NonceSize]byte(v["V15"]), Ciphertext: v["V17"]}, "PT_FRAMED_C2A", KindApprovalResponse},
	} {
		counter, plaintext, err := c.by.Open(c.sealed.Nonce[:], c.sealed.Ciphertext)
		if err != nil || counter != 1 {
			t.Errorf("%s: opened with counter %d: %v", c.framed, counter, err)
			continue
		}
		if framed, err := Frame(plaintext); err != nil || !bytes.Equal(framed, v[c.framed]) {
			t.Errorf("%s: framed to %x: %v", c.framed, framed, err)
		}
		p, err := ParsePayload(plaintext)
		if err != nil || p.Kind != c.kind {
			t.Errorf("%s: parsed to %v: %v", c.framed, p, err)
			continue
		}
		if doc, err := p.Marshal(); err != nil || !bytes.Equal(doc, plaintext) {
			t.Errorf("%s: marshalled to %s: %v", c.framed, doc, err)
		}
	}
}
