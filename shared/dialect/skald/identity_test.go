package skald

import (
	"bytes"
	"crypto/ed25519"
	"encoding/hex"
	"math/big"
	"testing"

	"filippo.io/edwards25519"
)

// torsion are the eight points of small order, multiples of one of order eight.
func torsion(t *testing.T) []*edwards25519.Point {
	t.Helper()
	p, err := new(edwards25519.Point).SetBytes(unhex("c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a"))
	if err != nil {
		t.Fatal(err)
	}
	var all []*edwards25519.Point
	q := edwards25519.NewIdentityPoint()
	for range 8 {
		all = append(all, q)
		q = new(edwards25519.Point).Add(q, p)
	}
	if q.Equal(edwards25519.NewIdentityPoint()) != 1 {
		t.Fatal("the generator has not order eight")
	}
	return all
}

func TestStrictPointRefusesSmallOrder(t *testing.T) {
	for _, p := range torsion(t) {
		if strictPoint(p.Bytes()) {
			t.Errorf("accepted the point of small order %x", p.Bytes())
		}
	}
}

// Every encoding that the curve library takes and that is not the one it makes
// itself is refused: y plus the prime, and x = 0 with the sign bit set.
func TestStrictPointRefusesEncodingsThatAreNotCanonical(t *testing.T) {
	prime := new(big.Int).Sub(new(big.Int).Lsh(big.NewInt(1), 255), big.NewInt(19))
	found := 0
	for low := range int64(19) {
		y := new(big.Int).Add(prime, big.NewInt(low))
		b := make([]byte, 32)
		y.FillBytes(b)
		for i := range 16 {
			b[i], b[31-i] = b[31-i], b[i]
		}
		for _, sign := range []byte{0, 0x80} {
			b[31] = b[31]&0x7f | sign
			if strictPoint(b) {
				t.Errorf("accepted %x, whose y is not reduced", b)
			}
			found++
		}
	}
	if found != 38 {
		t.Fatal("looked at", found, "encodings, want 38")
	}
	for _, s := range []string{
		"0100000000000000000000000000000000000000000000000000000000000080",
		"ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff",
	} {
		if strictPoint(unhex(s)) {
			t.Errorf("accepted %s, whose x is minus zero", s)
		}
	}
}

func TestStrictPointAcceptsOrdinaryKeys(t *testing.T) {
	for i := range byte(200) {
		key := ed25519.NewKeyFromSeed(bytes.Repeat([]byte{i}, 32))
		if pub := key.Public().(ed25519.PublicKey); !strictPoint(pub) {
			t.Errorf("refused the ordinary key %x", pub)
		}
	}
}

// A signature without a private key: with a key of small order, S = 0 and a matching R
// verify for a part of all messages. The standard library accepts it.
func TestVerifyRefusesForgeriesWithSmallOrderKeys(t *testing.T) {
	nonce := bytes.Repeat([]byte{7}, nonceSize)
	identity := unhex("0100000000000000000000000000000000000000000000000000000000000000")
	signature := append(bytes.Clone(identity), make([]byte, 32)...)
	msg := append([]byte(authDomain+"\x00"), nonce...)
	if !ed25519.Verify(identity, msg, signature) {
		t.Fatal("the forgery is no longer one; this test has lost its meaning")
	}
	if verifyChallenge(identity, nonce, signature) {
		t.Error("accepted a forgery with the identity as key")
	}
}

func TestNamespaceAndSignatureOfTheVectors(t *testing.T) {
	agent := unhex("b3e202f4ac99fd9929da47df20adedd5b2598411a466a229f086eda3467ffa7b")
	if got := hex.EncodeToString(namespaceID(agent)); got != "f7d340d3c3f0b0052fa904ba60ebd38a0f7e7d10672ac80648991a2c632c9e58" {
		t.Errorf("namespace id %s is not that of vector V9", got)
	}
	client := unhex("12355ea750e60d6370ba6776037f25062f6c9450c5009669884895fd5b377a18")
	nonce := unhex("aabbccddeeff00112233445566778899aabbccddeeff00112233445566778899")
	sig := unhex("ae38491a1f25bb5fb11f0b17e3d344412bfc927461b6517e9a0ab6a64020054677f59490af026f34c81d9378d4daae4823109ca2d1afbf4ff00230a038270002")
	if !verifyChallenge(client, nonce, sig) {
		t.Error("refused the signature of vector V18")
	}
	for i := range sig {
		bad := bytes.Clone(sig)
		bad[i] ^= 1
		if verifyChallenge(client, nonce, bad) {
			t.Errorf("accepted the signature of V18 with byte %d changed", i)
		}
	}
	// S plus the order of the group verifies in careless implementations.
	order, _ := new(big.Int).SetString("7237005577332262213973186563042994240857116359379907606001950938285454250989", 10)
	s := new(big.Int)
	le := bytes.Clone(sig[32:])
	for i := range 16 {
		le[i], le[31-i] = le[31-i], le[i]
	}
	s.SetBytes(le).Add(s, order).FillBytes(le)
	for i := range 16 {
		le[i], le[31-i] = le[31-i], le[i]
	}
	if verifyChallenge(client, nonce, append(bytes.Clone(sig[:32]), le...)) {
		t.Error("accepted a signature whose S is not reduced")
	}
}
