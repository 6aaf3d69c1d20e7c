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

// secrets knows what must never be told: keys, tokens and payload of the whole
// run, in the forms in which they may turn up in a text.
type secrets struct {
	mu sync.Mutex
	// forms holds each form under its first bytes, so that a text can be
	// searched for all of them in one pass.
	forms map[[formPrefix]byte][]form
}

const formPrefix = 12

type form struct {
	text string
	of   string
}

func newSecrets() *secrets { return &secrets{forms: make(map[[formPrefix]byte][]form)} }

// add makes secret known. It must have at least 12 bytes.
func (s *secrets) add(of string, secret []byte) {
	texts := []string{
		string(secret),
		hex.EncodeToString(secret),
		strings.ToUpper(hex.EncodeToString(secret)),
		strings.Trim(fmt.Sprint(secret), "[]"), // as %v prints bytes
		strings.Trim(fmt.Sprintf("%q", secret), `"`),
	}
	// In base64 of something longer, the secret can begin at any of three places.
	for skip := range 3 {
		whole := (len(secret) - skip) / 3 * 3
		texts = append(texts,
			base64.StdEncoding.EncodeToString(secret[skip:skip+whole]),
			base64.URLEncoding.EncodeToString(secret[skip:skip+whole]))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, text := range texts {
		if len(text) >= formPrefix {
			prefix := [formPrefix]byte([]byte(text))
			s.forms[prefix] = append(s.forms[prefix], form{text, of})
		}
	}
}

// in returns whose secret is in text, or "".
func (s *secrets) in(text []byte) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range len(text) - formPrefix + 1 {
		for _, f := range s.forms[[formPrefix]byte(text[i:])] {
			if bytes.HasPrefix(text[i:], []byte(f.text)) {
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
