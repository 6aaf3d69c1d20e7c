package server

import (
	"encoding/binary"
	"time"

	"github.com/gobwas/ws"

	"blindpost/shared/gateway"
)

// maxMarks bounds the marks that wait for a pong: a peer that reads but never
// answers a ping would otherwise make them grow for ever.
const maxMarks = 64 << 10

// pingBytes is how many bytes may be queued behind one ping before the next: a slow
// reader of a long queue confirms as it goes, and its pongs show that it is alive.
// From longQueue on the server pings even if nothing in the queue is marked.
// maxUnanswered bounds the pings in a queue.
const (
	pingBytes     = 64 << 10
	longQueue     = 256 << 10
	maxUnanswered = 128
)

// marks are the marks of messages that are not confirmed yet. Guarded by conn.mu.
type marks struct {
	unpinged   []uint64 // of queued messages that no ping follows yet
	unanswered []ping   // more than one only in a long queue, and before a close frame
	bytes      int      // of messages queued since the last ping
	asked      int      // marks in unanswered
	seq        uint64   // of the last ping
}

// ping is a confirmation ping on its way.
type ping struct {
	seq   uint64
	at    time.Duration
	marks []uint64
}

func (m *marks) waiting() bool { return len(m.unpinged) > 0 }

func (m *marks) full() bool { return len(m.unpinged)+m.asked >= maxMarks }

// pingDueLocked reports whether marked messages need a ping. One unanswered ping at
// a time is enough: the next one covers all messages that came meanwhile.
func (c *conn) pingDueLocked() bool {
	return c.marks.waiting() && len(c.marks.unanswered) == 0 && c.state() == stateOpen
}

// pingLocked queues a ping behind everything that is queued, and so behind all
// unpinged marks.
func (c *conn) pingLocked() {
	m := &c.marks
	m.seq++
	m.unanswered = append(m.unanswered, ping{seq: m.seq, at: c.srv.now(), marks: m.unpinged})
	m.asked += len(m.unpinged)
	m.unpinged = nil
	m.bytes = 0
	var payload [8]byte
	binary.BigEndian.PutUint64(payload[:], m.seq)
	c.appendLocked(ws.OpPing, payload[:])
	c.lastPing = m.seq
}

// pong confirms the messages that were sent before the ping that it answers. A pong
// that answers no ping confirms nothing.
func (c *conn) pong(payload []byte) {
	confirmed := c.answered(payload)
	if len(confirmed) == 0 {
		return
	}
	err := c.srv.confirmed(gateway.ConfirmedEvent{Conn: c.id, Marks: confirmed, At: c.in.at(c.srv)})
	if err != nil {
		c.handlerFailed("confirmed", err)
	}
}

// answered removes and returns the marks of the ping with this payload, and of all
// before it: a peer may answer only the latest ping.
func (c *conn) answered(payload []byte) []uint64 {
	if len(payload) != 8 {
		return nil
	}
	seq := binary.BigEndian.Uint64(payload)
	c.mu.Lock()
	defer c.mu.Unlock()
	if seq != 0 && seq == c.heldPing && c.lastChunk {
		// The peer has read all of it, even if the write goroutine has not yet noted that
		// it is written. Free the space now: a confirmed sender may post as much again.
		c.writtenLocked()
	}
	m := &c.marks
	for i, p := range m.unanswered {
		if p.seq != seq {
			continue
		}
		got := p.marks
		if i > 0 {
			got = nil
			for _, earlier := range m.unanswered[:i+1] {
				got = append(got, earlier.marks...)
			}
		}
		m.unanswered = m.unanswered[i+1:]
		if len(m.unanswered) == 0 {
			m.unanswered = nil
		}
		m.asked -= len(got)
		if len(got) > 0 {
			c.srv.o.Observer.Confirmed(len(got), c.srv.now()-p.at)
		}
		c.startWriteLocked()
		return got
	}
	return nil
}
