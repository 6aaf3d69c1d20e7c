package server

import (
	"errors"
	"io"
	"time"
	"unicode/utf8"

	"github.com/gobwas/ws"

	"blindpost/shared/gateway"
)

// errPeerClosed ends reading: the peer's close frame has come.
var errPeerClosed = errors.New("peer has closed")

// read handles the peer's frames until the connection ends. closed is true when it
// ended with a close frame of the peer.
func (c *conn) read() (closed bool) {
	err := c.readFrames()
	var broken *protocolError
	switch {
	case errors.Is(err, errPeerClosed):
		c.awaitWriter() // our close frame; the cut timer runs
		return true
	case errors.As(err, &broken):
		_ = c.close(broken.code, broken.reason)
		c.discard()
	default:
		c.fail(gateway.CloseAbnormal, "transport broke")
	}
	return false
}

// discard reads until the transport ends: closing with unread input would make TCP
// reset the connection and lose the close frame.
func (c *conn) discard() {
	for {
		c.in.r = c.in.w
		if err := c.fill(readBlock); err != nil {
			return
		}
	}
}

func (c *conn) readFrames() error {
	for {
		if c.in.r == c.in.w {
			c.in.releaseBuffer()
		}
		h, err := c.readHeader()
		if err != nil {
			return err
		}
		if h.OpCode.IsControl() {
			err = c.readControl(h)
		} else {
			err = c.readData(h)
		}
		if err != nil {
			return err
		}
	}
}

func (c *conn) readHeader() (ws.Header, error) {
	for {
		h, n, ok := parseHeader(c.in.bytes())
		if ok {
			c.in.r += n
			return h, checkHeader(h, c.in.fragmented)
		}
		if err := c.fill(n); err != nil {
			return h, err
		}
	}
}

func (c *conn) readControl(h ws.Header) error {
	payload, err := c.payload(h)
	if err != nil {
		return err
	}
	switch h.OpCode {
	case ws.OpPing:
		c.control(ws.OpPong, payload)
	case ws.OpPong:
		c.pong(payload)
	case ws.OpClose:
		code, reason, err := parseClose(payload)
		if err != nil && c.state() == stateOpen {
			return err
		}
		c.peerClosed(code, reason)
		return errPeerClosed
	}
	return nil
}

// readData reads one data frame. It checks the length before it buffers any of it.
func (c *conn) readData(h ws.Header) error {
	in := &c.in
	if h.OpCode != ws.OpContinuation {
		in.op = h.OpCode
	}
	whole := h.Fin && !in.fragmented
	in.fragmented = !h.Fin
	if c.state() != stateOpen {
		in.dropMessage()
		return c.skip(h.Length)
	}
	if before := in.messageLen(); h.Length > in.limit-before {
		in.dropMessage()
		c.oversize(in.op, before, h.Length)
		return c.skip(h.Length)
	}
	if whole {
		data, err := c.payload(h)
		if err != nil {
			return err
		}
		return c.deliver(in.op, data)
	}
	if err := c.collect(h); err != nil || !h.Fin {
		return err
	}
	var data []byte
	if in.message != nil {
		data = in.message.b
	}
	err := c.deliver(in.op, data)
	in.dropMessage()
	return err
}

// payload reads the whole payload and unmasks it in place. It is valid until the next
// read.
func (c *conn) payload(h ws.Header) ([]byte, error) {
	n := int(h.Length)
	for c.in.w-c.in.r < n {
		if err := c.fill(n); err != nil {
			return nil, err
		}
	}
	p := c.in.bytes()[:n]
	ws.Cipher(p, h.Mask, 0)
	c.in.r += n
	return p, nil
}

// collect appends a fragment to the message, as its bytes arrive.
func (c *conn) collect(h ws.Header) error {
	in, done := &c.in, 0
	return c.readPayload(h.Length, func(p []byte) {
		ws.Cipher(p, h.Mask, done%4)
		done += len(p)
		in.message = in.message.withRoom(len(p))
		in.message.b = append(in.message.b, p...)
	})
}

// skip discards n bytes of payload.
func (c *conn) skip(n int64) error { return c.readPayload(n, func([]byte) {}) }

// readPayload reads n bytes and calls use with each part as it arrives.
func (c *conn) readPayload(n int64, use func(p []byte)) error {
	in := &c.in
	for n > 0 {
		if in.r == in.w {
			if err := c.fill(int(min(n, readBlock))); err != nil {
				return err
			}
		}
		p := in.bytes()[:min(n, int64(in.w-in.r))]
		use(p)
		in.r += len(p)
		n -= int64(len(p))
	}
	return nil
}

// deliver gives a message to the handler. If the handler fails, deliver closes the
// connection but does not end the read loop, which waits for the peer's close frame.
func (c *conn) deliver(op ws.OpCode, data []byte) error {
	text := op == ws.OpText
	if text && !utf8.Valid(data) {
		return errText
	}
	c.srv.o.Observer.FrameIn(len(data))
	res, err := c.srv.frame(gateway.FrameEvent{Conn: c.id, Data: data, Text: text, At: c.in.at(c.srv)})
	if err != nil {
		c.handlerFailed("frame", err)
		return nil
	}
	if res.ReadLimit > 0 {
		c.in.limit = res.ReadLimit
	}
	return nil
}

// oversize tells the handler about a message over the limit, then closes.
func (c *conn) oversize(op ws.OpCode, before, length int64) {
	size := before + length
	if size < 0 {
		size = length // the sum overflowed
	}
	_, err := c.srv.frame(gateway.FrameEvent{
		Conn: c.id, Text: op == ws.OpText, Oversize: true, Size: size, At: c.in.at(c.srv),
	})
	if err != nil {
		c.handlerFailed("frame", err)
		return
	}
	_ = c.close(gateway.CloseTooLarge, "message is too large")
}

func (c *conn) handlerFailed(event string, err error) {
	c.srv.failed(event, c, err)
	_ = c.close(gateway.CloseInternal, "internal error")
}

// fill reads once, into a buffer that can hold need bytes in one piece. For a large
// need the buffer grows only as bytes arrive: a header may announce more than the
// peer sends. fill notes for the idle check since when it waits for the peer.
func (c *conn) fill(need int) error {
	c.in.makeRoom(need)
	c.waiting.Store(int64(c.srv.now()))
	n, err := c.nc.Read(c.in.buf[c.in.w:])
	c.waiting.Store(0)
	if n > 0 {
		c.in.w += n
		c.in.last = c.srv.now()
		c.lastRead.Store(int64(c.in.last))
		return nil // the next read returns the error again
	}
	if err == nil {
		return io.ErrNoProgress
	}
	return err
}

func (in *input) at(s *Server) time.Time {
	return s.at(in.last)
}
