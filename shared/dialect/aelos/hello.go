package aelos

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"blindpost/shared/gateway"
	"blindpost/shared/relay"
	"blindpost/shared/table"
)

// hello admits a peer by its first frame. A frame that is delivered again has the same
// outcome as the first time.
func (d *Dialect) hello(ctx context.Context, c *relay.Conn, e gateway.FrameEvent) error {
	if e.Oversize || int64(len(e.Data)) > d.lim().MaxFrame {
		d.core.Observer().Authenticated(name, "", codeLimit)
		return d.failWith(ctx, c, codeLimit, "the frame is larger than allowed", gateway.CloseTooLarge)
	}
	if d.core.Now().Sub(c.At) >= d.lim().HelloTimeout && c.Private == nil {
		return d.refuse(ctx, c, "", codeProto, "no hello within the time allowed")
	}
	if !e.Text {
		return d.refuse(ctx, c, "", codeProto, "the first frame is hello")
	}
	m, err := parseControl(e.Data)
	switch {
	case err != nil:
		return d.refuse(ctx, c, "", codeProto, "the frame cannot be read")
	case m.t != typeHello:
		return d.refuse(ctx, c, "", codeProto, "the first frame is hello")
	case m.role != roleBoat && m.role != roleViewer:
		return d.refuse(ctx, c, "", codeProto, "there is no such role")
	case m.proto == 0:
		return d.refuse(ctx, c, m.role, codeProto, "the relay speaks versions 1 and 2")
	}
	a, err := d.admit(ctx, m.role, m.token)
	if errors.Is(err, errRefused) {
		return d.refuse(ctx, c, m.role, codeAuth, refusedText)
	}
	if err != nil {
		return err
	}
	before, again := privateOf(c)
	p := private{
		role: m.role, proto: m.proto, group: a.group, sub: a.sub, ctl: a.ctl, expires: a.expires,
		hello: e.ID, counted: before.counted,
	}
	// The record comes first: if the handler dies after the next step, Disconnected finds
	// the roster that the connection is in.
	if err := d.savePrivate(ctx, c, p); err != nil {
		return err
	}
	if err := d.closeAtExpiry(ctx, c.ID, p); err != nil {
		return err
	}
	if err := d.settleLater(ctx, p.group, d.core.Now().Add(settleAfter)); err != nil {
		return err
	}
	if p.role == roleBoat {
		return d.attachBoat(ctx, c, p, again)
	}
	return d.attachViewer(ctx, c, p)
}

func (d *Dialect) savePrivate(ctx context.Context, c *relay.Conn, p private) error {
	p.put(c)
	return d.core.SaveConn(ctx, c)
}

// finishAttach brings a peer that is in the roster up to date, and counts it.
func (d *Dialect) finishAttach(ctx context.Context, c *relay.Conn, p private) error {
	if err := d.settleFor(ctx, p.group, c.ID); err != nil {
		return err
	}
	r, err := d.look(ctx, p.group)
	if err != nil {
		return err
	}
	if v := r.byConn(c.ID); v != nil && (v.Said == saidNothing || d.core.Now().UnixMilli() < v.NotBefore) {
		// An earlier post to it has failed, and the time of the retry has not come.
		return fmt.Errorf("failed to bring a viewer up to date: %w", table.ErrBusy)
	}
	if p.counted {
		return nil
	}
	d.core.Observer().Authenticated(name, p.role, "ok")
	d.core.Observer().Joined(name, p.role)
	p.counted = true
	return d.savePrivate(ctx, c, p)
}

// attachBoat makes c the connection of its boat. If the boat had another connection, the
// viewers are told nothing.
func (d *Dialect) attachBoat(ctx context.Context, c *relay.Conn, p private, again bool) error {
	replaced := false
	_, _, err := d.change(ctx, p.group, func(r *roster) bool {
		before := r.Boat
		// A hello that is delivered again may come after a newer connection.
		replaced = slices.Contains(r.Replaced, c.ID) ||
			again && before != nil && before.Conn != c.ID && before.At > c.At.UnixMilli()
		if replaced || before != nil && before.Conn == c.ID {
			return false
		}
		if before != nil {
			r.Replaced = append(r.Replaced, before.Conn)
		}
		r.Boat = &boat{Conn: c.ID, Proto: p.proto, At: c.At.UnixMilli()}
		return true
	})
	if err != nil {
		return err
	}
	if replaced {
		return d.close(ctx, c.ID, gateway.CloseReplaced, replacedText)
	}
	return d.finishAttach(ctx, c, p)
}

const replacedText = "replaced by a newer connection"

// attachViewer gives a viewer a tag.
func (d *Dialect) attachViewer(ctx context.Context, c *relay.Conn, p private) error {
	full, err := d.addViewer(ctx, c, p)
	if err == nil && full {
		// Some of the viewers may be lost without a report of their end.
		if err = d.prune(ctx, p.group); err == nil {
			full, err = d.addViewer(ctx, c, p)
		}
	}
	if err != nil {
		return err
	}
	if full {
		return d.refuse(ctx, c, p.role, codeLimit, "the boat has as many viewers as it may")
	}
	return d.finishAttach(ctx, c, p)
}

func (d *Dialect) addViewer(ctx context.Context, c *relay.Conn, p private) (full bool, err error) {
	var failed error
	_, _, err = d.change(ctx, p.group, func(r *roster) bool {
		if full = false; r.byConn(c.ID) != nil {
			return false
		}
		full = int64(len(r.Viewers)) >= d.lim().MaxViewers
		if most := d.lim().MaxViewersPerSub; most > 0 && r.viewersOf(p.sub) >= most {
			full = true
		}
		if full {
			return false
		}
		var t tag
		if t, failed = d.newTag(r); failed != nil {
			return false
		}
		r.Viewers = append(r.Viewers, viewer{Tag: t, Conn: c.ID, Proto: p.proto, Sub: p.sub})
		return true
	})
	return full, errors.Join(err, failed)
}

// newTag makes a tag that the roster does not hold.
func (d *Dialect) newTag(r *roster) (tag, error) {
	for {
		var t tag
		if err := d.core.Random(t[:]); err != nil {
			return tag{}, err
		}
		if r.free(t) {
			return t, nil
		}
	}
}
