package sim

import (
	"bytes"
	"encoding/binary"
	"fmt"
)

// payloadMark begins every ciphertext, so that a frame, a log record or an error
// that carries one is recognised.
const payloadMark = "SIMULATED-CIPHERTEXT:"

// message is one message that a peer has sent, and what the model knows of it.
type message struct {
	id       int
	from, to *peer
	seq      int // among those of this sender to this recipient, from 1
	live     bool
	sock     *socket // of the sender

	ciphertext []byte
	nonce      []byte

	// begun and ended are the steps at which its first handler began and its
	// last ended; ended is 0 while it is not handled to its end.
	begun, ended int
	attempts     int
	// accepted says that a handler has ended well and without an answer that
	// refuses it.
	accepted bool
	// entries are its places in mailboxes: more than one if a front has delivered
	// the frame again.
	entries  []*entry
	queued   bool // a live one has waited in a mailbox
	received bool
	// lost says that a front without confirmation has taken it for a peer that
	// was no more. That is the limit of such a front, not a fault of the relay.
	lost bool
}

func (m *message) String() string {
	class := "stored"
	if m.live {
		class = "live"
	}
	return fmt.Sprintf("m%d(%s %s>%s #%d)", m.id, class, m.from, m.to, m.seq)
}

// newMessage makes the content: mark, number and filler.
func newMessage(id int, from, to *peer, live bool, size int) *message {
	m := &message{id: id, from: from, to: to, live: live}
	b := append([]byte(payloadMark), binary.BigEndian.AppendUint32(nil, uint32(id))...)
	for i := len(b); i < size; i++ {
		b = append(b, byte(i*7+id))
	}
	m.ciphertext = b
	m.nonce = binary.BigEndian.AppendUint64([]byte("nnce"), uint64(id))
	return m
}

// findMessage looks for a ciphertext within encoded bytes; nil if there is none.
func (s *sim) findMessage(b []byte) *message {
	i := bytes.Index(b, []byte(payloadMark))
	if i < 0 || len(b) < i+len(payloadMark)+4 {
		return nil
	}
	id := int(binary.BigEndian.Uint32(b[i+len(payloadMark):]))
	if id >= len(s.messages) {
		return nil
	}
	return s.messages[id]
}
