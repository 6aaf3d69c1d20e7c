package server

import (
	"crypto/tls"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gobwas/ws"

	"blindpost/shared/gateway"
)

// connState only ever grows.
type connState uint32

const (
	stateConnecting connState = iota // Connect has not returned
	stateOpen
	stateClosing // a close frame is queued or sent; nothing may follow it
	stateDead    // the transport is cut
)

// conn is one connection. Its read goroutine owns its life: it is the one that
// calls the handler, Disconnect included.
type conn struct {
	// set once, before the connection is shared
	srv *Server
	id  gateway.Conn

	// written once by accept, by start, and by the read goroutine; read by all.
	// Times are durations since srv.base.
	openedAt atomic.Int64
	lastRead atomic.Int64
	// waiting is when the read goroutine began to wait for the peer, 0 while it does
	// not wait.
	waiting atomic.Int64

	// owned by the read goroutine
	in input

	// guarded by wheel.mu
	next, prev *conn
	slot       int32
	wheeled    bool

	// owned by the wheel's goroutine
	nextPing time.Duration

	// guarded by mu
	mu        sync.Mutex
	stateVal  atomic.Uint32 // written under mu, read by all
	nc        net.Conn      // set once by start, safe to read after that
	writing   bool          // a write goroutine runs
	peerDone  bool          // the peer's close frame has come
	out       *block        // whole frames that wait for the write goroutine
	answer    int           // bytes of the HTTP answer at the start of out
	queued    int           // bytes in out and held
	held      int           // bytes that the write goroutine has, until it or a pong says that they are written
	lastPing  uint64        // the ping at the end of out, 0 for none
	heldPing  uint64        // the ping at the end of the held bytes, 0 for none
	lastChunk bool          // the last chunk of what is held is being written
	drained   chan struct{} // closed when the write goroutine ends, if someone waits
	cutTimer  *time.Timer   // runs while closing
	// closeWait bounds the flush before a close frame, and the wait for an answer
	closeWait time.Duration
	cause     cause // the first reason for the end
	marks     marks
}

// cause is why a connection ends.
type cause struct {
	set    bool
	code   gateway.CloseCode
	reason string
}

func newConn(s *Server, id gateway.Conn) *conn {
	c := &conn{srv: s, id: id, closeWait: s.o.CloseWait}
	c.in.releaseBuffer()
	return c
}

func (c *conn) state() connState {
	return connState(c.stateVal.Load())
}

func (c *conn) setStateLocked(s connState) {
	c.stateVal.Store(uint32(s))
}

// accept opens the connection for posts. It queues the HTTP answer first, so that
// nothing can overtake it, then the handler's first messages.
func (c *conn) accept(res gateway.ConnectResult, answer []byte) {
	c.in.limit = c.srv.o.ReadLimit
	if res.ReadLimit > 0 {
		c.in.limit = res.ReadLimit
	}
	c.in.last = c.srv.now()
	c.openedAt.Store(int64(c.in.last))
	c.lastRead.Store(int64(c.in.last))
	c.mu.Lock()
	defer c.mu.Unlock()
	c.out = c.out.withRoom(len(answer))
	c.out.b = append(c.out.b, answer...)
	c.answer = len(answer)
	c.addQueuedLocked(len(answer))
	for _, m := range res.First {
		c.appendMessageLocked(m)
	}
	c.setStateLocked(stateOpen)
}

// start gives the connection its transport and its read goroutine. It copies early,
// the bytes that the peer has already sent.
func (c *conn) start(nc net.Conn, early []byte) {
	c.in.put(early)
	c.mu.Lock()
	c.nc = nc
	if c.state() == stateDead {
		c.abortLocked()
	}
	c.startWriteLocked()
	c.mu.Unlock()
	c.srv.wheel.add(c)
	if c.srv.gate.isShut() {
		// The shutdown may have looked at the connections before this one was open.
		_ = c.close(gateway.CloseGoingAway, "shutdown")
	}
	go func() { c.finish(c.read()) }()
}

// close sends what is queued, then a close frame. The peer has closeWait to read it
// and closeWait to answer.
func (c *conn) close(code gateway.CloseCode, reason string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.state() != stateOpen {
		return gateway.ErrGone
	}
	c.closeLocked(code, reason)
	return nil
}

