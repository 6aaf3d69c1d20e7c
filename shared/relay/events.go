package relay

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"blindpost/shared/gateway"
)

// heldConn loads a connection and, if ready says so, holds the member behind it.
func (r *Relay) heldConn(ctx context.Context, id gateway.Conn, ready func(*Conn) bool) (*Conn, func(), error) {
	c, err := r.LoadConn(ctx, id)
	if err != nil || c == nil || !ready(c) {
		return c, func() {}, err
	}
	return r.hold(ctx, c)
}

// heldInTurn is heldConn for what must not come before the frames of the
// connection that this one has replaced.
func (r *Relay) heldInTurn(ctx context.Context, id gateway.Conn, ready func(*Conn) bool) (*Conn, func(), error) {
	c, err := r.LoadConn(ctx, id)
	if err != nil || c == nil || !ready(c) {
		return c, func() {}, err
	}
	before := c.after
	// Wait before the member is held: a handler that we wait for may have to hold it.
	if err := r.awaitTurn(ctx, c); err != nil {
		return nil, func() {}, err
	}
	c, release, err := r.hold(ctx, c)
	if c != nil && c.after == before {
		c.after = "" // to be saved with the next change
	}
	return c, release, err
}

func (r *Relay) hold(ctx context.Context, c *Conn) (*Conn, func(), error) {
	release, err := r.Hold(ctx, c.Group, c.Member)
	if err != nil {
		return nil, func() {}, err
	}
	// A job may have written the record before we held the member.
	if c, err = r.LoadConn(ctx, c.ID); err != nil {
		release()
		return nil, func() {}, err
	}
	return c, release, nil
}

// Frame gives a frame to the dialect of its connection.
func (r *Relay) Frame(ctx context.Context, e gateway.FrameEvent) (gateway.FrameResult, error) {
	c, release, err := r.heldInTurn(ctx, e.Conn, (*Conn).admitted)
	if err != nil {
		return gateway.FrameResult{}, err
	}
	defer release()
	if c == nil {
		return gateway.FrameResult{}, r.closeUnknown(ctx, e.Conn)
	}
	c.frame = e.ID
	d := r.dialect(c.Dialect)
	if d == nil {
		return gateway.FrameResult{}, r.closeUnknown(ctx, e.Conn)
	}
	again := c.Joined() && !c.Admitted // an earlier run of this admission has joined
	res, err := d.Frame(ctx, c, e)
	if err == nil && again && !c.Admitted {
		err = r.announceAgain(ctx, c)
	}
	return res, err
}

// closeUnknown closes a connection that has no record.
func (r *Relay) closeUnknown(ctx context.Context, id gateway.Conn) error {
	err := r.front.Close(ctx, id, gateway.CloseInternal, "unknown connection")
	if err != nil && !errors.Is(err, gateway.ErrGone) {
		return fmt.Errorf("failed to close an unknown connection: %w", err)
	}
	return nil
}

// Confirmed takes frames that the peer has received out of its mailbox.
func (r *Relay) Confirmed(ctx context.Context, e gateway.ConfirmedEvent) error {
	c, release, err := r.heldConn(ctx, e.Conn, (*Conn).Joined)
	if err != nil {
		return err
	}
	defer release()
	if c == nil {
		return nil
	}
	if d, ok := r.dialect(c.Dialect).(Confirmer); ok {
		own := slices.DeleteFunc(slices.Clone(e.Marks), func(m uint64) bool { return m&DialectMark == 0 })
		if len(own) > 0 {
			if err := d.Confirmed(ctx, c, own); err != nil {
				return err
			}
			e.Marks = slices.DeleteFunc(slices.Clone(e.Marks), func(m uint64) bool { return m&DialectMark != 0 })
		}
	}
	return r.confirmed(ctx, c, e.Marks)
}

// Disconnect ends a connection: its front has said so. If that fails, a job tries
// again: no front repeats its report for ever, and our own never does.
func (r *Relay) Disconnect(ctx context.Context, e gateway.DisconnectEvent) error {
	_, err := r.end(ctx, e.Conn, false)
	if err != nil {
		err = errors.Join(err, r.endLater(ctx, e.Conn))
	}
	return err
}

// end does all that follows the end of a connection. It may be called again, also
// after a call that has failed or died: the record of the connection is deleted last.
// again is as for leave. It reports whether there was a record.
func (r *Relay) end(ctx context.Context, id gateway.Conn, again bool) (bool, error) {
	// In turn, because a deleted record says that the frames of all connections before
	// are handled too.
	c, release, err := r.heldInTurn(ctx, id, (*Conn).Joined)
	if err != nil {
		return false, err
	}
	defer release()
	if c == nil {
		return false, nil
	}
	if c.Joined() && (!c.memberLeft || again) {
		if err := r.leave(ctx, c.Group, c.Member, c.ID, again); err != nil {
			return true, err
		}
	}
	if d := r.dialect(c.Dialect); d != nil {
		if err := d.Disconnected(ctx, c); err != nil {
			return true, err
		}
	}
	if err := r.deleteConn(ctx, id); err != nil {
		return true, err
	}
	if c.Joined() {
		r.observe.Left(c.Dialect, c.Role)
	}
	return true, nil
}
