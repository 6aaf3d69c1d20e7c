package main

import (
	"context"
	"net/http"
	"slices"
	"sync"

	peer "blindpost/shared/client/aelos"
)

// aelosWire is the way to the relay, and a copy of everything that the relay could
// see on it: what stands inside TLS.
type aelosWire struct {
	url string

	mu   sync.Mutex
	seen [][]byte
}

func (w *aelosWire) note(m peer.Message) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.seen = append(w.seen, slices.Clone(m.Data))
}

// all is what the relay could see so far.
func (w *aelosWire) all() [][]byte {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.seen)
}

// hungUp is the end of a connection.
type hungUp struct{ err error }

// aelosEnd is a boat or a viewer at work on a connection.
type aelosEnd struct {
	wire   *aelosWire
	events *demoEvents
	// receive is the peer's method, see package peer. It is guarded by mu, as is all that
	// the peer does: its messages must be sent in the order in which it made them.
	receive func(peer.Message) ([]peer.Message, peer.Event, error)
	// react, if set, answers an event, with mu held.
	react func(peer.Event) ([]peer.Message, error)

	mu   sync.Mutex
	line *peer.Line
	last peer.Message // payload that came

	done chan struct{} // closed when the line has ended
}

// dial opens a connection and says hello with a token.
func (e *aelosEnd) dial(ctx context.Context, client *http.Client, hello func(token string) peer.Message, token string) error {
	line, _, err := peer.Dial(ctx, e.wire.url, peer.DialOptions{Client: client}) //nolint:bodyclose // it is closed
	if err != nil {
		return err
	}
	e.mu.Lock()
	e.line, e.done = line, make(chan struct{})
	e.mu.Unlock()
	go e.read(line, e.done)
	return e.do(func() ([]peer.Message, error) { return []peer.Message{hello(token)}, nil })
}

// do sends the messages that the peer makes.
func (e *aelosEnd) do(say func() ([]peer.Message, error)) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	all, err := say()
	if err != nil {
		return err
	}
	return e.send(all)
}

func (e *aelosEnd) send(all []peer.Message) error {
	for _, m := range all {
		e.wire.note(m)
	}
	return e.line.Send(context.Background(), all...)
}

func (e *aelosEnd) read(line *peer.Line, done chan struct{}) {
	defer close(done)
	for {
		m, err := line.Receive(context.Background())
		if err == nil {
			e.wire.note(m)
			err = e.take(line, m)
		}
		if err != nil {
			e.events.put(hungUp{err})
			return
		}
	}
}

// take handles a message. One that a relay may not send ends the connection, and is an
// event.
func (e *aelosEnd) take(line *peer.Line, m peer.Message) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if line != e.line {
		return nil // of the connection before
	}
	if !m.Text {
		e.last = m
	}
	replies, event, err := e.receive(m)
	if err == nil && e.react != nil {
		var more []peer.Message
		more, err = e.react(event)
		replies = append(replies, more...)
	}
	if err != nil {
		line.Abort()
		return err
	}
	_ = e.send(replies) // that the connection is over is noticed by reading
	e.events.put(event)
	return nil
}

// settled waits until the relay has handled what was sent before.
func (e *aelosEnd) settled(ctx context.Context) error {
	err := e.do(func() ([]peer.Message, error) { return []peer.Message{peer.PingMessage()}, nil })
	if err != nil {
		return err
	}
	_, err = awaitEvent[peer.Ponged](ctx, e.events, "the relay's pong", nil)
	return err
}

// leave says goodbye; hangUp just ends the connection, if there is one.
func (e *aelosEnd) leave()  { e.end(func(l *peer.Line) { _ = l.Close() }) }
func (e *aelosEnd) hangUp() { e.end((*peer.Line).Abort) }

func (e *aelosEnd) end(how func(*peer.Line)) {
	e.mu.Lock()
	line, done := e.line, e.done
	e.mu.Unlock()
	if line != nil {
		how(line)
		<-done
	}
}
