package skald

import (
	"crypto/ed25519"
	"crypto/sha256"

	"filippo.io/edwards25519"
)

// Sizes in bytes (section 3).
const (
	keySize       = 32
	nonceSize     = 32
	tokenSize     = 32
	signatureSize = ed25519.SignatureSize
	aeadNonceSize = 12

	// maxDeviceToken bounds what we keep for a phone; tokens of APNs and FCM
	// are far shorter.
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

// verifyChallenge checks the signature of a challenge strictly: public keys and
// nonce points of small order and encodings that are not canonical are refused,
// for which one signature can be valid for many messages or keys.
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

// strictPoint reports whether b is the canonical encoding of a point that is not
// of small order.
func strictPoint(b []byte) bool {
	p, err := new(edwards25519.Point).SetBytes(b)
	if err != nil {
		return false
	}
	if string(p.Bytes()) != string(b) {
		return false
	}
	return new(edwards25519.Point).MultByCofactor(p).Equal(edwards25519.NewIdentityPoint()) == 0
}
