package bench

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"time"

	"github.com/gobwas/ws"
)

const (
	// readStart is the read buffer of a new connection, enough for the answer to
	// an upgrade; readMost that of one with much to read: one TLS record.
	readStart = 1 << 10
	readMost  = 16 << 10
	// frameMost is the largest frame that is taken, in bytes.
	frameMost = 1 << 20
	// callTime bounds what is not measured: a step of a handshake, a control
	// frame and its answer.
	callTime = 20 * time.Second
)

// conn is a WebSocket connection to a relay. One goroutine reads; any may write,
// as each write is one call of the transport, which keeps calls apart.
type conn struct {
	nc net.Conn

	// owned by the reader
	buf  []byte
	r, w int // buf[r:w] is not handled yet
}

// closeError says that the relay has closed the connection.
type closeError struct {
	code   uint16
	reason string
}

func (e *closeError) Error() string {
	return fmt.Sprintf("relay closed the connection: code %d: %.125q", e.code, e.reason)
}

// appendFrame appends one masked frame with a copy of payload.
func appendFrame(dst []byte, op ws.OpCode, payload []byte) []byte {
	dst, mask := appendHeader(dst, op, len(payload))
	at := len(dst)
	dst = append(dst, payload...)
	ws.Cipher(dst[at:], mask, 0)
	return dst
}

// appendHeader appends what comes before the n bytes of a payload, which are to be
// masked with mask.
func appendHeader(dst []byte, op ws.OpCode, n int) (out []byte, mask [4]byte) {
	dst = append(dst, 0x80|byte(op))
	switch {
	case n < 126:
		dst = append(dst, 0x80|byte(n))
	case n < 1<<16:
		dst = append(dst, 0x80|126)
		dst = binary.BigEndian.AppendUint16(dst, uint16(n))
	default:
		dst = append(dst, 0x80|127)
		dst = binary.BigEndian.AppendUint64(dst, uint64(n))
	}
	binary.LittleEndian.PutUint32(mask[:], rand.Uint32())
	return append(dst, mask[:]...), mask
}

// serverFrame splits off the first frame of b. ok is false if it is not all
// there yet.
func serverFrame(b []byte) (op ws.OpCode, payload []byte, size int, ok bool, err error) {
	if len(b) < 2 {
		return 0, nil, 0, false, nil
	}
	op, length, head := ws.OpCode(b[0]&0x0f), uint64(b[1]&0x7f), 2
	switch {
	case b[0]&0xf0 != 0x80:
		return 0, nil, 0, false, errors.New("relay sent a fragment or an extension")
	case b[1]&0x80 != 0:
		return 0, nil, 0, false, errors.New("relay sent a masked frame")
	}
	switch length {
	case 126:
		head = 4
		if len(b) < head {
			return 0, nil, 0, false, nil
		}
		length = uint64(binary.BigEndian.Uint16(b[2:]))
	case 127:
		head = 10
		if len(b) < head {
			return 0, nil, 0, false, nil
		}
		length = binary.BigEndian.Uint64(b[2:])
	}
	if length > frameMost {
		return 0, nil, 0, false, fmt.Errorf("relay sent a frame of %d bytes", length)
	}
	size = head + int(length)
	if len(b) < size {
		return 0, nil, size, false, nil
	}
	return op, b[head:size], size, true, nil
}

// read returns the next frame: a message, or a ping that it has answered.
// The payload is valid until the next read.
func (c *conn) read() (ws.OpCode, []byte, error) {
	for {
		op, payload, size, ok, err := serverFrame(c.buf[c.r:c.w])
		if err != nil {
			return 0, nil, err
		}
		if !ok {
			if err := c.more(size); err != nil {
				return 0, nil, err
			}
			continue
		}
		c.r += size
		switch op {
		case ws.OpBinary, ws.OpText:
			return op, payload, nil
		case ws.OpPing:
			if err := c.write(appendFrame(nil, ws.OpPong, payload)); err != nil {
				return 0, nil, err
			}
			return op, payload, nil
		case ws.OpPong:
		case ws.OpClose:
			closed := &closeError{code: 1005}
			if len(payload) >= 2 {
				closed.code, closed.reason = binary.BigEndian.Uint16(payload), string(payload[2:])
			}
			return 0, nil, closed
		default:
			return 0, nil, fmt.Errorf("relay sent a frame with opcode %d", op)
		}
	}
}

// message returns the next message. It is valid until the next read.
func (c *conn) message() (text bool, payload []byte, err error) {
	for {
		op, payload, err := c.read()
		if err != nil || op != ws.OpPing {
			return op == ws.OpText, payload, err
		}
	}
}

// next returns the next message, which must be binary.
func (c *conn) next() ([]byte, error) {
	text, payload, err := c.message()
	if err == nil && text {
		err = errors.New("relay sent a text message")
	}
	return payload, err
}

// pending reports whether the next frame has been read already.
func (c *conn) pending() bool {
	_, _, _, ok, err := serverFrame(c.buf[c.r:c.w])
	return ok || err != nil
}

// more reads once, into a buffer that has room for size bytes in one piece. It
// grows the buffer of a connection that has much to read.
func (c *conn) more(size int) error {
	if c.r == c.w {
		c.r, c.w = 0, 0
	}
	if c.w == len(c.buf) || size > len(c.buf)-c.r {
		want := len(c.buf)
		if c.r == 0 && c.w == len(c.buf) {
			want = max(want, min(2*len(c.buf), readMost))
		}
		for want < size {
			want *= 2
		}
		buf := c.buf
		if want > len(buf) {
			buf = make([]byte, want)
		}
		c.w = copy(buf, c.buf[c.r:c.w])
		c.r, c.buf = 0, buf
	}
	n, err := c.nc.Read(c.buf[c.w:])
	c.w += n
	if n > 0 && c.w == len(c.buf) && len(c.buf) < readMost {
		buf := make([]byte, min(2*len(c.buf), readMost))
		c.w = copy(buf, c.buf[c.r:c.w])
		c.r, c.buf = 0, buf
	}
	if n > 0 {
		return nil // an error comes again
	}
	if err == nil {
		err = errors.New("transport read nothing")
	}
	return fmt.Errorf("failed to read: %w", err)
}

// write sends whole frames.
func (c *conn) write(frames []byte) error {
	if _, err := c.nc.Write(frames); err != nil {
		return fmt.Errorf("failed to write: %w", err)
	}
	return nil
}

// within bounds all reads and writes from now on; 0 lifts the bound.
func (c *conn) within(d time.Duration) {
	var t time.Time
	if d > 0 {
		t = time.Now().Add(d)
	}
	_ = c.nc.SetDeadline(t) // what follows fails if this did
}

// close says goodbye and waits for the relay to end the connection, as a client
// should: TCP then leaves no port behind on this side.
func (c *conn) close() {
	c.within(callTime)
	if c.write(appendFrame(nil, ws.OpClose, []byte{0x03, 0xe8})) == nil {
		for {
			if _, _, err := c.read(); err != nil {
				break
			}
		}
		for c.r, c.w = 0, 0; c.more(0) == nil; c.r, c.w = 0, 0 {
		}
	}
	_ = c.nc.Close()
}

// abort ends the connection at once.
func (c *conn) abort() {
	_ = rawConn(c.nc).Close()
}
