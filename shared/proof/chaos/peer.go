package chaos

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gobwas/ws"
	"google.golang.org/protobuf/proto"

	skaldclient "blindpost/shared/client/skald"
	"blindpost/shared/dialect/skald/skaldpb"
)

// peer is one connection of a member. It reads all the time, enters what comes
// into the ledger, answers pings, and after each that asks for a confirmation finds
// out when the relay has taken note.
type peer struct {
	s    *stage
	m    *member
	w    *wire
	line uint32
	// arrived, if set, hears of every letter, in the reader's goroutine.
	arrived func(letter)

	asking sync.Mutex // held while a question is noted and sent, for their order
	mu     sync.Mutex
	asked  []func() // what to do with the next PresenceLists
	calls  []*call
	// Since the beginning of the connection:
	refused int // Errors queue_full
	offline int // PeerOffline

	// Owned by the reader.
	unpinged, pinged []letter
	confirming       bool
	unconfirmed      int64 // letters that have come and are not confirmed

	done chan struct{} // closed when the reader has ended
	err  error         // why it has; readable when done is closed
}

// call waits for one frame.
type call struct {
	is    func(*skaldpb.RelayFrame) bool
	reply chan *skaldpb.RelayFrame
}

// authError is the refusal of an Auth.
type authError struct{ code string }

func (e *authError) Error() string { return "the relay refuses: " + e.code }

var errSilent = errors.New("the relay does not answer")

var lines atomic.Uint32

// handshake takes the challenge and answers it.
func (s *stage) handshake(w *wire, auth skaldclient.AuthFunc) error {
	if err := w.nc.SetReadDeadline(time.Now().Add(patience)); err != nil {
		return fmt.Errorf("failed to begin: %w", err)
	}
	f, err := w.readFrame()
	if err != nil {
		return err
	}
	nonce := f.GetChallenge().GetNonce()
	if len(nonce) != 32 {
		return fmt.Errorf("the first word is no challenge but %T", f.GetFrame())
	}
	s.secrets.Add("a challenge", nonce)
	reply, err := auth(nonce)
	if err != nil {
		return err
	}
	if err := w.send(reply); err != nil {
		return err
	}
	if f, err = w.readFrame(); err != nil {
		return err
	}
	switch {
	case f.GetAuthError() != nil:
		return &authError{f.GetAuthError().GetCode()}
	case f.GetAuthOk() == nil:
		return fmt.Errorf("the answer to Auth is %T", f.GetFrame())
	}
	return w.nc.SetReadDeadline(time.Time{})
}

// readFrame returns the next frame that is no ping.
func (w *wire) readFrame() (*skaldpb.RelayFrame, error) {
	for {
		op, payload, err := w.read()
		switch {
		case err != nil:
			return nil, err
		case op == ws.OpPing:
			if err := w.write(ws.NewPongFrame(payload)); err != nil {
				return nil, err
			}
		case op == ws.OpBinary:
			return decode(payload)
		}
	}
}

func decode(b []byte) (*skaldpb.RelayFrame, error) {
	f := &skaldpb.RelayFrame{}
	if err := proto.Unmarshal(b, f); err != nil {
		return nil, errors.New("the relay sent what is no frame")
	}
	return f, nil
}

func (w *wire) send(f *skaldpb.RelayFrame) error {
	b, err := proto.Marshal(f)
	if err != nil {
		return fmt.Errorf("failed to encode a frame: %w", err)
	}
	return w.write(ws.NewBinaryFrame(b))
}

// admit connects and authenticates, and reads no further.
func (s *stage) admit(ctx context.Context, m *member, v way) (*peer, error) {
	w, err := dialWire(ctx, s.relay.address, s.relay.tls, v)
	if err != nil {
		return nil, err
	}
	p := &peer{s: s, m: m, w: w, line: lines.Add(1), done: make(chan struct{})}
	if err := s.handshake(w, m.auth()); err != nil {
		w.abort()
		return nil, err
	}
	return p, nil
}

// enter connects, authenticates, and reads from then on.
func (s *stage) enter(ctx context.Context, m *member, v way) (*peer, error) {
	p, err := s.admit(ctx, m, v)
	if err != nil {
		return nil, err
	}
	p.listen()
	return p, nil
}

// listen starts the reader.
func (p *peer) listen() {
	go func() {
		defer close(p.done)
		p.err = p.read()
		_ = p.w.nc.Close()
		p.s.unconfirmed.Add(-p.unconfirmed) // it will not be
	}()
}

func (p *peer) read() error {
	for {
		op, payload, err := p.w.read()
		if err != nil {
			return err
		}
		switch op {
		case ws.OpPing:
			err = p.ping(payload)
		case ws.OpBinary:
			err = p.frame(payload)
		}
		if err != nil {
			return err
		}
	}
}

// ping answers. Only the ping with a number asks for a confirmation.
func (p *peer) ping(payload []byte) error {
	if err := p.w.write(ws.NewPongFrame(payload)); err != nil {
		return err
	}
	if len(payload) == 0 {
		return nil
	}
	p.pinged = append(p.pinged, p.unpinged...)
	p.unpinged = nil
	return p.confirm()
}

