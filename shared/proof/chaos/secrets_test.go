package chaos

import (
	"bytes"
	"crypto/rand"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"
)

// A secret is found in whatever form it is told, and nothing else is.
func TestSecrets(t *testing.T) {
	s := newSecrets()
	p := newPress()
	key, other := make([]byte, 32), make([]byte, 32)
	_, _ = rand.Read(key)
	_, _ = rand.Read(other)
	s.add("payload", p.body[:])
	s.add("a nonce", p.nonce[:])
	s.add("a key", key)
	split := []byte("\x01\x02\x03\x04\x05\x06\x07\x08\x09\x0a\x0b\x0c\x0d\x0e\x0fé\x11\x12\x13\x14\x15\x16\x17\x18\x19\x1a\x1b\x1c\x1d\x1e\x1f")
	s.add("a split key", split) // one character lies across its middle
	s.add("a token", []byte("device-0123456789abcdef"))
	ciphertext, nonce := p.print(letter{from: 1, to: 2, n: 3}, 500)

	viaSlog := func(handler func(*bytes.Buffer) slog.Handler, v any) string {
		var b bytes.Buffer
		slog.New(handler(&b)).Info("told", "value", v)
		return b.String()
	}
	asJSON := func(b *bytes.Buffer) slog.Handler { return slog.NewJSONHandler(b, nil) }
	asText := func(b *bytes.Buffer) slog.Handler { return slog.NewTextHandler(b, nil) }
	marshalled, err := json.Marshal(map[string]any{"before": "x", "key": key})
	if err != nil {
		t.Fatal(err)
	}
	cases := []struct {
		name, text, want string
	}{
		{"hex", "key=" + hex.EncodeToString(key), "a key"},
		{"hex, capitals", fmt.Sprintf("%X", key), "a key"},
		{"half of it", hex.EncodeToString(key[:16]), "a key"},
		{"eight digits", hex.EncodeToString(key[:4]), ""},
		{"base64", base64.StdEncoding.EncodeToString(key), "a key"},
		{"base64 in a URL", base64.RawURLEncoding.EncodeToString(key), "a key"},
		{"base64 in something longer", base64.StdEncoding.EncodeToString(append([]byte("1"), key...)), "a key"},
		{"and longer", base64.StdEncoding.EncodeToString(append([]byte("12"), key...)), "a key"},
		{"JSON", string(marshalled), "a key"},
		{"raw", "x" + string(key) + "y", "a key"},
		{"quoted", fmt.Sprintf("%q", key), "a key"},
		{"quoted, a character in the middle", fmt.Sprintf("%q", split), "a split key"},
		{"numbers", fmt.Sprintf("%v", key), "a key"},
		{"Go", fmt.Sprintf("%#v", key), "a key"},
		{"JSON log", viaSlog(asJSON, key), "a key"},
		{"text log", viaSlog(asText, key), "a key"},
		{"any part of a ciphertext", hex.EncodeToString(ciphertext[100:200]), "payload"},
		{"any part in base64", base64.StdEncoding.EncodeToString(ciphertext[101:200]), "payload"},
		{"a nonce", hex.EncodeToString(nonce), "a nonce"},
		{"a device token", "token is device-0123456789abcdef", "a token"},
		{"another key", hex.EncodeToString(other), ""},
		{"nothing", "", ""},
		{"short", "abc", ""},
	}
	for _, c := range cases {
		if got := s.in([]byte(c.text)); got != c.want {
			t.Errorf("%s: found %q, want %q", c.name, got, c.want)
		}
	}
	text := strings.Repeat("nothing\n", 3) + hex.EncodeToString(key) + "\nlast device-0123456789abcdef"
	size, found, err := s.search(strings.NewReader(text))
	want := []finding{{4, "a key"}, {5, "a token"}}
	if err != nil || size != int64(len(text)) || len(found) != 2 || found[0] != want[0] || found[1] != want[1] {
		t.Errorf("searched %d of %d bytes: %v, %v", size, len(text), found, err)
	}
}
