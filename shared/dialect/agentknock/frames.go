package agentknock

import (
	"context"
	"time"

	"blindpost/shared/gateway"
	"blindpost/shared/relay"
)

// Frame decodes one frame and gives it to its handler.
func (d *Dialect) Frame(ctx context.Context, c *relay.Conn, e gateway.FrameEvent) (gateway.FrameResult, error) {
	start := time.Now()
	kind, err := d.frame(ctx, c, e)
	d.core.Observer().Frame(name, kind, time.Since(start))
	return gateway.FrameResult{}, err
}

// Kinds of frames that have no type, as they are counted.
const (
	kindOversize    = "oversize"
	kindUndecodable = "undecodable"
	kindFlood       = "rate_limited"
)

func (d *Dialect) frame(ctx context.Context, c *relay.Conn, e gateway.FrameEvent) (string, error) {
	s, err := sessionOf(c)
	if err != nil {
		return kindUndecodable, err
	}
	ok, err := d.core.TakeMessageOf(ctx, c, d.lim().FramesPerMinute)
	switch {
	case err != nil:
		return kindFlood, err
	case !ok:
		f := &fault{codeRateLimited, "too many frames on this connection", minute}
		return kindFlood, d.failAndClose(ctx, c, scope{}, f, gateway.CloseTryLater)
	case e.Oversize || len(e.Data) > MaxFrame:
		return kindOversize, d.close(ctx, c.ID, gateway.CloseTooLarge, "the frame is larger than 256 KiB")
	case !e.Text:
		return kindUndecodable, d.invalid(ctx, c, scope{}, "frames are text")
	}
	may := clientMay
	if s.role() == roleDevice {
		may = deviceMay
	}
	f, err := decode(e.Data, may)
	if err != nil {
		return kindUndecodable, d.invalid(ctx, c, s.visible(f.scope), err.Error())
	}
	if s.role() == roleDevice {
		return f.Type, d.deviceFrame(ctx, c, s, f)
	}
	if f.Client != s.Client || (s.Pairing != nil && f.Request != s.Client) {
		return f.Type, d.invalid(ctx, c, scope{}, "the frame names a client or request that is not this connection's")
	}
	release, err := d.hold(ctx, s.keys())
	if err != nil {
		return f.Type, err
	}
	defer release()
	return f.Type, d.clientFrame(ctx, c, s, f)
}

// visible is the scope of an error as the peer may see it: without the ids of other
// clients.
func (s *session) visible(sc scope) scope {
	if s.Client != "" && sc.Client != s.Client {
		return scope{}
	}
	return sc
}

// invalid refuses a malformed frame and closes the connection.
func (d *Dialect) invalid(ctx context.Context, c *relay.Conn, s scope, message string) error {
	return d.failAndClose(ctx, c, s, &fault{code: codeInvalidFrame, message: message}, gateway.ClosePolicy)
}
