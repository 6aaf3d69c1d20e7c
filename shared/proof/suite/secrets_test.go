package suite

import (
	"crypto/rand"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"strings"
	"testing"
)

func newToken() string {
	b := make([]byte, 32)
	_, _ = rand.Read(b)
	return base64.RawURLEncoding.EncodeToString(b)
}

// A leak is found in whatever form it turns up, and nothing else is.
func TestSecretsAreFound(t *testing.T) {
	s := NewSecrets()
	token := newToken()
	s.AddToken("a client token", token)
	raw, err := base64.RawURLEncoding.DecodeString(token)
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"as it is":       `{"msg":"let in","token":"` + token + `"}`,
		"its bytes":      "x" + string(raw) + "y",
		"hex":            "token=" + hex.EncodeToString(raw),
		"HEX":            strings.ToUpper(hex.EncodeToString(raw)),
		"hex of text":    hex.EncodeToString([]byte(token)),
		"%v":             fmt.Sprint(raw),
		"%q":             fmt.Sprintf("%q", raw),
		"base64 of text": base64.StdEncoding.EncodeToString([]byte("x" + token)),
		"base64, after":  base64.StdEncoding.EncodeToString(append([]byte("ab"), raw...)),
	} {
		if s.In([]byte(text)) != "a client token" {
			t.Errorf("%s: not found", name)
		}
	}
	for _, text := range []string{"", token[:20], newToken(), "nothing at all, in words that are long enough"} {
		if s.In([]byte(text)) != "" {
			t.Errorf("found in %q", text)
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
			t.Error("a secret of 11 bytes was taken")
		}
	}()
	NewSecrets().Add("a key", make([]byte, formStart-1))
}
