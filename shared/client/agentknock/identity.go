package agentknock

import (
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/oklog/ulid/v2"
)

var canonicalULID = regexp.MustCompile(`^[0-7][0-9A-HJKMNP-TV-Z]{25}$`)

// IsID reports whether s is an id of the protocol: a canonical uppercase ULID that is not
// all zeros.
func IsID(s string) bool { return canonicalULID.MatchString(s) && strings.Trim(s, "0") != "" }

// NewID makes an id with the given time.
func NewID(at time.Time) string {
	return ulid.MustNew(ulid.Timestamp(at), rand.Reader).String()
}

// tokenBytes is the size of the token of a client or device.
const tokenBytes = 32

// NewToken makes an encoded token.
func NewToken() string { return TokenOf(tokenBytes) }

// TokenOf makes a token of n random bytes; only the size of [NewToken] is valid.
func TokenOf(n int) string {
	b := make([]byte, n)
	_, _ = rand.Read(b) // never fails
	return base64.RawURLEncoding.EncodeToString(b)
}

// AddressID is the discovery alias of the words of a pairing address.
func AddressID(words ...string) string {
	key, err := hkdf.Key(sha256.New, []byte(strings.Join(words, "-")), []byte("agentknock-v1"), "agentknock-v1 address", 16)
	if err != nil {
		panic(fmt.Sprintf("failed to derive 16 bytes: %v", err)) // only for far longer keys
	}
	return hex.EncodeToString(key)
}

// NewAddress makes the id of a random, unique address.
func NewAddress() string {
	b := make([]byte, 16)
	_, _ = rand.Read(b)
	return hex.EncodeToString(b)
}
