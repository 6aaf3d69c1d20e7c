package aelos

import (
	"crypto/cipher"
	"encoding/binary"
	"errors"
	"fmt"

	"golang.org/x/crypto/chacha20poly1305"
)

// Why a payload is refused.
var (
	// ErrReplayed says that the counter is not higher than the last one.
	ErrReplayed = errors.New("counter is not new")
	// ErrForged says that the Poly1305 tag of the frame is wrong.
	ErrForged = errors.New("payload does not open")
	// errCounter says that a counter would be used twice.
	errCounter = errors.New("failed to seal: counter was used before, or there is none left")
)

// Session is one end of a secured connection: two keys, and a counter for each. It is not
// safe for concurrent use, and its frames must be sent in the order in which they were
// sealed.
type Session struct {
	send, receive        cipher.AEAD
	lastSealed, lastSeen uint64
}

func newSession(send, receive []byte) (*Session, error) {
	var s Session
	var err error
	if s.send, err = chacha20poly1305.NewX(send); err != nil {
		return nil, fmt.Errorf("failed to make a session: %w", err)
	}
	if s.receive, err = chacha20poly1305.NewX(receive); err != nil {
		return nil, fmt.Errorf("failed to make a session: %w", err)
	}
	return &s, nil
}

// nonceOf makes a nonce of a counter.
func nonceOf(counter uint64) []byte {
	nonce := make([]byte, chacha20poly1305.NonceSizeX)
	binary.BigEndian.PutUint64(nonce[16:], counter)
	return nonce
}

// associated is the additional data of a frame: its type, but nothing for a snapshot, as in
// proto 1.
func associated(t Type) []byte {
	if t == Snapshot {
		return nil
	}
	return []byte{byte(t)}
}

// Seal appends the sealed plaintext to dst and returns the counter it is sealed
// under.
func (s *Session) Seal(dst []byte, t Type, plaintext []byte) (out []byte, counter uint64, err error) {
	counter = s.lastSealed + 1
	out, err = s.sealAt(dst, t, counter, plaintext)
	return out, counter, err
}

func (s *Session) sealAt(dst []byte, t Type, counter uint64, plaintext []byte) ([]byte, error) {
	if counter <= s.lastSealed {
		return dst, errCounter
	}
	dst = s.send.Seal(dst, nonceOf(counter), plaintext, associated(t))
	s.lastSealed = counter
	return dst, nil
}

// Open appends the plaintext to dst. A frame that does not open does not change the session.
func (s *Session) Open(dst []byte, t Type, counter uint64, ciphertext []byte) ([]byte, error) {
	if counter <= s.lastSeen {
		return dst, ErrReplayed
	}
	out, err := s.receive.Open(dst, nonceOf(counter), ciphertext, associated(t))
	if err != nil {
		return dst, ErrForged
	}
	s.lastSeen = counter
	return out, nil
}

// SealedSize is the sealed size of a plaintext of n bytes.
func SealedSize(n int) int { return n + chacha20poly1305.Overhead }
