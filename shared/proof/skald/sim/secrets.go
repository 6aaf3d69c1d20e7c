package sim

import (
	"encoding/base64"
	"encoding/hex"
	"regexp"
	"strings"
)

var longHex = regexp.MustCompile(`[0-9a-fA-F]{32,}`)

// watchText looks for secrets in what a person may read.
func (s *sim) watchText(where, text string) {
	if strings.Contains(text, payloadMark) || strings.Contains(text, base64.StdEncoding.EncodeToString([]byte(payloadMark))[:24]) ||
		strings.Contains(text, hex.EncodeToString([]byte(payloadMark))) {
		s.violate(propBytes, "a %s holds a ciphertext: %q", where, text)
	}
	if strings.Contains(text, "DEVICE-TOKEN") {
		s.violate(propBytes, "a %s holds a device token: %q", where, text)
	}
	if longHex.MatchString(text) {
		s.violate(propBytes, "a %s holds a whole key or token: %q", where, text)
	}
}
