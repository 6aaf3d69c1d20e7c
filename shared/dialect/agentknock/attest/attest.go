// Package attest tells whether a key attestation of Android was made for one claim of
// one device: a chain of certificates whose first one has the challenge of that claim
// in it, made by secure hardware, and which leads to a root that the operator trusts.
//
// # What it promises
//
//   - Every certificate is signed by the next one, and the last one is a root, or is
//     signed by one. Roots are compared by their keys: that of the older devices of
//     Google has been given several certificates, which expire, and newer devices send
//     none at all.
//   - Only what stands in the first certificate counts. A chain that has a key
//     description anywhere else is refused: whoever has a key that was attested could
//     sign a certificate of his own making with it.
//   - A chain is bounded before it is decoded, and what is cheap to check is checked
//     before any signature is.
//
// It does not know which certificates were revoked: the list of them is Google's, and on
// the network. It asks neither which app made the attestation nor in what state the
// system was that it ran on.
package attest

import (
	"bytes"
	"errors"
	"slices"
	"time"
)

// What can be wrong with a chain. The texts hold nothing of what is in it, so that they
// can be logged and told.
var (
	ErrSize        = errors.New("the chain has no certificate, too many, or too large ones")
	ErrEncoding    = errors.New("a certificate is not DER in base64")
	ErrNoKey       = errors.New("the first certificate has no key description")
	ErrOtherKey    = errors.New("a certificate other than the first has a key description")
	ErrDescription = errors.New("the key description is malformed")
	ErrChallenge   = errors.New("the challenge is not that of this claim")
	ErrSoftware    = errors.New("the key is not in secure hardware")
	ErrCritical    = errors.New("a certificate has a critical extension that is unknown")
	ErrIssuer      = errors.New("a certificate may not issue others")
	ErrDate        = errors.New("a certificate is not valid at this time")
	ErrSignature   = errors.New("a certificate is not signed by the next one")
	ErrRoot        = errors.New("the chain does not lead to a trusted root")
)

// Verify checks a chain: certificates in base64, the first is that of the attested key.
// Its challenge has to be one of those given. An error is one of those above.
func (r *Roots) Verify(chain []string, now time.Time, challenges ...[]byte) error {
	certs, err := decode(chain)
	if err != nil {
		return err
	}
	description, err := describe(certs)
	if err != nil {
		return err
	}
	switch {
	case !slices.ContainsFunc(challenges, func(c []byte) bool { return bytes.Equal(c, description.challenge) }):
		return ErrChallenge
	case !description.inHardware():
		return ErrSoftware
	}
	return r.reached(certs, now)
}
