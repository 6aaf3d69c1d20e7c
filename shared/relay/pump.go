package relay

import (
	"context"
	"errors"
	"fmt"
	"time"

	"blindpost/shared/gateway"
	"blindpost/shared/table"
)

const (
	// A pump posts at most this much before it waits for the peer to confirm,
	// so that a long mailbox neither overruns the send buffer of a front nor
	// piles up unconfirmed. Where a front confirms nothing, the pump leaves the rest to
	// a job after this much, or this long: a handler must end before its time is over.
	pumpFrames = 128
	pumpBytes  = 1 << 20
	pumpTime   = 5 * time.Second
	// drainAgainAfter is when a lane is pumped again at the latest after a post
	// has failed.
	drainAgainAfter = 5 * time.Second
)

// Open starts delivery to the connection of a member that has joined: first the
// frames that wait in the lane, oldest first, then new ones. The caller holds the
// member and has posted all that must come before.
func (r *Relay) Open(ctx context.Context, c *Conn) error {
	return r.pump(ctx, c)
}

// pump posts the lane in order until it is empty, and then turns the member open. When
// the window is full it stops, and goes on when the peer has confirmed, or in a job. It
// runs only while the member is held, and posts only to its current connection.
func (r *Relay) pump(ctx context.Context, c *Conn) error {
	if c.pausedAt != 0 {
		c.pausedAt = 0
		if err := r.savePump(ctx, c); err != nil {
			return err
		}
	}
	frames, bytes := 0, 0       // posted, and to be confirmed by the peer
	done := pumped{at: r.now()} // posted, and never to be confirmed
	unconfirmed := int64(0)     // the last number that the peer is to confirm
	var sent []uint64
	for {
		m, err := r.GetMember(ctx, c.Group, c.Member)
		if err != nil {
			return err
		}
		if m == nil || m.Conn != c.ID {
			return nil // c was replaced or lost, or the member was removed
		}
		if m.connState == connOpen {
			return nil
		}
		entries, err := r.readLane(ctx, m.Lane, c.posted, pumpFrames-frames)
		if err != nil {
			return err
		}
		if len(entries) == 0 && c.posted == 0 && m.stored+m.transient > 0 {
			// The lane is empty, but the counters are not zero: its frames have expired.
			if again, err := r.recount(ctx, m); err != nil || again {
				if err != nil {
					return err
				}
				continue
			}
		}
		if len(entries) == 0 {
			open, err := r.turnOpen(ctx, m)
			if err != nil || open {
				return err
			}
			continue // something was appended since: look again
		}
		sent = sent[:0]
		for _, e := range entries {
			if bytes > 0 && bytes+len(e.frame.Data) > pumpBytes {
				frames = pumpFrames
				break
			}
			if e.epoch > c.Epoch {
				return nil // bound to a newer connection, which has replaced c
			}
			gone, outcome, err := r.pumpOne(ctx, m, e)
			if err != nil || gone {
				return err
			}
			c.posted = e.seq
			if outcome == gateway.Pending {
				frames, bytes = frames+1, bytes+len(e.frame.Data)
				unconfirmed = e.seq
				continue
			}
			if outcome == gateway.Sent {
				sent = append(sent, e.mark())
			}
			if done.add(e, r.now()) {
				break
			}
		}
		if len(sent) > 0 {
			if err := r.confirm(ctx, m.Group, m.Key, m.Lane, sent); err != nil {
				return err
			}
		}
		if frames >= pumpFrames {
			c.pausedAt = unconfirmed
		}
		if err := r.savePump(ctx, c); err != nil || c.pausedAt != 0 {
			return err
		}
		if done.full {
			return r.sendJob(ctx, jobPump, string(c.ID), jobBody{Conn: c.ID})
		}
	}
}

// pumped is how much a pump has posted that the peer will not confirm.
type pumped struct {
	at     time.Time // when it began
	frames int
	bytes  int
	full   bool // the rest is for a job
}

func (p *pumped) add(e *entry, now time.Time) bool {
	p.frames, p.bytes = p.frames+1, p.bytes+len(e.frame.Data)
	p.full = p.frames >= pumpFrames || p.bytes >= pumpBytes || now.Sub(p.at) >= pumpTime
	return p.full
}

