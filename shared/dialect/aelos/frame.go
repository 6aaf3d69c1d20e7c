package aelos

import (
	"context"
	"time"

	"blindpost/shared/gateway"
	"blindpost/shared/relay"
)

// Frame handles one frame.
func (d *Dialect) Frame(ctx context.Context, c *relay.Conn, e gateway.FrameEvent) (gateway.FrameResult, error) {
	start := time.Now()
	kind, err := d.frame(ctx, c, e)
	d.core.Observer().Frame(name, kind, time.Since(start))
	// Every result has the limit, because the settings may have changed.
	return gateway.FrameResult{ReadLimit: d.lim().MaxFrame}, err
}

func (d *Dialect) frame(ctx context.Context, c *relay.Conn, e gateway.FrameEvent) (string, error) {
	p, admitted := privateOf(c)
	if !admitted || (e.ID != "" && e.ID == p.hello) {
		return typeHello, d.hello(ctx, c, e)
	}
	if e.Oversize || int64(len(e.Data)) > d.lim().MaxFrame {
		d.drop(dropTooLarge)
		return kindOversize, d.failWith(ctx, c, codeLimit, "the frame is larger than allowed", gateway.CloseTooLarge)
	}
	if !d.core.Now().Before(d.closeTime(p.expires)) {
		return kindUnexpected, d.fail(ctx, c, codeAuth, refusedText)
	}
	r, err := d.look(ctx, p.group)
	if err != nil {
		return kindUnexpected, err
	}
	if p.role == roleBoat {
		return d.fromBoat(ctx, c, p, r, e)
	}
	return d.fromViewer(ctx, c, p, r, e)
}

// wrongLeg answers a frame that its sender must not send (section 3).
func (d *Dialect) wrongLeg(ctx context.Context, c *relay.Conn) (string, error) {
	return kindUnexpected, d.fail(ctx, c, codeProto, "this frame is not for you to send")
}

// unreadable answers a control frame that cannot be read.
func (d *Dialect) unreadable(ctx context.Context, c *relay.Conn) (string, error) {
	return kindUndecodable, d.fail(ctx, c, codeProto, "the frame cannot be read")
}

// tooMany closes the connection of a peer that is over its rate with frames that must not
// be dropped silently.
func (d *Dialect) tooMany(ctx context.Context, c *relay.Conn) error {
	return d.fail(ctx, c, codeLimit, "too many frames on this connection")
}

// largeHandshake reports whether a handshake is larger than allowed. A real one has a few
// hundred bytes; a sender must not make the recipient read much more.
func (d *Dialect) largeHandshake(data []byte) bool {
	most := d.lim().MaxHandshake
	return most > 0 && int64(len(data)) > most
}

func (d *Dialect) tooLargeHandshake(ctx context.Context, c *relay.Conn) error {
	d.drop(dropTooLarge)
	return d.failWith(ctx, c, codeLimit, "the handshake is larger than allowed", gateway.CloseTooLarge)
}

func (d *Dialect) pong(ctx context.Context, c *relay.Conn) error {
	return d.reply(ctx, c, pongFrame{T: typePong})
}
