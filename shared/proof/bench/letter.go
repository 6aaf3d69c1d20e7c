package bench

import (
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"github.com/gobwas/ws"
	"google.golang.org/protobuf/encoding/protowire"

	skaldclient "blindpost/shared/client/skald"
)

// stampSize is what a message carries at the start of its ciphertext, which is
// random otherwise: its number and when it was due.
const stampSize = 16

// letter makes the messages of one sender to one recipient. They are encoded
// once; from one to the next only their numbers change.
type letter struct {
	frame      []byte // encoded
	nonce      []byte // these three are parts of it
	ciphertext []byte
	seq        uint64 // of the last message
}

// newLetter makes messages whose ciphertext has size bytes.
func newLetter(to skaldclient.PublicKey, size int, live bool, d skaldclient.Direction) (*letter, error) {
	if size < stampSize {
		return nil, fmt.Errorf("a message needs %d bytes at least", stampSize)
	}
	ciphertext := make([]byte, size)
	if _, err := rand.Read(ciphertext); err != nil {
		return nil, fmt.Errorf("failed to draw a message: %w", err)
	}
	frame, err := skaldclient.EncodeMessage(to, skaldclient.Sealed{Nonce: skaldclient.Nonce(d, 0), Ciphertext: ciphertext}, live)
	if err != nil {
		return nil, err
	}
	m, ok := parseMessage(frame)
	if !ok {
		return nil, errors.New("failed to read back an encoded message")
	}
	return &letter{frame: frame, nonce: m.nonce, ciphertext: m.ciphertext}, nil
}

// append appends the next message, as a masked frame.
func (l *letter) append(dst []byte, due time.Duration) []byte {
	l.seq++
	binary.BigEndian.PutUint64(l.nonce[4:], l.seq)
	binary.BigEndian.PutUint64(l.ciphertext, l.seq)
	binary.BigEndian.PutUint64(l.ciphertext[8:], uint64(due))
	return appendFrame(dst, ws.OpBinary, l.frame)
}

// message is a Message frame, as far as we look into it.
type message struct {
	ciphertext, nonce, peer []byte
}

func (m message) seq() uint64        { return binary.BigEndian.Uint64(m.ciphertext) }
func (m message) due() time.Duration { return time.Duration(binary.BigEndian.Uint64(m.ciphertext[8:])) }

// Field numbers of the protocol.
const (
	fieldMessage    = 12
	fieldCiphertext = 1
	fieldNonce      = 2
	fieldPeer       = 3
)

// parseMessage reads a RelayFrame that carries a Message of ours, without
// allocating. It is false for every other frame.
func parseMessage(frame []byte) (m message, ok bool) {
	num, typ, n := protowire.ConsumeTag(frame)
	if n < 0 || num != fieldMessage || typ != protowire.BytesType {
		return m, false
	}
	b, k := protowire.ConsumeBytes(frame[n:])
	if k < 0 || n+k != len(frame) {
		return m, false
	}
	for len(b) > 0 {
		num, typ, n := protowire.ConsumeTag(b)
		if n < 0 {
			return m, false
		}
		b = b[n:]
		if typ != protowire.BytesType {
			if n = protowire.ConsumeFieldValue(num, typ, b); n < 0 {
				return m, false
			}
			b = b[n:]
			continue
		}
		v, n := protowire.ConsumeBytes(b)
		if n < 0 {
			return m, false
		}
		b = b[n:]
		switch num {
		case fieldCiphertext:
			m.ciphertext = v
		case fieldNonce:
			m.nonce = v
		case fieldPeer:
			m.peer = v
		}
	}
	return m, len(m.ciphertext) >= stampSize && len(m.nonce) == skaldclient.NonceSize && len(m.peer) == skaldclient.KeySize
}

// reader checks that the messages of one sender come complete and in order.
type reader struct {
	from skaldclient.PublicKey
	size int
	seq  uint64 // of the last message
}

// take accepts the next message.
func (r *reader) take(m message) error {
	switch {
	case skaldclient.PublicKey(m.peer) != r.from:
		return errors.New("a message names another sender")
	case len(m.ciphertext) != r.size:
		return fmt.Errorf("a message has come with %d bytes instead of %d", len(m.ciphertext), r.size)
	case m.seq() != r.seq+1:
		return fmt.Errorf("message %d has come after message %d", m.seq(), r.seq)
	case binary.BigEndian.Uint64(m.nonce[4:]) != m.seq():
		return fmt.Errorf("message %d has come with another nonce", m.seq())
	}
	r.seq++
	return nil
}
