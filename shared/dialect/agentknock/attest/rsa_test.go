package attest_test

import (
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"errors"
	"io"
	"math/big"
	"testing"

	"blindpost/shared/dialect/agentknock/attest"
	"blindpost/shared/proof/attesttest"
)

// manyPrimes is an RSA key of many small primes. It is worth nothing, but is made at
// once, however long it is.
type manyPrimes struct {
	public rsa.PublicKey
	d      *big.Int
}

func newManyPrimes(t *testing.T, primes int) *manyPrimes {
	t.Helper()
	k := &manyPrimes{public: rsa.PublicKey{N: big.NewInt(1), E: 65537}}
	order := big.NewInt(1)
	for range primes {
		p, err := rand.Prime(rand.Reader, 420)
		if err != nil {
			t.Fatal(err)
		}
		k.public.N.Mul(k.public.N, p)
		order.Mul(order, p.Sub(p, big.NewInt(1)))
	}
	if k.d = new(big.Int).ModInverse(big.NewInt(int64(k.public.E)), order); k.d == nil {
		return newManyPrimes(t, primes) // 65537 divides one less than a prime
	}
	return k
}

func (k *manyPrimes) Public() crypto.PublicKey { return &k.public }

// Sign is PKCS #1 v1.5 with SHA-256.
func (k *manyPrimes) Sign(_ io.Reader, digest []byte, _ crypto.SignerOpts) ([]byte, error) {
	prefix := []byte{0x30, 0x31, 0x30, 0x0d, 0x06, 0x09, 0x60, 0x86, 0x48, 0x01, 0x65, 0x03, 0x04, 0x02, 0x01, 0x05, 0x00, 0x04, 0x20}
	m := make([]byte, k.public.Size())
	end := len(m) - len(prefix) - len(digest)
	m[1] = 1
	for i := 2; i < end-1; i++ {
		m[i] = 0xff
	}
	copy(m[end:], prefix)
	copy(m[end+len(prefix):], digest)
	return new(big.Int).Exp(new(big.Int).SetBytes(m), k.d, k.public.N).FillBytes(m), nil
}

// RSA keys are taken up to a size: a signature costs more than the square of it, and
// whoever sends a chain chooses its keys.
func TestRSA(t *testing.T) {
	maker := attesttest.NewMaker(t, now)
	for _, tt := range []struct {
		primes int
		want   error
	}{{5, nil}, {19, nil}, {20, attest.ErrSignature}} {
		key := newManyPrimes(t, tt.primes)
		chain := maker.Make(t, attesttest.Chain{
			Description: attesttest.Of(want).Encode(t), Keys: []crypto.Signer{attesttest.NewKey(t), key, attesttest.NewKey(t)},
		})
		if err := rootsOf(t, maker).Verify(attesttest.Base64(chain), now, want); !errors.Is(err, tt.want) {
			t.Errorf("%d bits: got %v, want %v", key.public.N.BitLen(), err, tt.want)
		}
	}
}
