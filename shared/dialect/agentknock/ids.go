package agentknock

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"strings"
	"time"

	"github.com/oklog/ulid/v2"

	"blindpost/shared/relay"
)

// A new exchange is admitted if the time in its id is no older than maxAge and no
// further ahead than maxAhead.
const (
	maxAge   = 24 * time.Hour
	maxAhead = 5 * time.Minute
)

const zeroID = "00000000000000000000000000"

// validID reports whether s is a ULID in the form of the protocol.
func validID(s string) bool {
	return len(s) == ulid.EncodedSize && s[0] <= '7' && s != zeroID && strings.Trim(s, ulid.Encoding) == ""
}

// validAddress reports whether s is an address: 32 lowercase hexadecimal digits.
func validAddress(s string) bool {
	return len(s) == 32 && strings.Trim(s, "0123456789abcdef") == ""
}

// timeOf is the time in an id.
func timeOf(id string) time.Time {
	u, err := ulid.ParseStrict(id)
	if err != nil {
		return time.Time{}
	}
	return ulid.Time(u.Time())
}

// fresh reports whether a new exchange may have this id.
func fresh(id string, now time.Time) bool {
	at := timeOf(id)
	return !at.Before(now.Add(-maxAge)) && !at.After(now.Add(maxAhead))
}

// usedUntil is when an id is too old for a new exchange, so that it need not be stored any
// longer that the id was used.
func usedUntil(id string) time.Time { return timeOf(id).Add(maxAge + time.Minute) }

const tokenSize = 32

// hashToken checks the form of a token and returns its hash, which is what is stored.
func hashToken(token string) ([]byte, bool) {
	raw, err := base64.RawURLEncoding.Strict().DecodeString(token)
	if err != nil || len(raw) != tokenSize || len(token) != base64.RawURLEncoding.EncodedLen(tokenSize) {
		return nil, false
	}
	sum := sha256.Sum256(raw)
	return sum[:], true
}

// bearer returns the hash of the token in the Authorization headers.
func bearer(values []string) ([]byte, bool) {
	if len(values) != 1 {
		return nil, false
	}
	scheme, token, ok := strings.Cut(values[0], " ")
	if !ok || !strings.EqualFold(scheme, "Bearer") {
		return nil, false
	}
	return hashToken(strings.TrimLeft(token, " "))
}

// sameToken compares hashes of tokens. A missing hash equals none.
func sameToken(a, b []byte) bool {
	return len(a) == sha256.Size && subtle.ConstantTimeCompare(a, b) == 1
}

const (
	name = "agentknock"
	// deviceMember is the key of the only member of a group.
	deviceMember = "device"
)

func groupOf(device string) string { return name + "/" + device }

func deviceOf(group string) string { return strings.TrimPrefix(group, name+"/") }

// short is the id of a device as it may be logged.
func short(device string) string { return relay.ShortGroup(groupOf(device)) }
