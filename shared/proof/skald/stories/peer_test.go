package stories

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gobwas/ws"
	"google.golang.org/protobuf/encoding/prototext"
	"google.golang.org/protobuf/proto"

	"blindpost/shared/dialect/skald"
	"blindpost/shared/dialect/skald/skaldpb"
	"blindpost/shared/gateway"
	"blindpost/shared/proof/wire"
)

// How a peer behaves.
const (
	alive    = iota // reads, and answers pings and closes
	deaf            // reads, and answers nothing
	vanished        // the network is gone: what is sent to it is swallowed
)

// peer is one end of one connection. It reads all the time; what it has read
// waits for the story to ask.
type peer struct {
	w     *world
	name  string
	nc    net.Conn
	br    *bufio.Reader
	write chan struct{} // held while writing; a mutex would stop the clock of the bubble
	nonce []byte
	mode  atomic.Int32
	done  chan struct{} // closed when it has stopped reading

	mu     sync.Mutex
	frames []arrival
	pings  []time.Time // those without payload: keepalive
	over   *ending
}

type arrival struct {
	frame *skaldpb.RelayFrame
	at    time.Time
}

// ending is how a connection ended; the code is 0 without a close frame.
type ending struct {
	code   gateway.CloseCode
	reason string
	at     time.Time
}

// line says how a peer connects.
type line struct {
	from   string      // the address of the client as the proxy tells; "" is a new one
	direct string      // the address of the transport; "" is the proxy
	pace   pace        // how fast it reads
	mode   int32       // how the peer behaves, from the start
	header http.Header // further headers
}

// pace is a reading speed: bytes at a time, and the pause after them.
type pace struct {
	bytes int
	pause time.Duration
}

// request dials and asks for an upgrade.
func (w *world) request(l line) (net.Conn, *bufio.Reader, *http.Response) {
	w.T.Helper()
	if l.from == "" {
		l.from = w.NewIP()
	}
	if l.direct == "" {
		l.direct = "127.0.0.1"
	}
	nc, ok := w.Pipes.Dial(l.direct)
	if !ok {
		w.T.Fatal("nobody listens")
	}
	h := http.Header{
		"Connection": {"Upgrade"}, "Upgrade": {"websocket"}, "Sec-Websocket-Version": {"13"},
		"Sec-Websocket-Key": {"dGhlIHNhbXBsZSBub25jZQ=="}, "X-Forwarded-Proto": {"https"}, "X-Forwarded-For": {l.from},
	}
	for k, v := range l.header {
		h[k] = v
	}
	req, err := http.NewRequest(http.MethodGet, "http://relay"+skald.Path, nil)
	if err != nil {
		w.T.Fatal(err)
	}
	req.Header = h
	if err := req.Write(nc); err != nil {
		w.T.Fatalf("failed to ask for an upgrade: %v", err)
	}
	var r io.Reader = nc
	if l.pace.bytes > 0 {
		r = &slowReader{nc, l.pace, l.pace.bytes}
	}
	br := bufio.NewReader(r)
	res, err := http.ReadResponse(br, req)
	if err != nil {
		w.T.Fatalf("failed to upgrade: %v", err)
	}
	return nc, br, res
}

// slowReader reads at a pace.
type slowReader struct {
	net.Conn
	pace pace
	left int
}

func (r *slowReader) Read(b []byte) (int, error) {
	if r.left == 0 {
		time.Sleep(r.pace.pause)
		r.left = r.pace.bytes
	}
	n, err := r.Conn.Read(b[:min(len(b), r.left)])
	r.left -= n
	return n, err
}

// dial connects and takes the challenge.
func (w *world) dial(name string, l line) *peer {
	w.T.Helper()
	nc, br, res := w.request(l)
	if res.StatusCode != http.StatusSwitchingProtocols {
		w.T.Fatalf("%s was refused with %s", name, res.Status)
	}
	p := &peer{w: w, name: name, nc: nc, br: br, write: make(chan struct{}, 1), done: make(chan struct{})}
	p.mode.Store(l.mode)
	w.Peers = append(w.Peers, p)
	go p.read()
	c := p.want("challenge").GetChallenge()
	if c == nil || len(c.GetNonce()) != 32 {
		w.T.Fatalf("%s got no challenge first", name)
	}
	p.nonce = c.GetNonce()
	return p
}

// refused dials and expects an HTTP status instead of a connection.
func (w *world) refused(status int, l line) *http.Response {
	w.T.Helper()
	nc, _, res := w.request(l)
	defer nc.Close()
	if res.StatusCode != status {
		w.T.Fatalf("upgrade was answered with %s, want %d", res.Status, status)
	}
	return res
}

