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
	// piles up unconfirmed. Where there is nothing to wait for, it posts as much,
	// or for so long, before it leaves the rest to a job: a handler must come to
	// its end while there is time.
	pumpFrames = 128
	pumpBytes  = 1 << 20
	pumpTime   = 5 * time.Second
	// reopenAfter is when a lane is pumped again at the latest after a post
	// has failed.
	reopenAfter = 5 * time.Second
)

// Open lets the connection of a member that has joined take frames: first what
// waits in the lane, oldest first, then new ones. The caller holds the member
// and has said all that must come first.
func (r *Relay) Open(ctx context.Context, c *Conn) error {
	return r.pump(ctx, c)
}

// pump posts the lane in order until it is empty, then turns the member open; or
// until the window is full, to go on when the peer has confirmed, or in a job. It
// runs only while the member is held and for its current connection.
func (r *Relay) pump(ctx context.Context, c *Conn) error {
	if c.pausedAt != 0 {
		c.pausedAt = 0
		if err := r.savePump(ctx, c); err != nil {
			return err
		}
	}
	frames, bytes := 0, 0       // that wait for the peer
	done := pumped{at: r.now()} // what does not
	unconfirmed := int64(0)     // last number that waits for the peer
	var sent []uint64
	for {
		m, err := r.GetMember(ctx, c.Group, c.Member)
		if err != nil {
			return err
		}
		if m == nil || m.Conn != c.ID {
			return nil // replaced, revoked or gone: no longer our lane
		}
		if m.connState == connOpen {
			return nil
		}
		entries, err := r.readLane(ctx, m.Lane, c.posted, pumpFrames-frames)
		if err != nil {
			return err
		}
		if len(entries) == 0 && c.posted == 0 && m.stored+m.transient > 0 {
			// Nothing is there, yet the counters say so: it has expired.
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
				return nil // bound to a newer connection: ours is history
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

// pumped is how much a pump has posted that nobody will confirm.
type pumped struct {
	at     time.Time // when it began
	frames int
	bytes  int
	full   bool // it is enough
}

func (p *pumped) add(e *entry, now time.Time) bool {
	p.frames, p.bytes = p.frames+1, p.bytes+len(e.frame.Data)
	p.full = p.frames >= pumpFrames || p.bytes >= pumpBytes || now.Sub(p.at) >= pumpTime
	return p.full
}

// savePump notes how far the pump has come, and nothing else: a job may pump while
// a handler works on the rest of the record.
func (r *Relay) savePump(ctx context.Context, c *Conn) error {
	op := table.Op{Set: table.Attrs{connPosted: table.Number(c.posted)}}
	if c.pausedAt != 0 {
		op.Set[connPausedAt] = table.Number(c.pausedAt)
	} else {
		op.Remove = []string{connPausedAt}
	}
	return r.changeConn(ctx, c.ID, op)
}

// pumpOne posts one entry. A transient entry of an earlier connection is dropped
// instead; its sender hears of it.
func (r *Relay) pumpOne(ctx context.Context, m *Member, e *entry) (gone bool, _ gateway.Outcome, _ error) {
	if e.conn != "" && e.conn != m.Conn {
		return false, gateway.Sent, r.dropTransient(ctx, m, e)
	}
	outcome, err := r.front.Post(ctx, m.Conn, e.frame.message(e.mark()))
	switch {
	case err == nil:
		return false, outcome, nil
	case errors.Is(err, gateway.ErrGone):
		r.vanished(ctx, m)
		return true, 0, nil
	case errors.Is(err, gateway.ErrTooLarge):
		// No later try on this front will do better, and it must not block what
		// is behind it. It stays in the lane for a front that can carry it.
		r.observe.Dropped(ClassStored, "too_large_for_front", 1)
		return false, 0, nil
	default:
		return false, 0, fmt.Errorf("failed to post from a lane: %w", err)
	}
}

// turnOpen ends the draining of a member on condition that its lane is still the
// one we found empty. It reports false if not.
func (r *Relay) turnOpen(ctx context.Context, m *Member) (bool, error) {
	_, err := r.table.Write(ctx, table.Op{
		Action: table.Update,
		Key:    memberKey(m.Group, m.Key),
		Conds:  []table.Cond{table.IfEqual("lane", table.String(m.Lane)), m.ifConn(), m.ifTail()},
		Set:    table.Attrs{"cs": table.Number(connOpen)},
	})
	if errors.Is(err, table.ErrCondition) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("failed to open a member: %w", err)
	}
	return true, nil
}

// reopen puts a member whose connection could not take a frame back to draining
// and has the pump try again.
func (r *Relay) reopen(ctx context.Context, m *Member) error {
	// One job before the write, to run after it even if we die in between.
	body := jobBody{Conn: m.Conn}
	if err := r.sendJobAt(ctx, jobPump, string(m.Conn), body, r.now().Add(reopenAfter)); err != nil {
		return err
	}
	_, err := r.table.Write(ctx, table.Op{
		Action: table.Update,
		Key:    memberKey(m.Group, m.Key),
		Conds:  []table.Cond{table.IfEqual("lane", table.String(m.Lane)), m.ifConn()},
		Set:    table.Attrs{"cs": table.Number(connDraining)},
	})
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
	// device. But the lane of another incarnation is none of its business.
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
