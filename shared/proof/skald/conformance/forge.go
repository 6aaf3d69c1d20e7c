package conformance

import (
	"crypto/ed25519"
	"crypto/sha512"
	"encoding/hex"
	"testing"

	"filippo.io/edwards25519"
)

// smallOrder are all encodings of the eight points of small order: whoever
// presents one as his key needs no private key to sign. The last six are not
// canonical (y not reduced, or x = 0 with the sign bit set).
var smallOrder = []struct{ name, key string }{
	{"order 1", "0100000000000000000000000000000000000000000000000000000000000000"},
	{"order 2", "ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f"},
	{"order 4", "0000000000000000000000000000000000000000000000000000000000000000"},
	{"order 4, other sign", "0000000000000000000000000000000000000000000000000000000000000080"},
	{"order 8", "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05"},
	{"order 8, other sign", "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc85"},
	{"order 8, other y", "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a"},
	{"order 8, other y and sign", "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac03fa"},
	{"order 1, minus zero", "0100000000000000000000000000000000000000000000000000000000000080"},
	{"order 1, y = p+1", "eeffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f"},
	{"order 1, y = p+1, minus zero", "eeffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff"},
	{"order 2, minus zero", "ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff"},
	{"order 4, y = p", "edffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f"},
	{"order 4, y = p, other sign", "edffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff"},
}

func unhex(s string) []byte {
	b, err := hex.DecodeString(s)
	if err != nil {
		panic(err)
	}
	return b
}

// hashScalar is k of Ed25519: SHA-512(R, A, message) as a scalar.
func hashScalar(r, a, message []byte) *edwards25519.Scalar {
	h := sha512.New()
	h.Write(r)
	h.Write(a)
	h.Write(message)
	k, err := new(edwards25519.Scalar).SetUniformBytes(h.Sum(nil))
	if err != nil {
		panic(err)
	}
	return k
}

// forge signs message for a key of small order, which needs no private key:
// with any scalar S, R = SB - kA holds for one in a few tries, because kA is
// one of at most eight points. It is a signature that a verifier which does
// not refuse such keys accepts; forge checks that it does.
func forge(t *testing.T, key, message []byte) []byte {
	t.Helper()
	a, err := new(edwards25519.Point).SetBytes(key)
	if err != nil {
		t.Fatalf("no point: %v", err)
	}
	minusA := new(edwards25519.Point).Negate(a)
	for range 10_000 {
		s, err := new(edwards25519.Scalar).SetUniformBytes(randomBytes(64))
		if err != nil {
			panic(err)
		}
		// Guess that kA is the neutral element.
		r := new(edwards25519.Point).ScalarBaseMult(s)
		k := hashScalar(r.Bytes(), key, message)
		kA := new(edwards25519.Point).ScalarMult(k, minusA)
		if kA.Equal(edwards25519.NewIdentityPoint()) != 1 {
			continue
		}
		signature := append(r.Bytes(), s.Bytes()...)
		if !ed25519.Verify(key, message, signature) {
			t.Fatal("the forged signature would not fool anyone")
		}
		return signature
	}
	t.Fatal("no luck in forging")
	return nil
}

// order is the order of the base point, little endian.
var order = unhex("edd3f55c1a631258d69cf7a2def9de1400000000000000000000000000000010")

// stretched is signature with S + order in place of S: the same scalar, in an
// encoding that is not canonical.
func stretched(signature []byte) []byte {
	out := append([]byte(nil), signature...)
	carry := 0
	for i := range 32 {
		sum := int(out[32+i]) + int(order[i]) + carry
		out[32+i], carry = byte(sum), sum>>8
	}
	return out
}

// twistedR signs with R = the neutral element in an encoding that is not
// canonical, which the owner of a key can do. A verifier that compares points
// and not bytes accepts it.
func twistedR(id *identity, message []byte) []byte {
	r := unhex("eeffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f")
	digest := sha512.Sum512(id.private.Seed())
	a, err := new(edwards25519.Scalar).SetBytesWithClamping(digest[:32])
	if err != nil {
		panic(err)
	}
	s := new(edwards25519.Scalar).Multiply(hashScalar(r, id.key, message), a)
	return append(r, s.Bytes()...)
}
