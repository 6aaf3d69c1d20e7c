package skald

import (
	"encoding/hex"
	"fmt"
	"log/slog"
	"strings"
	"testing"
)

func someQR(t testing.TB) PairingQR {
	id := mustIdentity(t, 1)
	return PairingQR{
		RelayURL:      "wss://relay.test/v1/ws?a=1&b=2",
		Namespace:     id.Namespace(),
		AgentKey:      id.PublicKey(),
		AgentExchange: id.ExchangeKey(),
		Token:         PairingToken{0xab, 0xcd},
	}
}

func TestPairingQR(t *testing.T) {
	q := someQR(t)
	doc, err := q.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	want := `{"v":1,"relay_url":"wss://relay.test/v1/ws?a=1&b=2","namespace_id":"` + q.Namespace.Hex() +
		`","agent_ed25519_pub":"` + q.AgentKey.Hex() + `","agent_x25519_pub":"` + q.AgentExchange.Hex() +
		`","pairing_token":"abcd` + strings.Repeat("0", 60) + `"}`
	if string(doc) != want {
		t.Errorf("got  %s\nwant %s", doc, want)
	}
	if back, err := ParsePairingQR(doc); err != nil || back != q {
		t.Errorf("came back as %v: %v", back, err)
	}
}

func TestParsePairingQR(t *testing.T) {
	q := someQR(t)
	good, err := q.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	other := mustIdentity(t, 2)
	for _, c := range []struct {
		name, old, new string
		ok             bool
	}{
		{"as it is", "", "", true},
		{"unknown member", `{"v":1`, `{"hint":"x","v":1`, true},
		{"upper case", q.AgentKey.Hex(), strings.ToUpper(q.AgentKey.Hex()), true},
		{"plain ws", "wss://", "ws://", true},
		{"version 2", `"v":1`, `"v":2`, false},
		{"version missing", `"v":1,`, ``, false},
		{"member twice", `{"v":1`, `{"v":1,"v":1`, false},
		{"token missing", `,"pairing_token":"abcd` + strings.Repeat("0", 60) + `"`, ``, false},
		{"token too short", `"abcd00`, `"abcd`, false},
		{"token is no hex", `"abcd`, `"xbcd`, false},
		{"key is a number", `"` + q.AgentKey.Hex() + `"`, `5`, false},
		{"another agent's namespace", q.Namespace.Hex(), other.Namespace().Hex(), false},
		{"another agent's key", q.AgentKey.Hex(), other.PublicKey().Hex(), false},
		{"http", "wss://", "https://", false},
		{"no host", "wss://relay.test", "wss://", false},
		{"password in URL", "wss://", "wss://user:secret@", false},
		{"fragment in URL", "b=2", "b=2#x", false},
		{"URL is null", `"wss://relay.test/v1/ws?a=1&b=2"`, `null`, false},
		{"more behind it", `}`, `}}`, false},
		{"an array", `{`, `[{`, false},
	} {
		doc := strings.Replace(string(good), c.old, c.new, 1)
		_, err := ParsePairingQR([]byte(doc))
		if (err == nil) != c.ok {
			t.Errorf("%s: %v", c.name, err)
		}
		if err != nil && (strings.Contains(err.Error(), "abcd00") || strings.Contains(err.Error(), "secret")) {
			t.Errorf("%s: error shows a secret: %v", c.name, err)
		}
	}
	if _, err := ParsePairingQR(make([]byte, 5000)); err == nil {
		t.Error("read 5000 bytes")
	}
	if _, err := ParsePairingQR(nil); err == nil {
		t.Error("read nothing")
	}
}

func FuzzParsePairingQR(f *testing.F) {
	good, err := someQR(f).Marshal()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(good)
	f.Add([]byte(`{"v":1}`))
	f.Fuzz(func(t *testing.T, doc []byte) {
		q, err := ParsePairingQR(doc)
		if err != nil {
			return
		}
		out, err := q.Marshal()
		if err != nil {
			t.Fatal(err)
		}
		if back, err := ParsePairingQR(out); err != nil || back != q {
			t.Fatalf("came back as %v: %v", back, err)
		}
	})
}

func TestSecretsHide(t *testing.T) {
	id := mustIdentity(t, 0xab)
	seed, token := id.Seed(), PairingToken{0xab}
	q := someQR(t)
	state := State{Role: RoleAgent, Seed: seed}
	var log strings.Builder
	text := slog.New(slog.NewTextHandler(&log, nil))
	doc := slog.New(slog.NewJSONHandler(&log, nil))
	message := Message{Payload: Payload{Kind: KindHello, ID: someID, Body: []byte(`{"text":"plaintext"}`)}}
	sealed := SealedMessage{Nonce: []byte("plaintext"), Ciphertext: []byte("plaintext")}
	for _, v := range []any{seed, token, id, q, state, &state, []Seed{seed}, struct{ S Seed }{seed},
		message, message.Payload, sealed, []Event{message, sealed}, Pairing{QR: q}} {
		for _, verb := range []string{"%v", "%+v", "%s", "%x", "%X", "%d", "%q"} {
			log.WriteString(fmt.Sprintf(verb, v))
		}
		text.Info("x", "v", v)
		doc.Info("x", "v", v)
	}
	got := strings.ToLower(log.String())
	for _, secret := range []string{"ab00", "[171 0", "abcd00", id.PublicKey().Hex(),
		"plaintext", hex.EncodeToString([]byte("plaintext")), fmt.Sprint([]byte("plaintext"))[1:20]} {
		if at := strings.Index(got, secret); at >= 0 {
			t.Errorf("%q is shown: …%s…", secret, got[max(0, at-100):min(len(got), at+100)])
		}
	}
	if !strings.Contains(got, "hidden") {
		t.Error("nothing is hidden")
	}
}

func TestKeysAsText(t *testing.T) {
	k := mustIdentity(t, 1).PublicKey()
	back, err := ParsePublicKeyHex(k.Hex())
	if err != nil || back != k {
		t.Errorf("%v: %v", back, err)
	}
	if len(k.String()) > 12 {
		t.Errorf("%q is long", k.String())
	}
	for _, bad := range []string{"", "ab", strings.Repeat("z", 64), strings.Repeat("a", 66)} {
		if _, err := ParsePublicKeyHex(bad); err == nil {
			t.Errorf("%q was taken", bad)
		}
	}
	if _, err := ParsePublicKey(make([]byte, 31)); err == nil {
		t.Error("31 bytes were taken")
	}
}
