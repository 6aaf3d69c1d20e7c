package conformance

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	wire "blindpost/shared/client/aelos"
)

// peer is one end of one connection: a boat, a viewer or a stranger. It reads all
// the time and so answers pings; what it has read waits for the story to ask for
// it, in order.
//
// The want methods (want.go) fail the test when the next frame is not what the
// story says; they may be called only by the test's own goroutine. The others
// return errors.
type peer struct {
	t    *testing.T
	r    *relay
	name string
	line *wire.Line

	pings atomic.Int64 // of WebSocket, so far
	// roster is who a boat was told watches, oldest first; told says that this
	// connection has been told at all.
	roster []wire.Tag
	told   bool

	heard heard // only the reader's

	role atomic.Value // string, since it has said hello

	mu    sync.Mutex
	inbox []event
	news  chan struct{} // has a token when inbox has grown
}

// event is a frame, or the end of the connection.
type event struct {
	message wire.Message
	control wire.Control // of a text message
	fault   error        // why the frame is against the schema
	end     error
}

func (e event) String() string {
	switch {
	case e.end != nil:
		return fmt.Sprintf("the end of the connection (%v)", e.end)
	case e.message.Text:
		return fmt.Sprintf("%.200s", e.message.Data)
	}
	return fmt.Sprintf("a payload of %d bytes, %.24x", len(e.message.Data), e.message.Data)
}

// start begins to read.
func (p *peer) start(l *wire.Line) {
	p.line = l
	done := make(chan struct{})
	go func() {
		defer close(done)
		p.read()
	}()
	p.t.Cleanup(func() {
		if unread := p.unread(); unread != "" && p.t.Failed() {
			p.t.Logf("%s has%s", p.name, unread)
		}
		l.Abort()
		<-done
	})
}

func (p *peer) read() {
	for {
		m, err := p.line.Receive(context.Background())
		e := event{message: m, end: err}
		if err == nil && m.Text {
			if e.control, e.fault = wire.ParseControl(m.Data); e.fault == nil && !p.mayHear(e.control) {
				e.fault = errors.New("this frame is not for such a peer")
			}
		}
		if _, ok := e.control.(wire.Ping); ok && e.fault == nil {
			_ = p.post(wire.Message{Text: true, Data: wire.Encode(wire.Pong{})})
			continue // a relay may ask; none has to
		}
		if p.r.Repeats && e.control != nil && e.fault == nil {
			var ok bool
			if e.control, ok = p.heard.news(e.control); !ok {
				continue
			}
		}
		p.mu.Lock()
		p.inbox = append(p.inbox, e)
		p.mu.Unlock()
		select {
		case p.news <- struct{}{}:
		default:
		}
		if err != nil {
			return
		}
	}
}

// mayHear is the last two columns of the table of who may send what.
func (p *peer) mayHear(c wire.Control) bool {
	role := p.role.Load()
	switch c.(type) {
	case wire.Error:
		return true
	case wire.Welcome, wire.Ping, wire.Pong:
		return role != nil
	case wire.Viewers, wire.Hs1:
		return role == "boat"
	case wire.BoatStatus, wire.Hs2, wire.Result:
		return role == "viewer"
	}
	return false
}

var errNothing = errors.New("nothing came")

// next takes the next frame, or the end of the connection. It does not take the
// end out of the inbox: there is nothing after it.
func (p *peer) next(limit time.Duration) (event, error) {
	timeout := time.NewTimer(limit)
	defer timeout.Stop()
	for {
		p.mu.Lock()
		if len(p.inbox) > 0 {
			e := p.inbox[0]
			if e.end == nil {
				p.inbox = p.inbox[1:]
			}
			p.mu.Unlock()
			return e, nil
		}
		p.mu.Unlock()
		select {
		case <-p.news:
		case <-timeout.C:
			return event{}, errNothing
		}
	}
}

// post sends messages.
func (p *peer) post(all ...wire.Message) error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	return p.line.Send(ctx, all...)
}

// send sends a control frame and fails the test if the connection does not take
// it.
func (p *peer) send(c wire.Control) {
	p.t.Helper()
	if err := p.post(wire.Message{Text: true, Data: wire.Encode(c)}); err != nil {
		p.t.Fatalf("%s failed to send %T: %v%s", p.name, c, err, p.unread())
	}
}

// sendText sends a text message, sendPayload a binary one, as they are. A relay
// may hang up in the middle of them, so an error is no failure: the story goes on
// to say what the relay answers.
func (p *peer) sendText(text string) { _ = p.post(wire.Message{Text: true, Data: []byte(text)}) }

func (p *peer) sendPayload(frame []byte) { _ = p.post(wire.Message{Data: frame}) }

// close says goodbye.
func (p *peer) close() { _ = p.line.Close() }

// drop breaks the connection off without a word of WebSocket.
func (p *peer) drop() { p.line.Abort() }

// unread prints what has come and was not asked for, for a failure message.
func (p *peer) unread() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := ""
	for i, e := range p.inbox {
		if i == 5 {
			return s + fmt.Sprintf("\n\tand %d more", len(p.inbox)-i)
		}
		s += "\n\tunread: " + e.String()
	}
	return s
}
