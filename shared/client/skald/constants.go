package skald

import "blindpost/shared/dialect/skald/skaldpb"

// Domains and labels of the protocol's cryptography: ASCII, no terminator.
const (
	authDomain      = "skald-relay-auth-v1"
	namespaceDomain = "skald-namespace-v1"
	kdfSalt         = "skald-kdf-v1"
	kdfInfoX25519   = "x25519"
	kdfInfoEd25519  = "ed25519"
	sessionSalt     = "skald-session-v1"
	sessionInfo     = "aes-256-gcm"
)

// Sizes in bytes.
const (
	KeySize       = 32 // public keys, seeds, namespace ids, tokens, challenge nonces
	SignatureSize = 64
	NonceSize     = 12 // AEAD nonce: direction (4), counter (8, big endian)
	TagSize       = 16 // what sealing adds to the framed plaintext

	// MaxStoredCiphertext and MaxLiveCiphertext bound Message.ciphertext. With
	// the rest of the frame they stay below the relay's 64 and 512 KiB.
	MaxStoredCiphertext = 65_000
	MaxLiveCiphertext   = 524_000

	// MaxPlaintext bounds the size of a decompressed payload. The protocol has no such
	// limit, but zlib expands up to a thousandfold.
	MaxPlaintext = 4 << 20
)

// DefaultPath is where a relay serves WebSockets; it completes a relay URL that
// names a host only.
const DefaultPath = "/v1/ws"

// Role is the side of an identity in a pairing.
type Role int

// The two roles.
const (
	RoleAgent Role = iota + 1
	RoleClient
)

func (r Role) String() string {
	switch r {
	case RoleAgent:
		return "agent"
	case RoleClient:
		return "client"
	}
	return "no role"
}

// Platform is the push platform of a client.
type Platform = skaldpb.Platform

// Platforms. A relay may refuse the unspecified one.
const (
	PlatformUnspecified = skaldpb.Platform_PLATFORM_UNSPECIFIED
	PlatformIOS         = skaldpb.Platform_PLATFORM_IOS
	PlatformAndroid     = skaldpb.Platform_PLATFORM_ANDROID
)
