package suite

import (
	"bytes"
	"crypto/rand"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"log/slog"
	"testing"
)

func random() []byte {
	b := make([]byte, 32)
	_, _ = rand.Read(b)
	return b
}

// A leak is found in whatever form it turns up, and nothing else is.
func TestSecretsAreFound(t *testing.T) {
	s := NewSecrets()
	key, other, token := random(), random(), base64.RawURLEncoding.EncodeToString(random())
	s.Add("a key", key)
	s.AddToken("a client token", token)
	raw, err := base64.RawURLEncoding.DecodeString(token)
	if err != nil {
		t.Fatal(err)
	}
	split := []byte("\x01\x02\x03\x04\x05\x06\x07\x08\x09\x0a\x0b\x0c\x0d\x0e\x0fé\x11\x12\x13\x14\x15\x16\x17\x18\x19\x1a\x1b\x1c\x1d\x1e\x1f")
	s.Add("a split key", split) // one character lies across its middle
	s.Add("a token", []byte("device-0123456789abcdef"))

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
		{"a device token", "token is device-0123456789abcdef", "a token"},
		{"another key", hex.EncodeToString(other), ""},
		{"nothing", "", ""},
		{"short", "abc", ""},
		{"token", `{"msg":"let in","token":"` + token + `"}`, "a client token"},
		{"bytes of a token", "x" + string(raw) + "y", "a client token"},
		{"hex of a token's text", hex.EncodeToString([]byte(token)), "a client token"},
		{"base64 of a token's text", base64.StdEncoding.EncodeToString([]byte("x" + token)), "a client token"},
		{"start of a token", token[:15], ""},
		{"words", "nothing at all, in words that are long enough", ""},
	}
	for _, c := range cases {
		if got := s.In([]byte(c.text)); got != c.want {
			t.Errorf("%s: found %q, want %q", c.name, got, c.want)
		}
	}
	if s.Find([]byte(token), "a payload") != "" || s.Find([]byte(token), "a client") == "" {
		t.Error("kinds are mixed up")
	}
}

// verdict keeps what a check says.
type verdict struct {
	testing.TB
	errors []string
}

func (v *verdict) Helper()             {}
func (v *verdict) Logf(string, ...any) {}
func (v *verdict) Errorf(format string, args ...any) {
	v.errors = append(v.errors, fmt.Sprintf(format, args...))
}

// All that a log tells is named, once each and not in its own words; a secret may
// stand across lines.
func TestLogThatTells(t *testing.T) {
	s := NewSecrets()
	s.Add("a payload", []byte("two lines of\npayload"))
	s.Add("a key", []byte("0123456789abcdef"))
	s.Add("a token", []byte("which is never told"))
	v := &verdict{TB: t}
	s.WantSilentLog(v, []byte("x two lines of\npayload, key 0123456789abcdef\nand 0123456789abcdef"))
	if got := fmt.Sprint(v.errors); got != "[the relay's log tells a key the relay's log tells a payload]" {
		t.Error(got)
	}
	v.errors = nil
	s.WantSilentLog(v, []byte("nothing of the kind"))
	if len(v.errors) != 0 {
		t.Error(v.errors)
	}
}

// What could not be found is not taken.
func TestShortSecret(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("a secret of 7 bytes was taken")
		}
	}()
	NewSecrets().Add("a key", make([]byte, formStart-1))
}
