package skald

import (
	"context"
	"errors"
	"fmt"

	"google.golang.org/protobuf/proto"

	"blindpost/shared/dialect/skald/skaldpb"
	"blindpost/shared/gateway"
)

// connInbox bounds what a Conn reads ahead, in bytes of frames.
const connInbox = 8 << 20

// errClosed is why a connection ended that was closed on this side.
var errClosed = errors.New("connection was closed on this side")

// Conn is one connection to a relay that carries frames and keeps no state: for tests and
// load generators. It always reads, so that pings are answered even if the caller does not
// call Receive; frames wait until then. When 8 MiB wait, it stops reading and answers no
// ping until the caller receives some.
//
// All methods are safe for concurrent use.
type Conn struct {
	w      *wire
	cancel context.CancelFunc // of the read loop
	done   chan struct{}      // closed when the read loop has ended

	mu      monitor // notified when inbox or err changes
	inbox   []received
	size    int   // bytes in inbox
	err     error // why the connection ended
	closing bool
}

// received is a frame, or the error for a message that was none.
type received struct {
	frame *skaldpb.RelayFrame
	err   error
	size  int
}

var _ frameCarrier = (*Conn)(nil)

// Dial opens a connection. The relay speaks first: see [Conn.Authenticate].
func Dial(ctx context.Context, relayURL string, o DialOptions) (*Conn, error) {
	w, err := dialWire(ctx, relayURL, o)
	if err != nil {
		return nil, err
	}
	readCtx, cancel := context.WithCancel(context.Background())
	c := &Conn{w: w, cancel: cancel, done: make(chan struct{})}
	go c.readLoop(readCtx)
	return c, nil
}

// Authenticate waits for the challenge, answers it and returns the namespace.
// A refusal is a [RelayError] with Auth set.
func (c *Conn) Authenticate(ctx context.Context, auth AuthFunc) (NamespaceID, error) {
	ns, _, err := handshake(ctx, c, auth)
	return ns, err
}

// Receive returns the next frame. After the end of the connection it returns the frames
// that still wait, then the reason of the end: a [CloseError] if the relay sent a close
// frame. For a message that is no frame it returns [ErrProtocol] once, and the connection
// goes on. If ctx ends, no frame is lost.
func (c *Conn) Receive(ctx context.Context) (*skaldpb.RelayFrame, error) {
	var r received
	err := c.mu.await(ctx, func() bool {
		if len(c.inbox) == 0 {
			r.err = c.err
			return c.err != nil
		}
		r, c.inbox[0] = c.inbox[0], received{}
		c.inbox = c.inbox[1:]
		c.size -= r.size
		c.mu.notify()
		return true
	})
	if err != nil {
		return nil, fmt.Errorf("failed to receive frame: %w", err)
	}
	return r.frame, r.err
}

// Send writes one frame. An end of ctx while it is written ends the connection.
func (c *Conn) Send(ctx context.Context, f *skaldpb.RelayFrame) error {
	return c.w.Send(ctx, f)
}

// SendBytes writes the bytes as one message, frame or not; on a relay that
// speaks base64 text they are encoded so.
func (c *Conn) SendBytes(ctx context.Context, b []byte) error { return c.w.write(ctx, b) }

// SendText writes a text message unchanged, for tests of the relay.
func (c *Conn) SendText(ctx context.Context, s string) error { return c.w.writeRawText(ctx, s) }

// Ping waits for the pong to a ping.
func (c *Conn) Ping(ctx context.Context) error { return c.w.ping(ctx) }

// Done is closed when the connection has ended.
func (c *Conn) Done() <-chan struct{} { return c.done }

// Err returns why the connection has ended, or nil.
func (c *Conn) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}

// Close sends a close frame, waits up to two seconds for the relay's answer, and ends the
// connection.
func (c *Conn) Close() {
	c.markClosing()
	c.w.close(gateway.CloseNormal, "")
	c.Abort()
}

// Abort ends the connection at once, as a lost network would.
func (c *Conn) Abort() {
	c.markClosing()
	c.cancel()
	c.w.abort()
	<-c.done
}

func (c *Conn) markClosing() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closing = true
}

func (c *Conn) readLoop(ctx context.Context) {
	defer close(c.done)
	for c.waitRoom(ctx) {
		f, err := c.w.Receive(ctx)
		if err != nil && !errors.Is(err, errBadFrame) {
			c.end(err)
			return
		}
		r := received{frame: f, err: err, size: proto.Size(f) + 1}
		c.mu.Lock()
		c.inbox = append(c.inbox, r)
		c.size += r.size
		c.mu.notify()
		c.mu.Unlock()
	}
	c.end(errClosed)
}

// waitRoom waits until the inbox has room and reports whether to go on.
func (c *Conn) waitRoom(ctx context.Context) bool {
	return c.mu.await(ctx, func() bool { return c.size < connInbox }) == nil && ctx.Err() == nil
}

func (c *Conn) end(err error) {
	c.w.abort()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closing {
		err = errClosed
	}
	c.err = err
	c.mu.notify()
}
