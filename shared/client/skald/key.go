package skald

import (
	"encoding/hex"
	"fmt"
	"io"
	"log/slog"
)

// PublicKey is an Ed25519 public key: the name of a member on the wire.
//
// String and slog show the first 8 hex digits only; Hex shows it all.
type PublicKey [KeySize]byte

// ExchangeKey is an X25519 public key.
type ExchangeKey [KeySize]byte

// NamespaceID is the SHA-256 over an agent's public key that names its
// namespace.
type NamespaceID [KeySize]byte

// Seed is the one secret of an identity. No formatting verb, no JSON encoder
// and no logger shows it.
type Seed [KeySize]byte

// PairingToken is the secret of one pairing window. It hides like [Seed].
type PairingToken [KeySize]byte

// ParsePublicKey takes the 32 bytes that travel in frames.
func ParsePublicKey(b []byte) (PublicKey, error) {
	k, err := fixed32(b)
	return PublicKey(k), err
}

// ParsePublicKeyHex takes 64 hex digits, upper or lower case.
func ParsePublicKeyHex(s string) (PublicKey, error) {
	k, err := fixedHex(s)
	return PublicKey(k), err
}

// Hex returns 64 lower case digits.
func (k PublicKey) Hex() string                  { return hex.EncodeToString(k[:]) }
func (k PublicKey) String() string               { return short(k[:]) }
func (k PublicKey) LogValue() slog.Value         { return slog.StringValue(k.String()) }
func (k PublicKey) MarshalText() ([]byte, error) { return []byte(k.Hex()), nil }

// UnmarshalText takes 64 hex digits.
func (k *PublicKey) UnmarshalText(b []byte) error { return unhex((*[KeySize]byte)(k), b) }

// Hex returns 64 lower case digits.
func (k ExchangeKey) Hex() string                  { return hex.EncodeToString(k[:]) }
func (k ExchangeKey) String() string               { return short(k[:]) }
func (k ExchangeKey) LogValue() slog.Value         { return slog.StringValue(k.String()) }
func (k ExchangeKey) MarshalText() ([]byte, error) { return []byte(k.Hex()), nil }

// UnmarshalText takes 64 hex digits.
func (k *ExchangeKey) UnmarshalText(b []byte) error { return unhex((*[KeySize]byte)(k), b) }

// Hex returns 64 lower case digits.
func (n NamespaceID) Hex() string                  { return hex.EncodeToString(n[:]) }
func (n NamespaceID) String() string               { return short(n[:]) }
func (n NamespaceID) LogValue() slog.Value         { return slog.StringValue(n.String()) }
func (n NamespaceID) MarshalText() ([]byte, error) { return []byte(n.Hex()), nil }

// UnmarshalText takes 64 hex digits.
func (n *NamespaceID) UnmarshalText(b []byte) error { return unhex((*[KeySize]byte)(n), b) }

const hidden = "(hidden)"

// Format implements fmt.Formatter, so that %x hides the seed as well.
func (Seed) Format(f fmt.State, _ rune)   { _, _ = io.WriteString(f, hidden) }
func (Seed) LogValue() slog.Value         { return slog.StringValue(hidden) }
func (Seed) MarshalText() ([]byte, error) { return []byte(hidden), nil }

// Format implements fmt.Formatter, so that %x hides the token as well.
func (PairingToken) Format(f fmt.State, _ rune)   { _, _ = io.WriteString(f, hidden) }
func (PairingToken) LogValue() slog.Value         { return slog.StringValue(hidden) }
func (PairingToken) MarshalText() ([]byte, error) { return []byte(hidden), nil }

func short(b []byte) string { return hex.EncodeToString(b[:4]) + "…" }

func fixed32(b []byte) ([KeySize]byte, error) {
	if len(b) != KeySize {
		return [KeySize]byte{}, fmt.Errorf("want %d bytes, got %d", KeySize, len(b))
	}
	return [KeySize]byte(b), nil
}

// fixedHex does not quote its input in errors, as it may be a secret.
func fixedHex(s string) ([KeySize]byte, error) {
	var k [KeySize]byte
	if len(s) != hex.EncodedLen(KeySize) {
		return k, fmt.Errorf("want %d hex digits, got %d characters", hex.EncodedLen(KeySize), len(s))
	}
	if _, err := hex.Decode(k[:], []byte(s)); err != nil {
		return [KeySize]byte{}, fmt.Errorf("want %d hex digits", hex.EncodedLen(KeySize))
	}
	return k, nil
}

func unhex(k *[KeySize]byte, b []byte) error {
	v, err := fixedHex(string(b))
	if err != nil {
		return err
	}
	*k = v
	return nil
}
