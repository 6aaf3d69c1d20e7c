package skald

import (
	"crypto/aes"
	"crypto/cipher"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
)

// Direction is the first four bytes of a nonce. It separates the two counters of one key.
type Direction uint32

// The two directions.
const (
	AgentToClient Direction = 1
	ClientToAgent Direction = 2
)

// Sealed is an encrypted message.
type Sealed struct {
	Nonce      [NonceSize]byte
	Ciphertext []byte
}

// Session is the encrypted channel of one agent-client pair, seen from one
// side. It keeps no counters: the caller must never seal twice with one counter.
// It is immutable and safe for concurrent use.
type Session struct {
	aead          cipher.AEAD
	send, receive Direction
	// Additional data: namespace, sender, recipient.
	sendAAD, receiveAAD [3 * KeySize]byte
}

// NewSession derives the session with a peer. role is the side of id.
func NewSession(id *Identity, role Role, peer PublicKey, peerExchange ExchangeKey) (*Session, error) {
	secret, err := id.sharedSecret(peerExchange)
	if err != nil {
		return nil, err
	}
	key, err := derive(secret, sessionSalt, sessionInfo)
	if err != nil {
		return nil, err
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, fmt.Errorf("failed to make cipher: %w", err)
	}
	aead, err := cipher.NewGCM(block)
	if err != nil {
		return nil, fmt.Errorf("failed to make cipher: %w", err)
	}
	s := &Session{aead: aead}
	var ns NamespaceID
	switch role {
	case RoleAgent:
		ns, s.send, s.receive = id.Namespace(), AgentToClient, ClientToAgent
	case RoleClient:
		ns, s.send, s.receive = NamespaceOf(peer), ClientToAgent, AgentToClient
	default:
		return nil, errors.New("failed to make session: no role")
	}
	s.sendAAD = AAD(ns, id.PublicKey(), peer)
	s.receiveAAD = AAD(ns, peer, id.PublicKey())
	return s, nil
}

// Seal frames (see [Frame]) and encrypts plaintext. Counters start at 1.
func (s *Session) Seal(counter uint64, plaintext []byte) (Sealed, error) {
	framed, err := Frame(plaintext)
	if err != nil {
		return Sealed{}, err
	}
	return s.sealFramed(counter, framed)
}

func (s *Session) sealFramed(counter uint64, framed []byte) (Sealed, error) {
	if counter == 0 {
		return Sealed{}, errors.New("failed to seal: counter 0 is not used")
	}
	nonce := Nonce(s.send, counter)
	return Sealed{
		Nonce:      nonce,
		Ciphertext: s.aead.Seal(nil, nonce[:], framed, s.sendAAD[:]),
	}, nil
}

// Open decrypts and unframes a message. The counter is authentic, but the caller must check
// whether it was seen before. [ErrOpen] says that the peer did not seal the message for us;
// [ErrFraming] that the peer sealed invalid content, and then the counter is valid too.
func (s *Session) Open(nonce, ciphertext []byte) (counter uint64, plaintext []byte, err error) {
	direction, counter, err := ParseNonce(nonce)
	if err != nil {
		return 0, nil, fmt.Errorf("%w: %w", ErrOpen, err)
	}
	if direction != s.receive {
		return 0, nil, fmt.Errorf("%w: nonce of the other direction", ErrOpen)
	}
	framed, err := s.aead.Open(nil, nonce, ciphertext, s.receiveAAD[:])
	if err != nil {
		// The cause is always the same error and adds nothing.
		return 0, nil, ErrOpen
	}
	plaintext, err = Unframe(framed)
	return counter, plaintext, err
}

// Nonce makes a nonce.
func Nonce(d Direction, counter uint64) [NonceSize]byte {
	var n [NonceSize]byte
	binary.BigEndian.PutUint32(n[:4], uint32(d))
	binary.BigEndian.PutUint64(n[4:], counter)
	return n
}

// ParseNonce returns the parts of a nonce. It refuses unknown directions and counter 0.
func ParseNonce(nonce []byte) (Direction, uint64, error) {
	if len(nonce) != NonceSize {
		return 0, 0, fmt.Errorf("nonce of %d bytes", len(nonce))
	}
	d := Direction(binary.BigEndian.Uint32(nonce[:4]))
	if d != AgentToClient && d != ClientToAgent {
		return 0, 0, errors.New("nonce of no known direction")
	}
	counter := binary.BigEndian.Uint64(nonce[4:])
	if counter == 0 {
		return 0, 0, errors.New("nonce with counter 0")
	}
	return d, counter, nil
}

// AAD is the additional data of a message: namespace, sender, recipient.
func AAD(ns NamespaceID, from, to PublicKey) [3 * KeySize]byte {
	return [3 * KeySize]byte(slices.Concat(ns[:], from[:], to[:]))
}
