package server

import (
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/gobwas/ws"

	"blindpost/shared/gateway"
)

// writeChunk is the most bytes in one write. Each write has its own deadline, so a
// peer that reads a long queue slowly but steadily is not cut.
const writeChunk = 64 << 10

// maxDroppable is how many bytes may wait for a peer before droppable messages to it
// are dropped: several frames of the largest size of that kind, or some minutes of
// usual ones.
const maxDroppable = 256 << 10

func (s *Server) droppable() int { return min(maxDroppable, s.o.MaxBuffered/2) }

// post queues a message and starts the write goroutine if none runs.
func (c *conn) post(m gateway.Message) (gateway.Outcome, error) {
	size := frameSize(len(m.Data))
	if size > c.srv.o.MaxBuffered {
		if c.state() != stateOpen {
			return 0, gateway.ErrGone
		}
		return 0, gateway.ErrTooLarge
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.state() != stateOpen {
		return 0, gateway.ErrGone
	}
	if m.Droppable && c.queued > 0 && c.queued+size > c.srv.droppable() {
		return gateway.Dropped, nil
	}
	if c.queued+size > c.srv.o.MaxBuffered || m.Mark != 0 && c.marks.full() {
		c.closeSlowLocked()
		return 0, gateway.ErrGone
	}
	c.appendMessageLocked(m)
	c.startWriteLocked()
	return gateway.Pending, nil
}

func (c *conn) appendMessageLocked(m gateway.Message) {
	op := ws.OpBinary
	if m.Text {
		op = ws.OpText
	}
	c.appendLocked(op, m.Data)
	if m.Mark != 0 {
		c.marks.unpinged = append(c.marks.unpinged, m.Mark)
	}
	c.marks.bytes += len(m.Data)
	if c.marks.bytes >= pingBytes && len(c.marks.unanswered) < maxUnanswered &&
		(c.marks.waiting() || c.queued > longQueue) {
		c.pingLocked()
	}
	c.srv.o.Observer.FrameOut(len(m.Data))
}

// control queues a ping or a pong. A peer that sends pings and does not read the
// pongs is a slow reader like any other.
func (c *conn) control(op ws.OpCode, payload []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.state() != stateOpen {
		return
	}
	if c.queued+frameSize(len(payload)) > c.srv.o.MaxBuffered {
		c.closeSlowLocked()
		return
	}
	c.appendLocked(op, payload)
	c.startWriteLocked()
}

func (c *conn) appendLocked(op ws.OpCode, payload []byte) {
	size := frameSize(len(payload))
	c.out = c.out.withRoom(size)
	c.out.b = appendFrame(c.out.b, op, payload)
	c.lastPing = 0
	c.addQueuedLocked(size)
}

func (c *conn) addQueuedLocked(n int) {
	c.queued += n
	c.srv.o.Observer.Buffered(n)
}

// dropLocked drops the queue except for its first keep bytes.
func (c *conn) dropLocked(keep int) {
	if c.out == nil {
		return
	}
	c.addQueuedLocked(keep - len(c.out.b))
	c.out.b = c.out.b[:keep]
	c.lastPing = 0
	if keep == 0 {
		c.out.release()
		c.out = nil
	}
}

// startWriteLocked starts the write goroutine if there is something to write.
func (c *conn) startWriteLocked() {
	if c.writing || c.nc == nil || c.state() == stateDead {
		return
	}
	if c.out != nil || c.pingDueLocked() {
		c.writing = true
		go c.write()
	}
}

// takeLocked hands everything that waits to the write goroutine. final says that
// it ends with the close frame.
func (c *conn) takeLocked() (b *block, final bool) {
	if c.state() == stateDead {
		return nil, false
	}
	if c.pingDueLocked() {
		c.pingLocked()
	}
	b, c.out, c.answer = c.out, nil, 0
	if b != nil {
		c.held, c.heldPing, c.lastPing = len(b.b), c.lastPing, 0
	}
	return b, c.state() == stateClosing
}

// writtenLocked notes that all held bytes are written.
func (c *conn) writtenLocked() {
	c.addQueuedLocked(-c.held)
	c.held, c.heldPing, c.lastChunk = 0, 0, false
}

// write is the write goroutine: it writes the queue and ends when it is empty.
func (c *conn) write() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for {
		b, final := c.takeLocked()
		if b == nil {
			break
		}
		c.mu.Unlock()
		err := c.writeAll(b.b)
		b.release()
		c.mu.Lock()
		c.writtenLocked()
		switch {
		case err != nil:
			c.writeFailedLocked(err)
		case final && !c.peerDone && c.cutTimer != nil:
			c.cutTimer.Reset(c.closeWait) // from now on the peer may take closeWait to answer
		}
	}
	// An idle connection has no timer; and crypto/tls may write by itself.
	_ = c.nc.SetWriteDeadline(time.Time{})
	c.writing = false
	if c.drained != nil {
		close(c.drained)
		c.drained = nil
	}
}

func (c *conn) writeAll(b []byte) error {
	for len(b) > 0 {
		n := min(len(b), writeChunk)
		if n == len(b) {
			c.mu.Lock()
			c.lastChunk = true
			c.mu.Unlock()
		}
		if err := c.writeOnce(b[:n]); err != nil {
			return err
		}
		b = b[n:]
	}
	return nil
}

func (c *conn) writeOnce(b []byte) error {
	cork, corked := rawConn(c.nc).(*corkConn)
	if corked {
		cork.cork()
		if _, err := c.nc.Write(b); err != nil {
			cork.drop()
			return fmt.Errorf("failed to encrypt: %w", err)
		}
	}
	if err := c.nc.SetWriteDeadline(time.Now().Add(c.srv.o.WriteTimeout)); err != nil {
		return fmt.Errorf("failed to set the write deadline: %w", err)
	}
	var err error
	if corked {
		err = cork.flush()
	} else {
		_, err = c.nc.Write(b)
	}
	if err != nil {
		return fmt.Errorf("failed to write: %w", err)
	}
	return nil
}

// writeFailedLocked ends the connection without a close frame: the frame on the wire
// may be cut in the middle.
func (c *conn) writeFailedLocked(err error) {
	if errors.Is(err, os.ErrDeadlineExceeded) && c.state() == stateOpen {
		c.srv.o.Observer.SlowReader()
		c.failLocked(gateway.CloseSlowReader, "slow reader")
		return
	}
	c.failLocked(gateway.CloseAbnormal, "transport broke")
}

// awaitWriter waits until no write goroutine runs. Before, the caller must cut the
// transport or start the cut timer, so that the writes end.
func (c *conn) awaitWriter() {
	c.mu.Lock()
	if !c.writing {
		c.mu.Unlock()
		return
	}
	if c.drained == nil {
		c.drained = make(chan struct{})
	}
	done := c.drained
	c.mu.Unlock()
	<-done
}
