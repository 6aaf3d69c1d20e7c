package suite

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
)

// Secrets knows what must never be told: the keys, tokens and payloads of a whole run,
// in the forms in which they may turn up in a text.
type Secrets struct {
	mu sync.Mutex
	n  int
	// forms holds each form under its first bytes, so that a text is searched for all
	// of them in one pass.
	forms map[[formStart]byte][]form
}

// formStart is the length from which a form can be told from chance.
const formStart = 12

type form struct{ text, of string }

// NewSecrets knows none.
func NewSecrets() *Secrets { return &Secrets{forms: make(map[[formStart]byte][]form)} }

// AddToken makes a token known, as it is sent and as the bytes that it stands for.
func (s *Secrets) AddToken(of, token string) {
	s.Add(of, []byte(token))
	if b, err := base64.RawURLEncoding.DecodeString(token); err == nil {
		s.Add(of, b)
	}
}

// Add makes a secret known; of is what a finding is called.
func (s *Secrets) Add(of string, secret []byte) {
	if len(secret) < formStart {
		panic("suite: a secret is too short to be found")
	}
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
	s.n++
	for _, text := range texts {
		if len(text) >= formStart { // base64 of the end of a short one is not
			start := [formStart]byte([]byte(text))
			s.forms[start] = append(s.forms[start], form{text, of})
		}
	}
}

// In returns whose secret is in a text, or "".
func (s *Secrets) In(text []byte) string { return s.Find(text, "") }

// Find is [Secrets.In] for secrets whose name begins so.
func (s *Secrets) Find(text []byte, kind string) (of string) {
	s.each(text, func(f form) bool {
		if strings.HasPrefix(f.of, kind) {
			of = f.of
		}
		return of == ""
	})
	return of
}

// each calls found for what is in a text until that says false.
func (s *Secrets) each(text []byte, found func(form) bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range len(text) - formStart + 1 {
		for _, f := range s.forms[[formStart]byte(text[i:])] {
			if bytes.HasPrefix(text[i:], []byte(f.text)) && !found(f) {
				return
			}
		}
	}
}

// WantSilentLog fails the test if what a relay has logged tells a secret.
func (s *Secrets) WantSilentLog(t testing.TB, log []byte) {
	t.Helper()
	told := make(map[string]bool)
	s.each(log, func(f form) bool { told[f.of] = true; return true })
	for _, what := range slices.Sorted(maps.Keys(told)) {
		t.Errorf("the relay's log tells %s", what)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	t.Logf("searched %d bytes of log for %d secrets", len(log), s.n)
}
