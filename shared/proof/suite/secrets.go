package suite

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// Secrets knows what must never be told: the keys, tokens, nonces and payloads of a whole
// run, in the forms in which they may turn up in a text. A secret counts as told when its
// first half is: keys may be named by eight digits, not by more.
type Secrets struct {
	mu sync.Mutex
	n  int
	// forms holds each form under its first bytes, so that a text is searched for all of
	// them in one pass; coarse has a bit for each of these, so that the pass is quick.
	forms  map[[formStart]byte][]form
	coarse [1 << 16 / 64]uint64
}

// formStart is the length from which a form can be told from chance.
const formStart = 8

type form struct {
	text []byte
	of   string
}

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
	secret = bytes.Clone(secret)
	half := secret[:max(formStart, len(secret)/2)]
	texts := [][]byte{
		half,
		[]byte(hex.EncodeToString(half)),
		[]byte(strings.ToUpper(hex.EncodeToString(half))),
		[]byte(strings.Trim(fmt.Sprint(half), "[]")), // as %v prints bytes
		[]byte(quotedStart(secret, half)),
		[]byte(strings.Trim(fmt.Sprintf("%#v", half), "[]byte{}")),
	}
	// In base64 of something longer, it can begin at any of three places.
	for skip := range 3 {
		whole := half[skip : skip+(len(half)-skip)/3*3]
		texts = append(texts,
			[]byte(base64.StdEncoding.EncodeToString(whole)),
			[]byte(base64.URLEncoding.EncodeToString(whole)))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.n++
	for _, text := range texts {
		if len(text) < formStart {
			continue // three bytes in base64, at the end of a short secret
		}
		start := [formStart]byte(text)
		s.forms[start] = append(s.forms[start], form{text, of})
		h := coarseHash(text)
		s.coarse[h/64] |= 1 << (h % 64)
	}
}

// quotedStart is how the first half begins when the whole is printed by %q. The two may
// part before the end of the half: a character may lie across it.
func quotedStart(whole, half []byte) string {
	a, b := strconv.Quote(string(whole)), strconv.Quote(string(half))
	n := 1
	for n < len(b)-1 && a[n] == b[n] {
		n++
	}
	return b[1:n]
}

func coarseHash(b []byte) uint32 {
	return binary.LittleEndian.Uint32(b) * 0x9e3779b1 >> 16
}

// Count returns how many secrets are known.
func (s *Secrets) Count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.n
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
		if h := coarseHash(text[i:]); s.coarse[h/64]&(1<<(h%64)) == 0 {
			continue
		}
		for _, f := range s.forms[[formStart]byte(text[i:])] {
			if bytes.HasPrefix(text[i:], f.text) && !found(f) {
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
	t.Logf("searched %d bytes of log for %d secrets", len(log), s.Count())
}
