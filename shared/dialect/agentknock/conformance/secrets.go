package conformance

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"strings"
	"sync"
	"testing"
)

// secrets knows what must never be told: the tokens and payloads of the whole run,
// in the forms in which they may turn up in a text.
type secrets struct {
	mu sync.Mutex
	// forms holds each form under its first bytes, so that a text is searched for all
	// of them in one pass.
	forms map[[formStart]byte][]form
}

const formStart = 12

type form struct{ text, of string }

func newSecrets() *secrets { return &secrets{forms: make(map[[formStart]byte][]form)} }

// addToken makes a token known, as it is sent and as the bytes that it stands for.
func (s *secrets) addToken(of, token string) {
	s.add(of, []byte(token))
	if b, err := base64.RawURLEncoding.DecodeString(token); err == nil {
		s.add(of, b)
	}
}

// add makes a secret known. It must have at least 15 bytes.
func (s *secrets) add(of string, secret []byte) {
	texts := []string{
		string(secret),
		hex.EncodeToString(secret),
		strings.ToUpper(hex.EncodeToString(secret)),
		strings.Trim(fmt.Sprint(secret), "[]"), // as %v prints bytes
		strings.Trim(fmt.Sprintf("%q", secret), `"`),
	}
	// In base64 of something longer, it can begin at any of three places.
	for skip := range 3 {
		whole := (len(secret) - skip) / 3 * 3
		texts = append(texts,
			base64.StdEncoding.EncodeToString(secret[skip:skip+whole]),
			base64.URLEncoding.EncodeToString(secret[skip:skip+whole]))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, text := range texts {
		if len(text) >= formStart {
			start := [formStart]byte([]byte(text))
			s.forms[start] = append(s.forms[start], form{text, of})
		}
	}
}

// in returns whose secret is in a text, or "".
func (s *secrets) in(text []byte) string { return s.find(text, "") }

// find is in for secrets whose name begins so.
func (s *secrets) find(text []byte, kind string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range len(text) - formStart + 1 {
		for _, f := range s.forms[[formStart]byte(text[i:])] {
			if bytes.HasPrefix(text[i:], []byte(f.text)) && strings.HasPrefix(f.of, kind) {
				return f.of
			}
		}
	}
	return ""
}

// wantSilentLog fails the test if the relay's log tells a secret.
func (r *relay) wantSilentLog(t *testing.T) {
	t.Helper()
	log := r.Log()
	for line := range bytes.Lines(log) {
		if what := r.secrets.in(line); what != "" {
			t.Errorf("the relay's log tells %s", what)
		}
	}
	t.Logf("searched %d bytes of log for secrets", len(log))
}
