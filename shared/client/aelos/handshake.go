package aelos

import (
	"crypto/hkdf"
	"crypto/sha256"
	"fmt"
	"io"

	"golang.org/x/crypto/blake2b"
)

// The labels of the two keys of a session: from the app, which is the
// initiator, to the boat, and back.
const (
	infoToBoat = "aelos-relay-p1 i2r"
	infoToApp  = "aelos-relay-p1 r2i"
)

// Initiator is the app's side of a handshake.
type Initiator struct {
	static, ephemeral KeyPair
	boat              PublicKey
}

// Initiate begins a handshake with a boat. e is for hs1.
func Initiate(random io.Reader, static KeyPair, boat PublicKey) (i *Initiator, e string, err error) {
	i = &Initiator{static: static, boat: boat}
	if i.ephemeral, err = GenerateKeyPair(random); err != nil {
		return nil, "", err
	}
	if e, err = sealBox(random, i.ephemeral.Public[:], boat, static); err != nil {
		return nil, "", err
	}
	return i, e, nil
}

// Finish handles the values of hs2. It fails with [ErrBox] if another boat answered.
func (i *Initiator) Finish(e, s string) (*Session, error) {
	boatEphemeral, err := openBox(e, i.boat, i.static)
	if err != nil {
		return nil, fmt.Errorf("failed to open hs2.e: %w", err)
	}
	seed, err := openBox(s, boatEphemeral, i.ephemeral)
	if err != nil {
		return nil, fmt.Errorf("failed to open hs2.s: %w", err)
	}
	toBoat, toApp, err := deriveKeys(seed, i.ephemeral.Public, boatEphemeral, i.static.Public, i.boat)
	if err != nil {
		return nil, err
	}
	return newSession(toBoat, toApp)
}

// Respond is the boat's side: it handles the value of hs1 from an app with a known static
// key, and returns the values for hs2. It fails with [ErrBox] if another app sent it.
func Respond(random io.Reader, static KeyPair, app PublicKey, hs1 string) (e, s string, session *Session, err error) {
	appEphemeral, err := openBox(hs1, app, static)
	if err != nil {
		return "", "", nil, fmt.Errorf("failed to open hs1.e: %w", err)
	}
	ephemeral, err := GenerateKeyPair(random)
	if err != nil {
		return "", "", nil, err
	}
	var seed [32]byte
	if _, err := io.ReadFull(random, seed[:]); err != nil {
		return "", "", nil, fmt.Errorf("failed to draw a seed: %w", err)
	}
	if e, err = sealBox(random, ephemeral.Public[:], app, static); err != nil {
		return "", "", nil, err
	}
	if s, err = sealBox(random, seed[:], appEphemeral, ephemeral); err != nil {
		return "", "", nil, err
	}
	toBoat, toApp, err := deriveKeys(seed, appEphemeral, ephemeral.Public, app, static.Public)
	if err != nil {
		return "", "", nil, err
	}
	session, err = newSession(toApp, toBoat)
	return e, s, session, err
}

// deriveKeys derives the keys of a session from its seed. The salt binds them to the four
// public keys of the handshake.
func deriveKeys(seed [32]byte, appEphemeral, boatEphemeral, app, boat PublicKey) (toBoat, toApp []byte, err error) {
	var transcript []byte
	for _, key := range []PublicKey{appEphemeral, boatEphemeral, app, boat} {
		transcript = append(transcript, key[:]...)
	}
	salt := blake2b.Sum256(transcript)
	if toBoat, err = hkdf.Key(sha256.New, seed[:], salt[:], infoToBoat, 32); err != nil {
		return nil, nil, fmt.Errorf("failed to derive keys: %w", err)
	}
	if toApp, err = hkdf.Key(sha256.New, seed[:], salt[:], infoToApp, 32); err != nil {
		return nil, nil, fmt.Errorf("failed to derive keys: %w", err)
	}
	return toBoat, toApp, nil
}
