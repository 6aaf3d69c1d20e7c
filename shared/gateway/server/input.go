package server

import (
	"time"

	"github.com/gobwas/ws"
)

const (
	// readBlock is the buffer of a connection with traffic.
	readBlock = 16 << 10
	// idleBytes is the buffer of an idle connection. It is part of the connection's
	// struct, and large enough for a pong that confirms (6 bytes of header, 8 of
	// payload). A longer message costs a second read when it comes alone: that was 5 %
	// of the CPU time of BenchmarkEchoRoundTrip, and nothing for pipelined messages.
	idleBytes = 16
)

// input holds the bytes that a read goroutine has read and not yet handled, and the
// fragments of the current message.
type input struct {
	buf    []byte // inline, or the pooled block's bytes
	r, w   int    // buf[r:w] is not handled yet
	inline [idleBytes]byte
	pool   *block // nil while idle

	last time.Duration // when the last bytes came

	limit      int64     // of one message
	op         ws.OpCode // of the current message
	fragmented bool      // more fragments are to come
	message    *block    // the fragments so far
}

func (in *input) bytes() []byte { return in.buf[in.r:in.w] }

// releaseBuffer gives the pooled buffer back, which must be empty.
func (in *input) releaseBuffer() {
	if in.pool != nil {
		in.pool.release()
		in.pool = nil
	}
	in.buf, in.r, in.w = in.inline[:], 0, 0
}

// release gives everything back.
func (in *input) release() {
	in.dropMessage()
	in.releaseBuffer()
}

// put adds bytes that were read elsewhere.
func (in *input) put(b []byte) {
	if len(b) == 0 {
		return
	}
	in.makeRoom(len(b))
	for len(in.buf)-in.w < len(b) {
		in.grow(len(in.buf) * 2)
	}
	in.w += copy(in.buf[in.w:], b)
}

// makeRoom makes buf[w:] not empty, and buf[r:] long enough for need if that is
// possible without doubling the buffer more than once.
func (in *input) makeRoom(need int) {
	if len(in.buf)-in.r >= need && in.w < len(in.buf) {
		return
	}
	if in.r > 0 {
		in.w = copy(in.buf, in.buf[in.r:in.w])
		in.r = 0
	}
	switch {
	case need <= len(in.buf):
	case in.pool == nil:
		in.grow(readBlock)
	case in.w == len(in.buf):
		in.grow(min(need, 2*len(in.buf)))
	}
}

// grow moves to a pooled buffer of at least n bytes.
func (in *input) grow(n int) {
	b := takeBlock(max(n, readBlock))
	whole := b.b[:cap(b.b)]
	in.w = copy(whole, in.bytes())
	in.r = 0
	if in.pool != nil {
		in.pool.release()
	}
	in.pool, in.buf = b, whole
}

func (in *input) messageLen() int64 {
	if in.message == nil {
		return 0
	}
	return int64(len(in.message.b))
}

func (in *input) dropMessage() {
	if in.message != nil {
		in.message.release()
		in.message = nil
	}
}