// confirm asks behind the pong. When the answer is there the relay has handled
// the pong, and what it confirms must never come again.
func (p *peer) confirm() error {
	if p.confirming || len(p.pinged) == 0 {
		return nil
	}
	batch := p.pinged
	p.confirming, p.pinged = true, nil
	return p.ask(func() {
		p.s.book.confirm(batch...)
		p.unconfirmed -= int64(len(batch))
		p.s.unconfirmed.Add(-int64(len(batch)))
		p.confirming = false
		_ = p.confirm() // if it fails, the reader will see that as well
	})
}

func (p *peer) frame(b []byte) error {
	f, err := decode(b)
	if err != nil {
		return err
	}
	switch {
	case f.GetMessage() != nil:
		p.message(f.GetMessage())
	case f.GetPresenceList() != nil:
		p.mu.Lock()
		if len(p.asked) == 0 {
			p.mu.Unlock()
			return errors.New("the relay answers what nobody has asked")
		}
		answered := p.asked[0]
		p.asked = p.asked[1:]
		p.mu.Unlock()
		answered()
	case f.GetPresenceEvent() != nil:
	case f.GetPeerOffline() != nil:
		p.mu.Lock()
		p.offline++
		p.mu.Unlock()
	case f.GetError().GetCode() == "queue_full":
		p.mu.Lock()
		p.refused++
		p.mu.Unlock()
	default:
		return p.answer(f)
	}
	return nil
}

func (p *peer) message(m *skaldpb.Message) {
	l, err := p.s.press.read(m.GetCiphertext(), m.GetNonce())
	switch sender := p.s.who(m.GetPeer()); {
	case err != nil:
		p.s.book.blame("%s got a message that has changed: %v", p.m, err)
		return
	case l.to != p.m.id || l.live != m.GetLive() || sender == nil || sender.id != l.from:
		p.s.book.blame("%s got %v, with another address", p.m, l)
		return
	}
	p.s.book.arrive(p.line, l)
	if !l.live {
		p.unpinged = append(p.unpinged, l)
		p.unconfirmed++
		p.s.unconfirmed.Add(1)
	}
	if p.arrived != nil {
		p.arrived(l)
	}
}

// answer gives a frame to whoever waits for it. An error that nobody can have
// caused ends the connection.
func (p *peer) answer(f *skaldpb.RelayFrame) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i, c := range p.calls {
		if c.is(f) || f.GetError() != nil {
			p.calls = append(p.calls[:i:i], p.calls[i+1:]...)
			c.reply <- f
			return nil
		}
	}
	if e := f.GetError(); e != nil {
		p.s.book.blame("%s got an Error %s", p.m, e.GetCode())
	}
	return nil // ClientPaired comes again after each Auth of the agent
}

// expect waits for a frame from now on.
func (p *peer) expect(is func(*skaldpb.RelayFrame) bool) *call {
	c := &call{is, make(chan *skaldpb.RelayFrame, 1)}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.calls = append(p.calls, c)
	return c
}

// await returns the frame. An Error in its place is an error.
func (p *peer) await(c *call) (*skaldpb.RelayFrame, error) {
	timeout := time.NewTimer(patience)
	defer timeout.Stop()
	select {
	case f := <-c.reply:
		if e := f.GetError(); e != nil {
			return nil, fmt.Errorf("the relay answers with %s", e.GetCode())
		}
		return f, nil
	case <-p.done:
		return nil, p.err
	case <-timeout.C:
		return nil, errSilent
	}
}

// request sends a frame and waits for its answer.
func (p *peer) request(f *skaldpb.RelayFrame, is func(*skaldpb.RelayFrame) bool) (*skaldpb.RelayFrame, error) {
	c := p.expect(is)
	if err := p.w.send(f); err != nil {
		return nil, err
	}
	return p.await(c)
}

// ask sends a PresenceRequest. answered is called by the reader.
func (p *peer) ask(answered func()) error {
	p.asking.Lock()
	defer p.asking.Unlock()
	p.mu.Lock()
	p.asked = append(p.asked, answered)
	p.mu.Unlock()
	return p.w.send(&skaldpb.RelayFrame{Frame: &skaldpb.RelayFrame_PresenceRequest{PresenceRequest: &skaldpb.PresenceRequest{}}})
}

// barrier waits until the relay has handled all that was sent before. It returns
// how many messages it has refused since the connection began.
func (p *peer) barrier() (refused int, err error) {
	answered := make(chan int, 1)
	err = p.ask(func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		answered <- p.refused
	})
	if err != nil {
		return 0, err
	}
	timeout := time.NewTimer(patience)
	defer timeout.Stop()
	select {
	case n := <-answered:
		return n, nil
	case <-p.done:
		select { // the answer may have been the last word
		case n := <-answered:
			return n, nil
		default:
			return 0, p.err
		}
	case <-timeout.C:
		return 0, errSilent
	}
}

// post writes letters. Nothing is known about them before the next barrier.
func (p *peer) post(size int, letters ...letter) error {
	frames := make([]ws.Frame, 0, len(letters))
	for _, l := range letters {
		f, err := p.s.encode(l, size)
		if err != nil {
			return err
		}
		frames = append(frames, f)
	}
	return p.w.write(frames...)
}

// leave says goodbye and waits for the end.
func (p *peer) leave() {
	p.w.farewell()
	timeout := time.NewTimer(patience)
	defer timeout.Stop()
	select {
	case <-p.done:
	case <-timeout.C:
		p.abort()
	}
}

// abort breaks the connection off. Nothing is read from it after that.
func (p *peer) abort() {
	p.w.abort()
	<-p.done
}
