package chaos

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	mathrand "math/rand/v2"
)

// letter is one message: the n-th from a member to another.
type letter struct {
	from, to uint32
	n        uint32
	live     bool
}

func (l letter) String() string {
	class := "stored"
	if l.live {
		class = "live"
	}
	return fmt.Sprintf("%s message %d from %d to %d", class, l.n, l.from, l.to)
}

// The ciphertext of a letter begins with the canary and a header. All of it
// follows from the header, so that whoever gets it can tell whether a single bit
// has changed; and the canary comes again every canaryEvery bytes, so that
// no longer piece of it can be anywhere without being found.
const (
	canarySize  = 16
	canaryEvery = 64
	headerSize  = 4 + 4 + 4 + 4 + 1
	letterMin   = canarySize + headerSize + 8 // some of what follows from the header
	nonceSize   = 12
	nonceCanary = 8
)

// press prints the letters of one run. Its canaries are in no other.
type press struct {
	body  [canarySize]byte
	nonce [nonceCanary]byte
}

func newPress() *press {
	p := &press{}
	_, _ = rand.Read(p.body[:]) // does not fail
	_, _ = rand.Read(p.nonce[:])
	return p
}

// print makes ciphertext and nonce of a letter; size is that of the ciphertext.
func (p *press) print(l letter, size int) (ciphertext, nonce []byte) {
	var header [headerSize]byte
	binary.BigEndian.PutUint32(header[0:], l.from)
	binary.BigEndian.PutUint32(header[4:], l.to)
	binary.BigEndian.PutUint32(header[8:], l.n)
	binary.BigEndian.PutUint32(header[12:], uint32(size))
	if l.live {
		header[16] = 1
	}
	ciphertext = make([]byte, max(size, letterMin))
	seed := sha256.Sum256(append(p.body[:], header[:]...))
	_, _ = mathrand.NewChaCha8(seed).Read(ciphertext)
	for at := 0; at < len(ciphertext); at += canaryEvery {
		copy(ciphertext[at:], p.body[:])
	}
	copy(ciphertext[canarySize:], header[:])
	nonce = make([]byte, nonceSize)
	copy(nonce, p.nonce[:])
	binary.BigEndian.PutUint32(nonce[nonceCanary:], l.n)
	return ciphertext, nonce
}

// read finds out which letter it is, and whether it is exactly that.
func (p *press) read(ciphertext, nonce []byte) (letter, error) {
	if len(ciphertext) < letterMin || !bytes.HasPrefix(ciphertext, p.body[:]) {
		return letter{}, errors.New("it was not printed here")
	}
	header := ciphertext[canarySize:]
	l := letter{
		from: binary.BigEndian.Uint32(header[0:]),
		to:   binary.BigEndian.Uint32(header[4:]),
		n:    binary.BigEndian.Uint32(header[8:]),
		live: header[16] == 1,
	}
	if size := binary.BigEndian.Uint32(header[12:]); int(size) != len(ciphertext) {
		return l, fmt.Errorf("%v has %d bytes instead of %d", l, len(ciphertext), size)
	}
	wantCiphertext, wantNonce := p.print(l, len(ciphertext))
	if !bytes.Equal(ciphertext, wantCiphertext) {
		return l, fmt.Errorf("%v has another ciphertext than was sent", l)
	}
	if !bytes.Equal(nonce, wantNonce) {
		return l, fmt.Errorf("%v has another nonce than was sent", l)
	}
	return l, nil
}
