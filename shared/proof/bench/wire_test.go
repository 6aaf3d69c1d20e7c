package bench

import (
	"bytes"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"net"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/gobwas/ws"
	"google.golang.org/protobuf/proto"

	skaldclient "blindpost/shared/client/skald"
	"blindpost/shared/dialect/skald/skaldpb"
	"blindpost/shared/proof/wire"
)

// What we write is read by an implementation that is not ours.
func TestClientFramesAreWellFormed(t *testing.T) {
	masks := map[[4]byte]bool{}
	for _, n := range []int{0, 1, 125, 126, 127, 65535, 65536, 100_000} {
		payload := bytes.Repeat([]byte{0xa5, 1, 2}, n/3+1)[:n]
		r := bytes.NewReader(appendFrame(appendFrame(nil, ws.OpPong, nil), ws.OpBinary, payload))
		if f, err := wire.Read(r); err != nil || f.Header.OpCode != ws.OpPong || !f.Header.Masked {
			t.Fatalf("%d bytes: the frame before: %+v, %v", n, f.Header, err)
		}
		f, err := wire.Read(r)
		if err != nil {
			t.Fatalf("%d bytes: %v", n, err)
		}
		masks[f.Header.Mask] = true
		if !f.Header.Fin || f.Header.OpCode != ws.OpBinary || !bytes.Equal(f.Payload, payload) {
			t.Errorf("%d bytes: read back %+v", n, f.Header)
		}
		if r.Len() != 0 {
			t.Errorf("%d bytes: %d bytes are left", n, r.Len())
		}
	}
	if len(masks) < 7 {
		t.Errorf("8 frames have %d masking keys", len(masks))
	}
}

// readerConn reads from r and keeps what is written.
type readerConn struct {
	net.Conn
	r       interface{ Read([]byte) (int, error) }
	written bytes.Buffer
}

func (c *readerConn) Read(p []byte) (int, error)  { return c.r.Read(p) }
func (c *readerConn) Write(p []byte) (int, error) { return c.written.Write(p) }

func serverBytes(t *testing.T, frames ...ws.Frame) []byte {
	t.Helper()
	var b bytes.Buffer
	for _, f := range frames {
		if err := ws.WriteFrame(&b, f); err != nil {
			t.Fatal(err)
		}
	}
	return b.Bytes()
}

func TestReadTakesFramesHoweverTheyAreCut(t *testing.T) {
	var frames []ws.Frame
	var want [][]byte
	for _, n := range []int{0, 1, 125, 126, 1000, readMost, 70_000, 3} {
		payload := make([]byte, n)
		if _, err := rand.Read(payload); err != nil {
			t.Fatal(err)
		}
		frames = append(frames, ws.NewBinaryFrame(payload))
		want = append(want, payload)
	}
	data := serverBytes(t, frames...)
	for name, r := range map[string]interface{ Read([]byte) (int, error) }{
		"at once":      bytes.NewReader(data),
		"byte by byte": iotest.OneByteReader(bytes.NewReader(data)),
		"halves":       iotest.HalfReader(bytes.NewReader(data)),
	} {
		c := &conn{nc: &readerConn{r: r}, buf: make([]byte, readStart)}
		for i, w := range want {
			got, err := c.next()
			if err != nil {
				t.Fatalf("%s: frame %d: %v", name, i, err)
			}
			if !bytes.Equal(got, w) {
				t.Fatalf("%s: frame %d is not what was sent", name, i)
			}
		}
		if _, err := c.next(); err == nil {
			t.Errorf("%s: a frame after the last", name)
		}
	}
}

func TestReadAnswersPings(t *testing.T) {
	nc := &readerConn{r: bytes.NewReader(serverBytes(t,
		ws.NewPingFrame([]byte("12345678")), ws.NewPongFrame(nil), ws.NewBinaryFrame([]byte("x"))))}
	c := &conn{nc: nc, buf: make([]byte, readStart)}
	if got, err := c.next(); err != nil || string(got) != "x" {
		t.Fatalf("got %q, %v", got, err)
	}
	f, err := wire.Read(&nc.written)
	if err != nil {
		t.Fatal(err)
	}
	if f.Header.OpCode != ws.OpPong || string(f.Payload) != "12345678" || nc.written.Len() != 0 {
		t.Errorf("answered with %+v %q and %d more bytes", f.Header, f.Payload, nc.written.Len())
	}
}

