package skald

import (
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/hex"
	"strings"
)

// Sizes in bytes (section 3).
const (
	keySize       = 32
	nonceSize     = 32
	tokenSize     = 32
	signatureSize = ed25519.SignatureSize
	aeadNonceSize = 12

	// maxDeviceToken bounds what the relay stores; tokens of APNs and FCM are far
	// shorter.
	maxDeviceToken = 4096
)

// Domain separators; see the protocol's notes on its cryptography.
const (
	authDomain      = "skald-relay-auth-v1"
	namespaceDomain = "skald-namespace-v1"
)

// namespaceID derives the id of the namespace that belongs to an agent.
func namespaceID(agent []byte) []byte {
	h := sha256.New()
	h.Write([]byte(namespaceDomain))
	h.Write([]byte{0})
	h.Write(agent)
	return h.Sum(nil)
}

// verifyChallenge checks the signature of a challenge strictly. It refuses public keys
// and nonce points of small order, and encodings that are not canonical: with those, one
// signature can be valid for many messages or keys.
func verifyChallenge(pub, nonce, signature []byte) bool {
	if len(pub) != keySize || len(signature) != signatureSize {
		return false
	}
	if !strictPoint(pub) || !strictPoint(signature[:32]) {
		return false
	}
	msg := make([]byte, 0, len(authDomain)+1+nonceSize)
	msg = append(msg, authDomain...)
	msg = append(msg, 0)
	msg = append(msg, nonce...)
	return ed25519.Verify(pub, msg, signature) // checks that S is canonical
}

// strictPoint reports whether b is a canonical encoding, and not that of a point of
// small order. (Verify checks that it is a point at all.) It compares bytes: computing
// on the curve would cost as much as a third of the signature check.
func strictPoint(b []byte) bool {
	return canonicalY(b) && !smallOrder[[32]byte(b)]
}

// canonicalY reports whether the y coordinate is reduced: less than 2^255 - 19,
// in little-endian order without the sign bit of x.
func canonicalY(b []byte) bool {
	if b[31]&0x7f != 0x7f {
		return true
	}
	for i := 30; i > 0; i-- {
		if b[i] != 0xff {
			return true
		}
	}
	return b[0] < 0xed
}

// smallOrder holds the canonical encodings of the eight points of small order, and
// for the two of them with x = 0 also the encodings with the sign bit set.
var smallOrder = map[[32]byte]bool{
	point("01", "00", "00"): true,
	point("01", "00", "80"): true,
	point("ec", "ff", "7f"): true,
	point("ec", "ff", "ff"): true,
	point("00", "00", "00"): true,
	point("00", "00", "80"): true,
	[32]byte(unhex("c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a")): true,
	[32]byte(unhex("c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac03fa")): true,
	[32]byte(unhex("26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05")): true,
	[32]byte(unhex("26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc85")): true,
}

// point makes an encoding from its first byte, the thirty in the middle and the
// last.
func point(first, middle, last string) [32]byte {
	return [32]byte(unhex(first + strings.Repeat(middle, 30) + last))
}

func unhex(s string) []byte {
	b, err := hex.DecodeString(s)
	if err != nil {
		panic("skald: bad constant " + s)
	}
	return b
}
