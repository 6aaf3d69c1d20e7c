package aelos

import (
	"encoding/base64"
	"errors"
	"fmt"
	"io"

	"golang.org/x/crypto/nacl/box"
)

// PublicKey is an X25519 public key.
type PublicKey [32]byte

// KeyPair is an X25519 key pair, static or ephemeral.
type KeyPair struct {
	Public PublicKey
	secret [32]byte
}

// GenerateKeyPair makes a key pair: crypto_box_keypair.
func GenerateKeyPair(random io.Reader) (KeyPair, error) {
	public, secret, err := box.GenerateKey(random)
	if err != nil {
		return KeyPair{}, fmt.Errorf("failed to draw a key: %w", err)
	}
	return KeyPair{Public: *public, secret: *secret}, nil
}

const nonceSize = 24

// ErrBox says that a sealed blob was not made by the holder of the expected key. Tampering
// and impersonation cannot be told apart, and a retry does not help.
var ErrBox = errors.New("sealed blob does not open")

// sealBox seals a message as one self-contained blob: a random nonce, then
// crypto_box_easy.
func sealBox(random io.Reader, message []byte, to PublicKey, from KeyPair) (string, error) {
	var nonce [nonceSize]byte
	if _, err := io.ReadFull(random, nonce[:]); err != nil {
		return "", fmt.Errorf("failed to draw a nonce: %w", err)
	}
	sealed := box.Seal(nonce[:], message, &nonce, (*[32]byte)(&to), &from.secret)
	return base64.StdEncoding.EncodeToString(sealed), nil
}

// openBox opens such a blob. The message must have 32 bytes, as the handshake seals only
// keys and the seed.
func openBox(blob string, from PublicKey, to KeyPair) ([32]byte, error) {
	sealed, err := base64.StdEncoding.DecodeString(blob)
	if err != nil || len(sealed) < nonceSize {
		return [32]byte{}, ErrBox
	}
	nonce := [nonceSize]byte(sealed)
	message, ok := box.Open(nil, sealed[nonceSize:], &nonce, (*[32]byte)(&from), &to.secret)
	if !ok || len(message) != 32 {
		return [32]byte{}, ErrBox
	}
	return [32]byte(message), nil
}