func TestReadRefuses(t *testing.T) {
	huge := []byte{0x82, 127, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff}
	for name, c := range map[string]struct {
		data []byte
		want string
	}{
		"a close frame":              {serverBytes(t, ws.NewCloseFrame(ws.NewCloseFrameBody(4001, "newer"))), `code 4001: "newer"`},
		"a close frame with no code": {serverBytes(t, ws.NewCloseFrame(nil)), "code 1005"},
		"text":                       {serverBytes(t, ws.NewTextFrame([]byte("{}"))), "a text message"},
		"a masked frame":             {appendFrame(nil, ws.OpBinary, []byte("x")), "masked"},
		"a fragment":                 {[]byte{0x02, 0}, "fragment"},
		"a frame without end":        {huge, "18446744073709551615 bytes"},
		"half a frame":               {[]byte{0x82, 5, 'x'}, "EOF"},
	} {
		t.Run(name, func(t *testing.T) {
			conn := &conn{nc: &readerConn{r: bytes.NewReader(c.data)}, buf: make([]byte, readStart)}
			if _, err := conn.next(); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}

func TestPendingSeesWholeFramesOnly(t *testing.T) {
	data := serverBytes(t, ws.NewBinaryFrame([]byte("one")), ws.NewBinaryFrame([]byte("two")))
	nc := &readerConn{r: bytes.NewReader(data[:len(data)-1])}
	c := &conn{nc: nc, buf: make([]byte, readStart)}
	if _, err := c.next(); err != nil {
		t.Fatal(err)
	}
	if c.pending() {
		t.Error("half a frame is pending")
	}
	nc.r = bytes.NewReader(data[len(data)-1:])
	if got, err := c.next(); err != nil || string(got) != "two" {
		t.Errorf("got %q, %v", got, err)
	}
}

func TestCheckAnswer(t *testing.T) {
	const key = "dGhlIHNhbXBsZSBub25jZQ==" // of RFC 6455, with its answer
	const accept = "s3pPLMBiTxaQ9kYGzzhZRbK+xOo="
	for _, c := range []struct {
		name, head, want string
	}{
		{"as it should be", "HTTP/1.1 101 Switching Protocols\r\nsec-websocket-accept: " + accept, ""},
		{"another status", "HTTP/1.1 429 Too Many Requests\r\nSec-WebSocket-Accept: " + accept, "429"},
		{"another key", "HTTP/1.1 101 Switching Protocols\r\nSec-WebSocket-Accept: c29tZWJvZHkgZWxzZQ==", "someone else"},
		{"no key", "HTTP/1.1 101 Switching Protocols", "someone else"},
	} {
		err := checkAnswer([]byte(c.head), key)
		if (err == nil) != (c.want == "") || (err != nil && !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: got %v, want %q", c.name, err, c.want)
		}
	}
}

func newTestLetter(t *testing.T, size int) (*letter, skaldclient.PublicKey) {
	t.Helper()
	id, err := skaldclient.GenerateIdentity(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	l, err := newLetter(id.PublicKey(), size, true, skaldclient.AgentToClient)
	if err != nil {
		t.Fatal(err)
	}
	return l, id.PublicKey()
}

func unmask(t *testing.T, frame []byte) []byte {
	t.Helper()
	f, err := wire.Read(bytes.NewReader(frame))
	if err != nil {
		t.Fatal(err)
	}
	return f.Payload
}

// Letters are what the codec of the protocol reads, and what we read back.
func TestLettersAreMessages(t *testing.T) {
	l, to := newTestLetter(t, 300)
	r := reader{from: to, size: 300} // nobody has changed "to" to "from"
	for i := uint64(1); i <= 3; i++ {
		b := unmask(t, l.append(nil, time.Duration(i)*time.Millisecond))
		f, err := decode(b)
		if err != nil {
			t.Fatal(err)
		}
		m := f.GetMessage()
		direction, counter, err := skaldclient.ParseNonce(m.GetNonce())
		if err != nil || direction != skaldclient.AgentToClient || counter != i || !m.GetLive() ||
			!bytes.Equal(m.GetPeer(), to[:]) || binary.BigEndian.Uint64(m.GetCiphertext()) != i || len(m.GetCiphertext()) != 300 {
			t.Fatalf("message %d: direction %d, counter %d, live %v, %d bytes, %v", i, direction, counter, m.GetLive(), len(m.GetCiphertext()), err)
		}
		got, ok := parseMessage(b)
		if !ok || got.seq() != i || got.due() != time.Duration(i)*time.Millisecond {
			t.Fatalf("message %d: read back as %d, %v, %v", i, got.seq(), got.due(), ok)
		}
		if err := r.take(got); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := newLetter(to, stampSize-1, true, skaldclient.AgentToClient); err == nil {
		t.Error("a message has no room for its stamp and was made")
	}
}

func TestReaderNoticesWhatGoesWrong(t *testing.T) {
	l, to := newTestLetter(t, 64)
	take := func(r *reader, frame []byte, change func(message) message) error {
		m, ok := parseMessage(unmask(t, frame))
		if !ok {
			t.Fatal("no message")
		}
		return r.take(change(m))
	}
	same := func(m message) message { return m }
	one, two, three := l.append(nil, 0), l.append(nil, 0), l.append(nil, 0)
	for _, c := range []struct {
		name   string
		frames [][]byte
		change func(message) message
		from   skaldclient.PublicKey
		size   int
		want   string
	}{
		{"all is well", [][]byte{one, two, three}, same, to, 64, ""},
		{"lost", [][]byte{one, three}, same, to, 64, "message 3 has come after message 1"},
		{"twice", [][]byte{one, one}, same, to, 64, "message 1 has come after message 1"},
		{"overtaken", [][]byte{two, one}, same, to, 64, "message 2 has come after message 0"},
		{"another sender", [][]byte{one}, same, skaldclient.PublicKey{1}, 64, "another sender"},
		{"cut", [][]byte{one}, same, to, 65, "64 bytes instead of 65"},
		{"nonce", [][]byte{one}, func(m message) message { m.nonce = make([]byte, 12); return m }, to, 64, "another nonce"},
	} {
		r := &reader{from: c.from, size: c.size}
		var err error
		for _, f := range c.frames {
			if err = take(r, append([]byte(nil), f...), c.change); err != nil {
				break
			}
		}
		if (err == nil) != (c.want == "") || (err != nil && !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: got %v, want %q", c.name, err, c.want)
		}
	}
}

func TestParseMessageRefusesOthers(t *testing.T) {
	l, _ := newTestLetter(t, 64)
	whole := unmask(t, l.append(nil, 0))
	if _, ok := parseMessage(whole); !ok {
		t.Fatal("a message is refused")
	}
	for n := range whole {
		if _, ok := parseMessage(whole[:n]); ok {
			t.Errorf("the first %d bytes of a message pass for one", n)
		}
	}
	if _, ok := parseMessage(append(append([]byte(nil), whole...), 0)); ok {
		t.Error("a message with something behind it passes for one")
	}
}

func TestDecodeMakesErrorsOfErrorFrames(t *testing.T) {
	for _, c := range []struct {
		f    *skaldpb.RelayFrame
		code string
		auth bool
	}{
		{&skaldpb.RelayFrame{Frame: &skaldpb.RelayFrame_Error{Error: &skaldpb.Error{Code: "queue_full"}}}, "queue_full", false},
		{&skaldpb.RelayFrame{Frame: &skaldpb.RelayFrame_AuthError{AuthError: &skaldpb.AuthError{Code: "unauthorized"}}}, "unauthorized", true},
	} {
		b, err := proto.Marshal(c.f)
		if err != nil {
			t.Fatal(err)
		}
		_, err = decode(b)
		var refused *skaldclient.RelayError
		if !errors.As(err, &refused) || refused.Code != c.code || refused.Auth != c.auth {
			t.Errorf("%s: got %v", c.code, err)
		}
	}
	if _, err := decode([]byte{0xff}); err == nil {
		t.Error("rubbish passes for a frame")
	}
}

func FuzzServerFrame(f *testing.F) {
	f.Add([]byte{0x82, 1, 'x'})
	f.Add([]byte{0x82, 126, 0, 200})
	f.Add([]byte{0x82, 127, 0, 0, 0, 0, 0, 1, 0, 0})
	f.Add([]byte{0x89, 0})
	f.Fuzz(func(t *testing.T, b []byte) {
		op, payload, size, ok, err := serverFrame(b)
		if !ok {
			return
		}
		if err != nil || size > len(b) || len(payload) > size {
			t.Fatalf("frame of %d bytes in %d, %v", size, len(b), err)
		}
		var again bytes.Buffer
		if err := ws.WriteFrame(&again, ws.NewFrame(op, true, payload)); err != nil {
			t.Fatal(err)
		}
		// The header may be longer than it needs to be, not the payload.
		if got, err := wire.Read(&again); err != nil || !bytes.Equal(got.Payload, payload) {
			t.Fatalf("does not come back: %v", err)
		}
		parseMessage(payload)
	})
}
