package skald

import (
	"crypto/ecdh"
	"crypto/ed25519"
	"crypto/hkdf"
	"crypto/sha256"
	"fmt"
	"io"
	"slices"
)

// Identity is what derives from one 32-byte seed: an Ed25519 key that signs
// challenges and an X25519 key that agrees on session keys. It is immutable and
// safe for concurrent use.
type Identity struct {
	seed     Seed
	signing  ed25519.PrivateKey
	exchange *ecdh.PrivateKey

	public         PublicKey
	publicExchange ExchangeKey
}

// NewIdentity derives an identity from its seed.
func NewIdentity(seed Seed) (*Identity, error) {
	scalar, err := derive(seed[:], kdfSalt, kdfInfoX25519)
	if err != nil {
		return nil, err
	}
	exchange, err := ecdh.X25519().NewPrivateKey(scalar)
	if err != nil {
		return nil, fmt.Errorf("failed to make exchange key: %w", err)
	}
	signingSeed, err := derive(seed[:], kdfSalt, kdfInfoEd25519)
	if err != nil {
		return nil, err
	}
	signing := ed25519.NewKeyFromSeed(signingSeed)
	return &Identity{
		seed:           seed,
		signing:        signing,
		exchange:       exchange,
		public:         PublicKey(signing.Public().(ed25519.PublicKey)),
		publicExchange: ExchangeKey(exchange.PublicKey().Bytes()),
	}, nil
}

// GenerateIdentity draws a seed from rand, which has to be a cryptographic
// source for anything but tests.
func GenerateIdentity(rand io.Reader) (*Identity, error) {
	var seed Seed
	if _, err := io.ReadFull(rand, seed[:]); err != nil {
		return nil, fmt.Errorf("failed to draw a seed: %w", err)
	}
	return NewIdentity(seed)
}

// Seed returns the secret that the identity derives from.
func (id *Identity) Seed() Seed { return id.seed }

// PublicKey returns the Ed25519 key: the member's name on the wire.
func (id *Identity) PublicKey() PublicKey { return id.public }

// ExchangeKey returns the X25519 public key.
func (id *Identity) ExchangeKey() ExchangeKey { return id.publicExchange }

// Namespace returns the namespace that this identity owns as an agent.
func (id *Identity) Namespace() NamespaceID { return NamespaceOf(id.public) }

// NamespaceOf returns the namespace of the agent with this key.
func NamespaceOf(agent PublicKey) NamespaceID {
	return sha256.Sum256(slices.Concat([]byte(namespaceDomain), []byte{0}, agent[:]))
}

// SignChallenge answers a relay's challenge with 64 bytes. The nonce must have 32 bytes:
// with another length a relay could get other texts signed.
func (id *Identity) SignChallenge(nonce []byte) ([]byte, error) {
	if len(nonce) != KeySize {
		return nil, fmt.Errorf("failed to sign challenge: %w: nonce of %d bytes", ErrProtocol, len(nonce))
	}
	return ed25519.Sign(id.signing, challengeText(nonce)), nil
}

// challengeText is the text that a challenge signature covers.
func challengeText(nonce []byte) []byte {
	return slices.Concat([]byte(authDomain), []byte{0}, nonce)
}

// String names the identity by its shortened public key.
func (id *Identity) String() string { return "identity " + id.public.String() }

// Format implements fmt.Formatter, so that no verb shows the keys.
func (id *Identity) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, id.String()) }

// sharedSecret is X25519 with a peer's key. A small-order key, with which the secret would
// be public, is an error.
func (id *Identity) sharedSecret(peer ExchangeKey) ([]byte, error) {
	pub, err := ecdh.X25519().NewPublicKey(peer[:])
	if err != nil {
		return nil, fmt.Errorf("failed to read exchange key of peer: %w", err)
	}
	secret, err := id.exchange.ECDH(pub)
	if err != nil {
		return nil, fmt.Errorf("failed to agree with exchange key of peer: %w", err)
	}
	return secret, nil
}

// derive is HKDF-SHA256 to 32 bytes.
func derive(secret []byte, salt, info string) ([]byte, error) {
	key, err := hkdf.Key(sha256.New, secret, []byte(salt), info, KeySize)
	if err != nil {
		return nil, fmt.Errorf("failed to derive key: %w", err)
	}
	return key, nil
}
