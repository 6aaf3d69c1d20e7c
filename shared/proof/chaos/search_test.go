package chaos

import (
	"encoding/base64"
	"encoding/hex"
	"slices"
	"strings"
	"testing"

	"blindpost/shared/proof/suite"
)

// Whatever part of a letter is told is found, with its line.
func TestSearch(t *testing.T) {
	s := suite.NewSecrets()
	p := newPress()
	s.Add("payload", p.body[:])
	s.Add("a nonce", p.nonce[:])
	s.Add("a token", []byte("device-0123456789abcdef"))
	ciphertext, nonce := p.print(letter{from: 1, to: 2, n: 3}, 500)
	text := strings.Join([]string{
		"nothing", hex.EncodeToString(ciphertext[100:200]), base64.StdEncoding.EncodeToString(ciphertext[101:200]), "",
		hex.EncodeToString(nonce), "last device-0123456789abcdef",
	}, "\n")
	size, found, err := search(s, strings.NewReader(text))
	want := []finding{{2, "payload"}, {3, "payload"}, {5, "a nonce"}, {6, "a token"}}
	if err != nil || size != int64(len(text)) || !slices.Equal(found, want) {
		t.Errorf("searched %d of %d bytes: %v, %v", size, len(text), found, err)
	}
}