// savePump saves the position of the pump, and nothing else: a job may pump while
// a handler changes the rest of the record.
func (r *Relay) savePump(ctx context.Context, c *Conn) error {
	op := table.Op{Set: table.Attrs{recPosted: table.Number(c.posted)}}
	if c.pausedAt != 0 {
		op.Set[recPausedAt] = table.Number(c.pausedAt)
	} else {
		op.Remove = []string{recPausedAt}
	}
	return r.changeConn(ctx, c.ID, op)
}

// pumpOne posts one entry. It drops a transient entry of an earlier connection
// instead, and tells the sender.
func (r *Relay) pumpOne(ctx context.Context, m *Member, e *entry) (gone bool, _ gateway.Outcome, _ error) {
	if e.conn != "" && e.conn != m.Conn {
		return false, gateway.Sent, r.dropTransient(ctx, m, e)
	}
	outcome, err := r.front.Post(ctx, m.Conn, e.frame.message(e.mark()))
	switch {
	case err == nil:
		return false, outcome, nil
	case errors.Is(err, gateway.ErrGone):
		r.ReportLost(ctx, m)
		return true, 0, nil
	case errors.Is(err, gateway.ErrTooLarge):
		// This front will never carry the frame, and the frames behind it must not
		// wait. It stays in the lane for a front that can carry it.
		r.observe.Dropped(ClassStored, "too_large_for_front", 1)
		return false, 0, nil
	default:
		return false, 0, fmt.Errorf("failed to post from a lane: %w", err)
	}
}

// turnOpen ends the draining of a member, on condition that nothing was appended to
// its lane since it was read. It reports false if something was.
func (r *Relay) turnOpen(ctx context.Context, m *Member) (bool, error) {
	set := table.Attrs{attrConnState: table.Number(connOpen)}
	_, err := r.table.Write(ctx, m.updateOp(set, m.ifLane(), m.ifConn(), m.ifTail()))
	if errors.Is(err, table.ErrCondition) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("failed to open a member: %w", err)
	}
	return true, nil
}

// drainAgain puts a member back to draining after a post has failed, and sends a job
// that pumps its lane.
func (r *Relay) drainAgain(ctx context.Context, m *Member) error {
	// The first job is sent before the write: it runs even if we die in between.
	body := jobBody{Conn: m.Conn}
	if err := r.sendJobAt(ctx, jobPump, string(m.Conn), body, r.now().Add(drainAgainAfter)); err != nil {
		return err
	}
	set := table.Attrs{attrConnState: table.Number(connDraining)}
	_, err := r.table.Write(ctx, m.updateOp(set, m.ifLane(), m.ifConn()))
	if err != nil && !errors.Is(err, table.ErrCondition) {
		return fmt.Errorf("failed to put a member back to draining: %w", err)
	}
	return r.sendJob(ctx, jobPump, string(m.Conn), body)
}

// confirmed handles the confirmation of the peer.
func (r *Relay) confirmed(ctx context.Context, c *Conn, marks []uint64) error {
	if !c.Joined() {
		return nil
	}
	// A replaced connection may still confirm what it got: it is the same
	// device. It confirms in c.lane, not in the lane of a later incarnation.
	if err := r.confirm(ctx, c.Group, c.Member, c.lane, marks); err != nil {
		return err
	}
	if c.pausedAt == 0 {
		return nil
	}
	for _, mark := range marks {
		if markSeq(mark) == c.pausedAt {
			return r.pump(ctx, c)
		}
	}
	return nil
}

// dropTransient tells the sender of a live frame that it did not arrive.
func (r *Relay) dropTransient(ctx context.Context, m *Member, e *entry) error {
	if !e.live {
		return nil
	}
	r.observe.Dropped(ClassLive, "connection_lost", 1)
	d := r.dialectOfGroup(m.Group)
	if d == nil {
		return nil
	}
	f, ok := d.Undelivered(m.Key)
	if !ok {
		return nil
	}
	return r.Notify(ctx, m.Group, e.sender, f)
}
