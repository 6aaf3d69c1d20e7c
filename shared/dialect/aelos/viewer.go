package aelos

import (
	"context"
	"encoding/json"
	"errors"
	"slices"

	"blindpost/shared/gateway"
	"blindpost/shared/relay"
)

// fromViewer handles a frame of a viewer.
func (d *Dialect) fromViewer(ctx context.Context, c *relay.Conn, p private, r *roster, e gateway.FrameEvent) (string, error) {
	if r.byConn(c.ID) == nil {
		return kindUnexpected, d.close(ctx, c.ID, gateway.CloseGoingAway, "connection was taken for lost")
	}
	if e.Text {
		return d.viewerControl(ctx, c, p, r, e.Data)
	}
	kind := kindOf(e.Data, false)
	switch kind {
	case kindUndecodable:
		if !d.within(rateFrames, string(c.ID), d.lim().ViewerFrames) {
			return kind, d.tooMany(ctx, c)
		}
		d.drop(dropUndecodable)
		return kind, nil
	case kindSnapshot, kindResult:
		return d.wrongLeg(ctx, c)
	}
	if p.proto < 2 {
		return d.wrongLeg(ctx, c) // version 1 has no commands
	}
	if !d.within(rateCommands, string(c.ID), closeFactor*d.lim().Commands) {
		return kind, d.tooMany(ctx, c)
	}
	ok, err := d.core.TakeMessageOf(ctx, c, d.lim().Commands)
	switch {
	case err != nil:
		return kind, err
	case !ok:
		return kind, d.refuseCommand(ctx, c, kind, dropRate)
	case !p.ctl:
		return kind, d.refuseCommand(ctx, c, kind, dropRole)
	case !d.rates.take(rate{rateBytes, p.group + p.sub}, int64(len(e.Data)), d.core.Now(), d.commandBytes()):
		return kind, d.refuseCommand(ctx, c, kind, dropRate)
	}
	reason, err := d.toBoat(ctx, r, c, 2, func(b gateway.Conn, t tag) error {
		return withTag(t, e.Data, func(out []byte) error {
			_, err := d.core.Front().Post(ctx, b, gateway.Message{Data: out})
			return err
		})
	})
	if err != nil {
		return kind, err
	}
	if reason != "" {
		return kind, d.refuseCommand(ctx, c, kind, reason)
	}
	d.core.Observer().Message(relay.ClassLive, relay.Delivered)
	return kind, nil
}

// commandBytes is how many bytes of commands a user may send per minute: at least one
// frame of the largest size.
func (d *Dialect) commandBytes() int64 {
	l := d.lim()
	if l.CommandBytes == 0 {
		return 0
	}
	return max(l.CommandBytes, l.MaxFrame)
}

// closeFactor is how many times its rate of commands a viewer may send before its
// connection is closed; up to then each command over the rate is answered.
const closeFactor = 10

// refuseCommand counts a command that does not reach the boat, and answers with a result:
// the viewer must not believe that it was carried out. An identify has no answer.
func (d *Dialect) refuseCommand(ctx context.Context, c *relay.Conn, kind, reason string) error {
	d.drop(reason)
	if kind != kindCommand {
		return nil
	}
	res := resultFrame{T: typeRelayResult, StatusCode: statusUnavailable, Message: "the boat cannot be reached"}
	switch reason {
	case dropRate:
		res.StatusCode, res.Message = statusTooMany, "too many commands"
	case dropRole:
		res.Message = "this session may not send commands"
	case dropProto:
		res.Message = "the boat takes no commands"
	case dropTooLarge:
		res.Message = "the command is too large for the boat's connection"
	}
	return d.reply(ctx, c, res)
}

func (d *Dialect) viewerControl(ctx context.Context, c *relay.Conn, p private, r *roster, data []byte) (string, error) {
	within := d.within(rateFrames, string(c.ID), d.lim().ViewerFrames)
	m, err := parseControl(data)
	if err != nil {
		return d.unreadable(ctx, c)
	}
	switch m.t {
	case typeHs1, typePing, typePong:
		if !within {
			return m.t, d.tooMany(ctx, c)
		}
	default:
		return d.wrongLeg(ctx, c)
	}
	switch m.t {
	case typeHs1:
		if d.largeHandshake(data) {
			return m.t, d.tooLargeHandshake(ctx, c)
		}
		return m.t, d.hs1(ctx, c, p, r, m)
	case typePing:
		return m.t, d.pong(ctx, c)
	}
	return m.t, nil
}

// hs1 forwards the beginning of a handshake to the boat, with the tag from the roster.
func (d *Dialect) hs1(ctx context.Context, c *relay.Conn, p private, r *roster, m control) error {
	if r.Boat != nil && !d.takeHandshake(p) {
		d.drop(dropRate)
		return d.reply(ctx, c, errorFrame{T: typeError, Code: codeLimit, Msg: "too many handshakes with this boat"})
	}
	reason, err := d.toBoat(ctx, r, c, 1, func(b gateway.Conn, t tag) error {
		return d.post(ctx, b, hs1Frame{T: typeHs1, VS: t.String(), E: json.RawMessage(m.e)})
	})
	if err != nil || reason == "" {
		return err
	}
	return d.reply(ctx, c, errorFrame{T: typeError, Code: codeBoatOffline, Msg: "the boat cannot be reached"})
}

// toBoat posts a frame of a viewer to the boat, if the boat speaks at least version
// proto. A reason other than "" says why the frame did not reach the boat.
func (d *Dialect) toBoat(ctx context.Context, r *roster, c *relay.Conn, proto int, post func(gateway.Conn, tag) error) (reason string, _ error) {
	for range maxTries {
		v := r.byConn(c.ID)
		switch {
		case v == nil || r.Boat == nil:
			return dropOffline, nil
		case r.Boat.Proto < proto:
			return dropProto, nil
		}
		var err error
		if r.Boat.Listed && slices.Contains(r.Told, v.Tag) {
			err = post(r.Boat.Conn, v.Tag)
			if errors.Is(err, gateway.ErrTooLarge) {
				return dropTooLarge, nil
			}
			if err == nil || !errors.Is(err, gateway.ErrGone) {
				return "", err
			}
			// Lost, or replaced since the roster was read.
			err = d.leave(ctx, r.group, r.Boat.Conn)
		} else {
			// The boat must know the tag before it gets frames with it.
			err = d.settleFor(ctx, r.group, r.Boat.Conn)
		}
		if err != nil {
			return "", err
		}
		if r, err = d.look(ctx, r.group); err != nil {
			return "", err
		}
	}
	return dropOffline, nil
}
