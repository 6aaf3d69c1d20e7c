package sim

import (
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"sync"
)

// identities is how many different agents and phones a schedule can have.
const identities = 32

// identity is a peer's key. Identities and challenges are the same in every
// schedule, so that a signature is computed once and not once per connection.
type identity struct {
	index  int
	key    ed25519.PrivateKey
	pub    []byte
	hex    string
	x25519 []byte
}

var allIdentities = sync.OnceValue(func() []*identity {
	out := make([]*identity, identities)
	for i := range out {
		seed := sha256.Sum256(fmt.Appendf(nil, "blindpost simulation identity %d", i))
		x := sha256.Sum256(seed[:])
		key := ed25519.NewKeyFromSeed(seed[:])
		pub := []byte(key.Public().(ed25519.PublicKey))
		out[i] = &identity{index: i, key: key, pub: pub, hex: hex.EncodeToString(pub), x25519: x[:]}
	}
	return out
})

// challenge is the n-th nonce of a schedule.
func challenge(n uint64) []byte {
	h := sha256.Sum256(binary.BigEndian.AppendUint64([]byte("blindpost simulation challenge"), n))
	return h[:]
}

type signed struct {
	identity int
	nonce    [32]byte
}

var signatures sync.Map // signed to []byte

// sign answers a challenge as Skald demands it.
func (id *identity) sign(nonce []byte) []byte {
	k := signed{identity: id.index}
	copy(k.nonce[:], nonce)
	if v, ok := signatures.Load(k); ok {
		return v.([]byte)
	}
	sig := ed25519.Sign(id.key, append([]byte("skald-relay-auth-v1\x00"), nonce...))
	signatures.Store(k, sig)
	return sig
}

// namespaceOf is the namespace of an agent.
func namespaceOf(agent *identity) []byte {
	h := sha256.Sum256(append([]byte("skald-namespace-v1\x00"), agent.pub...))
	return h[:]
}