func (p *peer) read() {
	defer close(p.done)
	for {
		f, err := wire.ReadServer(p.br)
		if err != nil {
			p.ended(ending{})
			return
		}
		h, payload := f.Header, f.Payload
		switch mode := p.mode.Load(); {
		case mode == vanished, h.OpCode == ws.OpPong:
		case h.OpCode == ws.OpPing:
			if len(payload) == 0 {
				p.mu.Lock()
				p.pings = append(p.pings, time.Now())
				p.mu.Unlock()
			}
			if mode == alive {
				p.control(ws.OpPong, payload)
			}
		case h.OpCode == ws.OpClose:
			e := ending{code: gateway.CloseNoStatus}
			if len(payload) >= 2 {
				e = ending{code: gateway.CloseCode(binary.BigEndian.Uint16(payload)), reason: string(payload[2:])}
			}
			p.ended(e)
			if mode == alive {
				p.control(ws.OpClose, payload)
				_ = p.nc.Close()
				return
			}
		default:
			f := new(skaldpb.RelayFrame)
			if h.OpCode != ws.OpBinary || proto.Unmarshal(payload, f) != nil || f.GetFrame() == nil {
				p.w.T.Errorf("%s got a message that is no frame: opcode %#x, %d bytes", p.name, h.OpCode, len(payload))
			}
			p.mu.Lock()
			p.frames = append(p.frames, arrival{f, time.Now()})
			p.mu.Unlock()
		}
	}
}

// ended notes the first sign that the connection is over.
func (p *peer) ended(e ending) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.over == nil {
		e.at = time.Now()
		p.over = &e
	}
}

func (p *peer) control(op ws.OpCode, payload []byte) { _ = p.put(ws.NewFrame(op, true, payload)) }

// put writes one WebSocket frame.
func (p *peer) put(f ws.Frame) error {
	b, err := ws.CompileFrame(ws.MaskFrameInPlace(f))
	if err != nil {
		return err
	}
	p.write <- struct{}{}
	defer func() { <-p.write }()
	_, err = p.nc.Write(b)
	return err
}

// send sends a frame and waits for what comes of it.
func (p *peer) send(f *skaldpb.RelayFrame) {
	p.w.T.Helper()
	if err := p.trySend(f); err != nil {
		p.w.T.Fatalf("%s failed to send %s: %v", p.name, describe(f), err)
	}
	p.w.Settle()
}

// trySend sends a frame to a relay that may hang up meanwhile.
func (p *peer) trySend(f *skaldpb.RelayFrame) error {
	b, err := proto.Marshal(f)
	if err != nil {
		return err
	}
	return p.put(ws.NewBinaryFrame(b))
}

// answer sends an Auth.
func (p *peer) answer(auth func(nonce []byte) (*skaldpb.RelayFrame, error)) {
	p.w.T.Helper()
	f, err := auth(p.nonce)
	if err != nil {
		p.w.T.Fatal(err)
	}
	p.send(f)
}

// vanish makes the network of the peer disappear: nobody is told.
func (p *peer) vanish() { p.mode.Store(vanished) }

// Done implements bubble.Peer.
func (p *peer) Done() <-chan struct{} { return p.done }

// drop breaks the transport.
func (p *peer) Drop() { _ = p.nc.Close() }

// close says goodbye and waits until that is done.
func (p *peer) close() {
	p.control(ws.OpClose, ws.NewCloseFrameBody(ws.StatusNormalClosure, ""))
	p.w.Settle()
}

// next takes the next frame that has come; nil for none.
func (p *peer) next() *arrival {
	p.w.Settle()
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.frames) == 0 {
		return nil
	}
	a := p.frames[0]
	p.frames = p.frames[1:]
	return &a
}

// want takes the next frame, which must be there.
func (p *peer) want(what string) *skaldpb.RelayFrame {
	p.w.T.Helper()
	a := p.next()
	if a == nil {
		p.w.T.Fatalf("%s got nothing, want %s; %s", p.name, what, p.fate())
	}
	return a.frame
}

func (p *peer) wantNothing() {
	p.w.T.Helper()
	if a := p.next(); a != nil {
		p.w.T.Fatalf("%s got %s, want nothing", p.name, describe(a.frame))
	}
	if p.end() != nil {
		p.w.T.Fatalf("%s: %s", p.name, p.fate())
	}
}

func (p *peer) end() *ending {
	p.w.Settle()
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.over
}

func (p *peer) fate() string {
	e := p.end()
	if e == nil {
		return "the connection is open"
	}
	return fmt.Sprintf("the connection ended %v ago with %d %q", time.Since(e.at), e.code, e.reason)
}

// wantEnd expects that nothing more has come and the connection is over.
func (p *peer) wantEnd(code gateway.CloseCode) *ending {
	p.w.T.Helper()
	if a := p.next(); a != nil {
		p.w.T.Fatalf("%s got %s, want the end", p.name, describe(a.frame))
	}
	e := p.end()
	if e == nil || e.code != code {
		p.w.T.Fatalf("%s: %s, want code %d", p.name, p.fate(), code)
	}
	return e
}

// wantRefusal expects an AuthError and the end.
func (p *peer) wantRefusal(code string) {
	p.w.T.Helper()
	if f := p.want("an AuthError"); f.GetAuthError().GetCode() != code {
		p.w.T.Fatalf("%s got %s, want AuthError %s", p.name, describe(f), code)
	}
	p.wantEnd(gateway.ClosePolicy)
}

func (p *peer) wantError(code string) {
	p.w.T.Helper()
	if f := p.want("an Error"); f.GetError().GetCode() != code {
		p.w.T.Fatalf("%s got %s, want Error %s", p.name, describe(f), code)
	}
}

// describe prints a frame, shortened.
func describe(f *skaldpb.RelayFrame) string {
	s := prototext.MarshalOptions{}.Format(f)
	if len(s) > 200 {
		s = s[:200] + "..."
	}
	return s
}