// silentWait is how long a peer that was silent for the whole idle time may take to
// answer the close: most likely it is not there.
const silentWait = time.Second

// closeSilent closes a connection that has been idle for too long.
func (c *conn) closeSilent() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.state() != stateOpen {
		return
	}
	c.closeWait = min(silentWait, c.srv.o.CloseWait)
	c.closeLocked(gateway.CloseGoingAway, "idle")
}

func (c *conn) closeLocked(code gateway.CloseCode, reason string) {
	c.causeLocked(code, reason)
	// A last ping: its pong comes before the peer's close frame and confirms what the
	// peer received.
	if c.marks.waiting() {
		c.pingLocked()
	}
	c.sendCloseLocked(code, reason)
}

// sendCloseLocked queues the close frame; nothing may follow it.
func (c *conn) sendCloseLocked(code gateway.CloseCode, reason string) {
	c.appendLocked(ws.OpClose, closePayload(code, reason))
	c.setStateLocked(stateClosing)
	c.cutTimer = time.AfterFunc(c.closeWait, c.cut)
	c.startWriteLocked()
}

// peerClosed takes the peer's close frame and answers it if it is the first.
func (c *conn) peerClosed(code gateway.CloseCode, reason string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.peerDone = true
	if c.state() != stateOpen {
		return
	}
	c.causeLocked(code, reason)
	c.sendCloseLocked(code, "")
}

// closeSlowLocked closes a connection whose peer does not read. It drops the queue,
// so the close frame follows what is being written now.
func (c *conn) closeSlowLocked() {
	c.srv.o.Observer.SlowReader()
	c.dropLocked(c.answer) // without the HTTP answer a close frame would be noise
	c.marks.unpinged = nil
	c.closeLocked(gateway.CloseSlowReader, "slow reader")
}

// fail cuts the connection without a close frame.
func (c *conn) fail(code gateway.CloseCode, reason string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.failLocked(code, reason)
}

func (c *conn) failLocked(code gateway.CloseCode, reason string) {
	if c.state() == stateDead {
		return
	}
	c.causeLocked(code, reason)
	c.setStateLocked(stateDead)
	c.dropLocked(0)
	c.abortLocked()
}

// cut ends a close that takes too long.
func (c *conn) cut() {
	c.fail(gateway.CloseAbnormal, "transport broke")
}

func (c *conn) causeLocked(code gateway.CloseCode, reason string) {
	if !c.cause.set {
		c.cause = cause{true, code, reason}
	}
}

// abortLocked closes the transport at once, without a TLS close_notify, which could
// block.
func (c *conn) abortLocked() {
	if c.nc != nil {
		_ = rawConn(c.nc).Close()
	}
}

// rawConn is the transport under TLS.
func rawConn(nc net.Conn) net.Conn {
	if t, ok := nc.(*tls.Conn); ok {
		return t.NetConn()
	}
	return nc
}

// finish ends the connection: transport, write goroutine, registration, and last
// the handler's Disconnect. closed is true when both sides have sent a close frame,
// so that TLS may close in an orderly way as well.
func (c *conn) finish(closed bool) {
	c.mu.Lock()
	if closed && c.state() != stateDead && !c.writing {
		nc := c.nc
		c.mu.Unlock()
		_ = nc.Close() // bounded by crypto/tls, and by the cut timer
		c.mu.Lock()
	}
	c.failLocked(gateway.CloseAbnormal, "transport broke")
	if c.cutTimer != nil {
		c.cutTimer.Stop()
		c.cutTimer = nil
	}
	why := c.cause
	c.mu.Unlock()
	c.awaitWriter()
	c.in.release()
	c.srv.wheel.remove(c)
	if err := c.srv.disconnect(gateway.DisconnectEvent{Conn: c.id, Code: why.code, Reason: why.reason, At: time.Now()}); err != nil {
		c.srv.failed("disconnect", c, err)
	}
	// Last, because Gone promises that no Disconnect is still to come.
	c.srv.conns.remove(c)
	c.srv.o.Observer.Closed(why.code)
	c.srv.gate.leave()
}
