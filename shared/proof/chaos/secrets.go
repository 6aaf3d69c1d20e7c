package chaos

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync"
)

// secrets knows what a relay must never tell: payload, keys, tokens and nonces
// of the whole run, in the forms in which they may turn up in a text. A secret
// counts as told when its first half is: keys may be named by eight digits, not
// by more.
type secrets struct {
	mu sync.Mutex
	// forms holds each form under its first bytes, so that a text is searched for
	// all of them in one pass; coarse has a bit for each of these, so that the
	// pass is quick.
	forms  map[[formPrefix]byte][]form
	coarse [1 << 16 / 64]uint64
	n      int
}

const (
	formPrefix = 8
	// secretMin is the size from which a secret can be told from chance.
	secretMin = 8
)

type form struct {
	text []byte
	of   string
}

func newSecrets() *secrets { return &secrets{forms: make(map[[formPrefix]byte][]form)} }

// add makes a secret known. What it is called is what a finding is called.
func (s *secrets) add(of string, secret []byte) {
	if len(secret) < secretMin {
		panic("chaos: a secret is too short to be found")
	}
	half := secret[:max(secretMin, len(secret)/2)]
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
		if len(text) < formPrefix {
			continue // three bytes in base64, at the end of a short secret
		}
		prefix := [formPrefix]byte(text)
		s.forms[prefix] = append(s.forms[prefix], form{text, of})
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

// count returns how many secrets are known.
func (s *secrets) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.n
}

// in returns what a text tells, or "".
func (s *secrets) in(text []byte) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range len(text) - formPrefix + 1 {
		if h := coarseHash(text[i:]); s.coarse[h/64]&(1<<(h%64)) == 0 {
			continue
		}
		for _, f := range s.forms[[formPrefix]byte(text[i:])] {
			if bytes.HasPrefix(text[i:], f.text) {
				return f.of
			}
		}
	}
	return ""
}

// finding is a line that tells something.
type finding struct {
	line int
	what string
}

// search reads lines and returns how many bytes there were, and the first
// findings.
func (s *secrets) search(r io.Reader) (size int64, found []finding, err error) {
	lines := bufio.NewReaderSize(r, 64<<10)
	for n := 1; ; n++ {
		line, err := lines.ReadBytes('\n')
		size += int64(len(line))
		if what := s.in(line); what != "" && len(found) < maxFaults {
			found = append(found, finding{n, what})
		}
		if err == io.EOF {
			return size, found, nil
		}
		if err != nil {
			return size, found, fmt.Errorf("failed to read what is searched: %w", err)
		}
	}
}
