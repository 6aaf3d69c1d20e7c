package aelos

import (
	"context"
	"encoding/json"
	"errors"

	"blindpost/shared/gateway"
	"blindpost/shared/relay"
)

// fromBoat handles a frame of a boat.
func (d *Dialect) fromBoat(ctx context.Context, c *relay.Conn, p private, r *roster, e gateway.FrameEvent) (string, error) {
	switch {
	case r.Boat == nil:
		return kindUnexpected, d.close(ctx, c.ID, gateway.CloseGoingAway, "connection was taken for lost")
	case r.Boat.Conn != c.ID:
		return kindUnexpected, d.close(ctx, c.ID, gateway.CloseReplaced, replacedText)
	}
	if e.Text {
		return d.boatControl(ctx, c, r, e.Data)
	}
	within := d.within(rateFrames, string(c.ID), d.lim().BoatFrames)
	kind := kindOf(e.Data, true)
	switch kind {
	case kindUndecodable:
		d.drop(dropUndecodable)
		return kind, nil
	case kindCommand, kindIdentify:
		return d.wrongLeg(ctx, c)
	case kindResult:
		if p.proto < 2 {
			return d.wrongLeg(ctx, c)
		}
		if !within {
			return kind, d.tooMany(ctx, c)
		}
	}
	if !within {
		d.drop(dropRate)
		return kind, nil
	}
	v := r.byTag(tagOf(e.Data))
	if v == nil {
		d.drop(dropNotFound)
		return kind, nil
	}
	if kind == kindResult && v.Proto < 2 {
		d.drop(dropProto)
		return kind, nil
	}
	return kind, d.forward(ctx, r, v, e.Data, kind == kindSnapshot)
}

func (d *Dialect) boatControl(ctx context.Context, c *relay.Conn, r *roster, data []byte) (string, error) {
	m, err := parseControl(data)
	if err != nil {
		return d.unreadable(ctx, c)
	}
	switch m.t {
	case typeHs2:
		switch {
		case d.largeHandshake(data):
			return m.t, d.tooLargeHandshake(ctx, c)
		case !d.within(rateHs2, string(c.ID), hs2PerHs1*d.lim().Handshakes):
			// The boat answers viewers: too many of those must not get it closed.
			d.drop(dropRate)
			return m.t, nil
		}
		return m.t, d.hs2(ctx, r, m)
	case typePing, typePong:
		if !d.within(rateFrames, string(c.ID), d.lim().BoatFrames) {
			return m.t, d.tooMany(ctx, c)
		}
		if m.t == typePing {
			return m.t, d.pong(ctx, c)
		}
		return m.t, nil
	}
	return d.wrongLeg(ctx, c)
}

// hs2 routes the answer of a handshake to the viewer with its tag.
func (d *Dialect) hs2(ctx context.Context, r *roster, m control) error {
	t, ok := parseTag(m.vs)
	if !ok {
		d.drop(dropUndecodable)
		return nil
	}
	v := r.byTag(t)
	if v == nil {
		d.drop(dropNotFound)
		return nil
	}
	err := d.post(ctx, v.Conn, hs2Frame{T: typeHs2, VS: m.vs, E: json.RawMessage(m.e), S: json.RawMessage(m.s)})
	if errors.Is(err, gateway.ErrGone) {
		return d.viewerLost(ctx, r, v)
	}
	return err
}

// forward posts a frame of the boat to a viewer, without the tag. A snapshot that
// cannot be posted now is dropped: the next one follows within a second.
func (d *Dialect) forward(ctx context.Context, r *roster, v *viewer, data []byte, snapshot bool) error {
	var outcome gateway.Outcome
	err := withoutTag(data, func(b []byte) (err error) {
		outcome, err = d.core.Front().Post(ctx, v.Conn, gateway.Message{Data: b, Droppable: snapshot})
		return err
	})
	switch {
	case errors.Is(err, gateway.ErrGone):
		return d.viewerLost(ctx, r, v)
	case errors.Is(err, gateway.ErrTooLarge):
		d.drop(dropTooLarge)
		return nil
	case err != nil && snapshot:
		d.drop(dropLost)
		return nil
	case err != nil:
		return err
	case outcome == gateway.Dropped:
		d.drop(dropSlow)
		return nil
	}
	d.core.Observer().Message(relay.ClassLive, relay.Delivered)
	return nil
}

// viewerLost lets a viewer leave whose connection a post has found gone.
func (d *Dialect) viewerLost(ctx context.Context, r *roster, v *viewer) error {
	d.drop(dropLost)
	return d.leave(ctx, r.group, v.Conn)
}
