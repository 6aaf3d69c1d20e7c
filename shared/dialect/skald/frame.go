package skald

import (
	"context"
	"time"

	"google.golang.org/protobuf/proto"

	"blindpost/shared/dialect/skald/skaldpb"
	"blindpost/shared/gateway"
	"blindpost/shared/relay"
)

// Frame decodes one frame and gives it to its handler.
func (d *Dialect) Frame(ctx context.Context, c *relay.Conn, e gateway.FrameEvent) (gateway.FrameResult, error) {
	start := time.Now()
	kind, res, err := d.frame(ctx, c, e)
	d.core.Observer().Frame(d.Name(), kind, time.Since(start))
	return res, err
}

func (d *Dialect) frame(ctx context.Context, c *relay.Conn, e gateway.FrameEvent) (string, gateway.FrameResult, error) {
	if c.Private != nil {
		return d.firstFrame(ctx, c, e)
	}
	kind, err := d.nextFrame(ctx, c, e)
	// Every result has the limit, because the settings may have changed.
	return kind, gateway.FrameResult{ReadLimit: d.readLimit(c)}, err
}

// firstFrame handles the only frame that is accepted before AuthOk, an Auth.
func (d *Dialect) firstFrame(ctx context.Context, c *relay.Conn, e gateway.FrameEvent) (string, gateway.FrameResult, error) {
	const kind = "auth"
	no := func(code, message string) (string, gateway.FrameResult, error) {
		return kind, gateway.FrameResult{}, d.refuse(ctx, c, "", code, message)
	}
	var f skaldpb.RelayFrame
	switch {
	case e.Oversize || int64(len(e.Data)) > d.lim().MaxFrame:
		return no(codePayloadTooLarge, "the frame is larger than allowed")
	case d.core.Now().Sub(c.At) >= d.lim().ChallengeTimeout:
		return no(codeChallengeTimeout, "no Auth within the time allowed")
	case e.Text:
		return no(codeBadRequest, "frames are binary")
	case proto.Unmarshal(e.Data, &f) != nil:
		return no(codeBadRequest, "the frame cannot be decoded")
	case f.GetAuth() == nil:
		return no(codeBadRequest, "the first frame is Auth")
	}
	ok, err := d.auth(ctx, c, f.GetAuth())
	res := gateway.FrameResult{}
	if ok {
		res.ReadLimit = d.readLimit(c)
	}
	return kind, res, err
}

// readLimit is the largest frame that an authenticated peer may send.
func (d *Dialect) readLimit(c *relay.Conn) int64 {
	if !c.Joined() {
		return d.lim().MaxFrame // a connection for pairing
	}
	return max(d.lim().MaxFrame, d.lim().MaxLiveFrame)
}

// nextFrame handles a frame of an authenticated peer (section 13).
func (d *Dialect) nextFrame(ctx context.Context, c *relay.Conn, e gateway.FrameEvent) (string, error) {
	if e.Oversize {
		return "oversize", d.fail(ctx, c, codePayloadTooLarge, "the frame is larger than allowed")
	}
	if e.Text {
		return "text", nil // ignored: the transport is binary
	}
	var f skaldpb.RelayFrame
	if proto.Unmarshal(e.Data, &f) != nil {
		return "undecodable", d.reject(ctx, c, "the frame cannot be decoded")
	}
	size := int64(len(e.Data))
	if m := f.GetMessage(); m != nil {
		return "message", d.message(ctx, c, m, size)
	}
	if size > d.lim().MaxFrame {
		return "oversize", d.fail(ctx, c, codePayloadTooLarge, "the frame is larger than allowed")
	}
	switch f := f.GetFrame().(type) {
	case *skaldpb.RelayFrame_PresenceRequest:
		return "presence_request", d.presenceRequest(ctx, c)
	case *skaldpb.RelayFrame_Authorize:
		return "authorize", d.control(ctx, c, func() error { return d.authorize(ctx, c, f.Authorize) })
	case *skaldpb.RelayFrame_PairingStart:
		return "pairing_start", d.control(ctx, c, func() error { return d.pairingStart(ctx, c, f.PairingStart) })
	case *skaldpb.RelayFrame_PairingStop:
		return "pairing_stop", d.control(ctx, c, func() error { return d.pairingStop(ctx, c) })
	case *skaldpb.RelayFrame_Auth:
		if c.WasDone() {
			return "auth", nil // the Auth that was accepted, delivered again
		}
		return "auth", d.reject(ctx, c, "the connection is authenticated already")
	case nil:
		return "empty", d.reject(ctx, c, "the frame is empty")
	default:
		return "relay_only", nil // only the relay may send it: ignored
	}
}

// reject answers a frame that cannot be handled with bad_request, within the rate limit
// of frames that are no messages.
func (d *Dialect) reject(ctx context.Context, c *relay.Conn, message string) error {
	return d.limited(ctx, c, func() error { return d.fail(ctx, c, codeBadRequest, message) })
}

func (d *Dialect) limited(ctx context.Context, c *relay.Conn, handle func() error) error {
	ok, err := d.core.TakeControl(ctx, c)
	if err != nil {
		return err
	}
	if !ok {
		return d.fail(ctx, c, codeRateLimited, "too many frames on this connection")
	}
	return handle()
}

// control runs the handler of a frame that only the agent may send, within the rate
// limit of frames that are no messages. A frame that was handled is not handled again:
// an old list would revoke clients on a newer one, and an old token would be valid again.
func (d *Dialect) control(ctx context.Context, c *relay.Conn, handle func() error) error {
	if c.Role != roleAgent {
		return d.reject(ctx, c, "this frame is for the agent")
	}
	if c.WasDone() {
		return nil
	}
	return d.limited(ctx, c, func() error {
		if err := handle(); err != nil {
			return err
		}
		return d.core.SaveDone(ctx, c)
	})
}
