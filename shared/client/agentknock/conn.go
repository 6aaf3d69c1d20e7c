package agentknock

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/coder/websocket"
)

// ErrClosed says that a connection has ended. [CodeOf] returns its close code.
var ErrClosed = errors.New("connection is closed")

// CodeOf is the close code that ended a connection, -1 if there was none.
func CodeOf(err error) int {
	var e websocket.CloseError
	if errors.As(err, &e) {
		return int(e.Code)
	}
	return -1
}

// Fault is a frame that the relay must not send.
type Fault struct {
	Data []byte
	Err  error
}

func (e *Fault) Error() string { return "fault of the relay: " + e.Err.Error() }
func (e *Fault) Unwrap() error { return e.Err }

// Conn is one WebSocket. It always reads, so that it answers pings; frames wait for Next.
type Conn struct {
	role Role
	o    Options
	ws   *websocket.Conn
	done chan struct{} // closed when it has stopped reading

	pings atomic.Int64

	mu    sync.Mutex
	inbox []arrival
	grown chan struct{} // closed and replaced when the inbox has grown
}

// arrival is a frame, a fault, or the end of the connection.
type arrival struct {
	frame Frame
	err   error
	end   bool
}

func newConn(role Role, o Options) *Conn {
	return &Conn{role: role, o: o, done: make(chan struct{}), grown: make(chan struct{})}
}

func (c *Conn) start(ws *websocket.Conn) {
	c.ws = ws
	ws.SetReadLimit(-1)
	go func() {
		defer close(c.done)
		c.read()
	}()
}

func (c *Conn) read() {
	for {
		kind, data, err := c.ws.Read(context.Background())
		if err != nil {
			c.put(arrival{err: fmt.Errorf("%w: %w", ErrClosed, err), end: true})
			return
		}
		f, err := Decode(data, c.role)
		switch {
		case kind != websocket.MessageText:
			err = errors.New("a binary message")
		case len(data) > MaxFrame:
			err = fmt.Errorf("a frame of %d bytes", len(data))
		}
		switch {
		case err != nil:
			c.put(arrival{err: &Fault{Data: data, Err: err}})
		case c.o.OnFrame != nil:
			c.o.OnFrame(f)
		default:
			c.put(arrival{frame: f})
		}
	}
}

func (c *Conn) put(a arrival) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.inbox = append(c.inbox, a)
	close(c.grown)
	c.grown = make(chan struct{})
}

// Next returns the next frame, or a *Fault for an invalid one. After the last one it always
// returns [ErrClosed].
func (c *Conn) Next(ctx context.Context) (Frame, error) {
	for {
		c.mu.Lock()
		if len(c.inbox) > 0 {
			a := c.inbox[0]
			if !a.end {
				c.inbox = c.inbox[1:]
			}
			c.mu.Unlock()
			return a.frame, a.err
		}
		grown := c.grown
		c.mu.Unlock()
		select {
		case <-grown:
		case <-ctx.Done():
			return Frame{}, ctx.Err()
		}
	}
}

// Waiting describes the frames that Next has not returned yet, for error messages.
func (c *Conn) Waiting() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	var all []string
	for _, a := range c.inbox {
		if a.err != nil {
			all = append(all, a.err.Error())
		} else {
			all = append(all, a.frame.String())
		}
	}
	return all
}

// onPing is called by the reader for each ping and reports whether to answer it.
func (c *Conn) onPing(context.Context, []byte) bool {
	c.pings.Add(1)
	return !c.o.Deaf
}

// Pings is the number of received pings.
func (c *Conn) Pings() int { return int(c.pings.Load()) }

// Send sends a frame, valid or not.
func (c *Conn) Send(ctx context.Context, f Frame) error { return c.SendText(ctx, f.Encode()) }

// SendText sends a text message.
func (c *Conn) SendText(ctx context.Context, data []byte) error {
	return c.write(ctx, websocket.MessageText, data)
}

// SendBinary sends a binary message.
func (c *Conn) SendBinary(ctx context.Context, data []byte) error {
	return c.write(ctx, websocket.MessageBinary, data)
}

func (c *Conn) write(ctx context.Context, kind websocket.MessageType, data []byte) error {
	if err := c.ws.Write(ctx, kind, data); err != nil {
		return fmt.Errorf("failed to send: %w", err)
	}
	return nil
}

// SendPart begins a text message that never ends.
func (c *Conn) SendPart(ctx context.Context, data []byte) error {
	w, err := c.ws.Writer(ctx, websocket.MessageText)
	if err == nil {
		_, err = w.Write(data)
	}
	if err != nil {
		return fmt.Errorf("failed to send: %w", err)
	}
	return nil
}

// Ping sends a ping and waits for its pong.
func (c *Conn) Ping(ctx context.Context) error { return c.ws.Ping(ctx) }

// Done is closed when the connection is over.
func (c *Conn) Done() <-chan struct{} { return c.done }

// Close sends a close frame and waits for that of the relay.
func (c *Conn) Close() {
	_ = c.ws.Close(websocket.StatusNormalClosure, "")
	<-c.done
}

// Drop cuts the connection without a close frame.
func (c *Conn) Drop() {
	_ = c.ws.CloseNow()
	<-c.done
}
