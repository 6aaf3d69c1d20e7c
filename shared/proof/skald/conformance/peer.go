package conformance

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coder/websocket"
	"google.golang.org/protobuf/encoding/prototext"
	"google.golang.org/protobuf/proto"

	"blindpost/shared/dialect/skald/skaldpb"
)

// peer is one end of one connection: an agent, a client or a stranger. It reads
// all the time, like a phone app does, and so answers pings; what it has read
// waits for the story to ask for it, in order.
//
// The want methods (want.go) fail the test when the next frame is not what the
// story says; they may be called only by the test's own goroutine. The others
// return errors.
type peer struct {
	t    *testing.T
	r    *relay
	name string
	conn *websocket.Conn

	nonce []byte // of the challenge

	deaf  atomic.Bool               // answers no ping
	watch func(*skaldpb.RelayFrame) // if set, is given every frame as it is read, in the reader's goroutine

	presence map[string]skaldpb.Status // what was last heard about others; only the reader's

	mu    sync.Mutex
	inbox []event
	news  chan struct{} // has a token when inbox has grown or a ping has come
	owed  bool          // no ping has come since the last Message
	pings int
}

// event is a frame, or the end of the connection.
type event struct {
	frame *skaldpb.RelayFrame
	size  int
	fault string // why the frame is against the schema
	end   error
}

func newPeer(t *testing.T, r *relay, name string) *peer {
	return &peer{t: t, r: r, name: name, news: make(chan struct{}, 1)}
}

// start begins to read.
func (p *peer) start(conn *websocket.Conn) {
	p.conn = conn
	conn.SetReadLimit(-1)
	done := make(chan struct{})
	go func() {
		defer close(done)
		p.read()
	}()
	p.t.Cleanup(func() {
		if unread := p.unread(); unread != "" && p.t.Failed() {
			p.t.Logf("%s has%s", p.name, unread)
		}
		_ = conn.CloseNow()
		<-done
	})
}

func (p *peer) read() {
	for {
		kind, data, err := p.conn.Read(context.Background())
		if err != nil {
			p.put(event{end: err})
			return
		}
		e := event{frame: new(skaldpb.RelayFrame), size: len(data)}
		switch {
		case kind != websocket.MessageBinary:
			e.fault = "came in a text message"
		default:
			if err := proto.Unmarshal(data, e.frame); err != nil {
				e.fault = "is no RelayFrame"
			} else {
				e.fault = p.r.faultOf(e.frame)
			}
		}
		if p.watch != nil {
			p.watch(e.frame)
		}
		if p.r.RepeatsPresence && p.isNoNews(e.frame.GetPresenceEvent()) {
			continue
		}
		p.put(e)
	}
}

// isNoNews reports whether the last event about that peer said the same.
func (p *peer) isNoNews(e *skaldpb.PresenceEvent) bool {
	if e == nil {
		return false
	}
	if p.presence == nil {
		p.presence = make(map[string]skaldpb.Status)
	}
	key := string(e.GetPubkey())
	if p.presence[key] == e.GetStatus() {
		return true
	}
	p.presence[key] = e.GetStatus()
	return false
}

func (p *peer) put(e event) {
	p.mu.Lock()
	p.inbox = append(p.inbox, e)
	if e.frame.GetMessage() != nil {
		p.owed = true
	}
	p.mu.Unlock()
	p.wake()
}

// onPing is called by the reader for each ping, and says whether to answer it.
func (p *peer) onPing(context.Context, []byte) bool {
	p.mu.Lock()
	p.owed = false
	p.pings++
	p.mu.Unlock()
	p.wake()
	return !p.deaf.Load()
}

func (p *peer) wake() {
	select {
	case p.news <- struct{}{}:
	default:
	}
}

var errNothing = errors.New("nothing came")

// await waits until done, which is called with the lock held, reports true.
func (p *peer) await(limit time.Duration, done func() bool) error {
	timeout := time.NewTimer(limit)
	defer timeout.Stop()
	for {
		p.mu.Lock()
		ok := done()
		more := len(p.inbox) > 0
		p.mu.Unlock()
		if ok {
			if more {
				p.wake() // for whoever waits for something else
			}
			return nil
		}
		select {
		case <-p.news:
		case <-timeout.C:
			return errNothing
		}
	}
}

// next takes the next frame, or the end of the connection. It does not take the
// end out of the inbox: there is nothing after it.
func (p *peer) next(limit time.Duration) (event, error) {
	var e event
	err := p.await(limit, func() bool {
		if len(p.inbox) == 0 {
			return false
		}
		e = p.inbox[0]
		if e.end == nil {
			p.inbox = p.inbox[1:]
		}
		return true
	})
	return e, err
}

// frame takes the next frame and takes everything else for an error.
func (p *peer) frame() (*skaldpb.RelayFrame, error) {
	e, err := p.next(patience)
	switch {
	case err != nil:
		return nil, err
	case e.end != nil:
		return nil, fmt.Errorf("connection is over: %w", e.end)
	case e.fault != "":
		return nil, fmt.Errorf("frame %s %s", describe(e.frame), e.fault)
	}
	return e.frame, nil
}

// write sends one WebSocket message.
func (p *peer) write(kind websocket.MessageType, data []byte) error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	return p.conn.Write(ctx, kind, data)
}

// post sends a frame.
func (p *peer) post(f *skaldpb.RelayFrame) error {
	data, err := proto.Marshal(f)
	if err != nil {
		return fmt.Errorf("failed to marshal: %w", err)
	}
	return p.write(websocket.MessageBinary, data)
}

// send sends a frame and fails the test if the connection does not take it.
func (p *peer) send(f *skaldpb.RelayFrame) {
	p.t.Helper()
	if err := p.post(f); err != nil {
		p.t.Fatalf("%s failed to send %s: %v%s", p.name, describe(f), err, p.unread())
	}
}

// sendRaw sends bytes as they are in a binary message. A relay may hang up in
// the middle of them, so an error is no failure: the story goes on to say what
// the relay answers.
func (p *peer) sendRaw(data []byte) { _ = p.write(websocket.MessageBinary, data) }

// sendText sends a text message.
func (p *peer) sendText(text string) { _ = p.write(websocket.MessageText, []byte(text)) }

// close says goodbye.
func (p *peer) close() { _ = p.conn.Close(websocket.StatusNormalClosure, "") }

// drop breaks the connection off without a word of WebSocket.
func (p *peer) drop() { _ = p.conn.CloseNow() }

// describe prints a frame, shortened.
func describe(f *skaldpb.RelayFrame) string {
	s := prototext.MarshalOptions{}.Format(f)
	if s == "" {
		return "(empty frame)"
	}
	if len(s) > 300 {
		s = s[:300] + "..."
	}
	return s
}

// unread prints what has come and was not asked for, for a failure message.
func (p *peer) unread() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := ""
	for i, e := range p.inbox {
		switch {
		case i == 5:
			return s + fmt.Sprintf("\n\tand %d more", len(p.inbox)-i)
		case e.end != nil:
			s += fmt.Sprintf("\n\tunread: end of connection: %v", e.end)
		default:
			s += fmt.Sprintf("\n\tunread: %s %s", describe(e.frame), e.fault)
		}
	}
	return s
}
