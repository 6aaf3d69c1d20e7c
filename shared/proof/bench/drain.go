package bench

import (
	"fmt"
	"time"

	"github.com/gobwas/ws"
)

// drain connects all clients and measures how long it takes until each has all
// that waited for it, in order, and the relay has taken note.
func (r *storedRun) drain(relay Relay, what string) (n uint64, l lap, err error) {
	for _, b := range r.boxes {
		r.fleet.watch("storing agent", b.agentConn)
	}
	n = r.total()
	expect := time.Duration(n) * 50 * time.Microsecond
	conns := make([]*conn, len(r.boxes))
	watch := start(relay, what, min(max(expect, time.Second), 10*time.Second))
	err = r.fleet.each(len(r.boxes), rush, func(i int) (err error) {
		conns[i], err = r.drainOne(r.boxes[i])
		return err
	})
	l = watch.stop()
	if err != nil {
		return 0, lap{}, err
	}
	if err := r.fleet.leaveAll(conns); err != nil {
		return 0, lap{}, err
	}
	return n, l, r.fleet.each(len(r.boxes), openers, func(i int) error { return r.lookAgain(r.boxes[i]) })
}

// drainOne connects one client and empties its mailbox.
func (r *storedRun) drainOne(b *mailbox) (*conn, error) {
	c, err := r.fleet.enterClient(b.home)
	if err != nil {
		return nil, err
	}
	d := &drainer{conn: c, reader: reader{from: b.agent.PublicKey(), size: r.size}, want: b.stored.Load()}
	if err := d.run(); err != nil {
		return nil, r.fleet.because(fmt.Errorf("draining client, with %d of %d messages: %w", d.reader.seq, d.want, err))
	}
	c.within(0)
	return c, nil
}

// drainer is a client that empties its mailbox.
type drainer struct {
	conn   *conn
	reader reader
	want   uint64
	asked  bool
}

func (d *drainer) run() error {
	if d.want == 0 {
		if err := d.ask(); err != nil {
			return err
		}
	}
	for {
		d.conn.within(callTime)
		op, payload, err := d.conn.read()
		if err != nil {
			return err
		}
		if op == ws.OpPing {
			// The pong, which is sent, confirms. An empty ping is one that
			// keeps connections alive.
			if d.reader.seq == d.want && len(payload) > 0 && !d.asked {
				err = d.ask()
			}
		} else if m, ok := parseMessage(payload); ok {
			err = d.reader.take(m)
		} else if done, errFrame := d.other(payload); done || errFrame != nil {
			return errFrame
		}
		if err != nil {
			return err
		}
	}
}

// ask asks for an answer that says that all before it has been handled.
func (d *drainer) ask() error {
	d.asked = true
	return d.conn.send(presenceRequest())
}

// other takes a frame that is no message and reports whether it is the answer.
func (d *drainer) other(b []byte) (bool, error) {
	f, err := decode(b)
	switch {
	case err != nil:
		return false, err
	case isPresenceList(f) && d.asked:
		return true, nil
	case f.GetPresenceEvent() == nil:
		return false, fmt.Errorf("an unexpected frame has come (%T)", f.GetFrame())
	}
	return false, nil
}

// lookAgain connects the client once more: its mailbox must be empty.
func (r *storedRun) lookAgain(b *mailbox) error {
	c, err := r.fleet.enterClient(b.home)
	if err != nil {
		return err
	}
	defer r.fleet.leave(c)
	c.within(callTime)
	if err := c.barrier(); err != nil {
		return fmt.Errorf("a mailbox was drained and is not empty: %w", err)
	}
	return nil
}
