package agentknock

import (
	"context"
	"errors"

	"blindpost/shared/gateway"
	"blindpost/shared/relay"
)

// deviceFrame handles a frame of a device, which the core holds. A frame on a replaced
// connection still counts, and then the connection is closed: the handler that has
// replaced it may have died before it closed it, and the device would wait for ever.
func (d *Dialect) deviceFrame(ctx context.Context, c *relay.Conn, s *session, f frame) error {
	h := s.keys()
	self, err := d.device(ctx, h)
	if err != nil {
		return err
	}
	if self == nil {
		return d.close(ctx, c.ID, gateway.CloseNormal, "the device was deleted")
	}
	if self.Conn != c.ID {
		return errors.Join(d.deviceSays(ctx, c, h, f), d.close(ctx, c.ID, d.ReplacedCode(), replacedText))
	}
	if _, err := d.greet(ctx, c, s); err != nil && !errors.Is(err, errNotOpen) {
		return err
	}
	return d.deviceSays(ctx, c, h, f)
}

func (d *Dialect) deviceSays(ctx context.Context, c *relay.Conn, h deviceKeys, f frame) error {
	if f.Type == typeSetClientState {
		return d.setClientState(ctx, c, h, f)
	}
	m := move{scope: f.scope, frame: c.FrameID(), device: true}
	switch {
	case f.Type == typeResume:
		m.resume = true
	case f.Type == typeMessage:
		m.event, m.payload = ResponseSent, f.Payload
	case f.Kind == request:
		m.event = RequestTaken
	default:
		m.event = CompletionTaken
	}
	out, err := d.apply(ctx, h, m)
	if err != nil {
		return d.failed(ctx, c, f.scope, err)
	}
	switch {
	case m.resume:
		return d.resumedByDevice(ctx, c, h, f.scope, out)
	case m.event == ResponseSent:
		return d.responseSent(ctx, c, h, f.scope, out)
	case m.event == RequestTaken:
		return d.requestTaken(ctx, h, out)
	default:
		return d.completionTaken(ctx, f.scope, out)
	}
}

// requestTaken tells the client that the device has the request, and delivers a completion
// that has waited for that.
func (d *Dialect) requestTaken(ctx context.Context, h deviceKeys, out outcome) error {
	if !out.taken {
		return nil
	}
	return d.requestDelivered(ctx, h, out.x)
}

func (d *Dialect) requestDelivered(ctx context.Context, h deviceKeys, x *record) error {
	err := d.toClient(ctx, x, receiptFrame(x.scope(request)))
	if x.Completion == Accepted {
		if d.distributed() && !x.Heard { // see ackBefore
			err = errors.Join(err, d.toClient(ctx, x, ackFrame(x.scope(completion))))
		}
		err = errors.Join(err, d.deliver(ctx, h, x, completion, nil))
	}
	return err
}

// completionTaken tells the client that the device has the completion.
func (d *Dialect) completionTaken(ctx context.Context, s scope, out outcome) error {
	if out.x == nil || (out.verdict != Changed && !out.again) {
		return nil
	}
	return d.toClient(ctx, out.x, receiptFrame(s))
}

// responseSent answers a response and posts it to the client.
func (d *Dialect) responseSent(ctx context.Context, c *relay.Conn, h deviceKeys, s scope, out outcome) error {
	var err error
	if out.taken {
		err = d.requestDelivered(ctx, h, out.x)
	}
	switch out.verdict {
	case Dead:
		return errors.Join(err, d.reply(ctx, c, inactiveFrame(s.whole())))
	case Late:
		return errors.Join(err, d.reply(ctx, c, inactiveFrame(s)))
	}
	err = errors.Join(err, d.reply(ctx, c, ackFrame(s)))
	switch out.x.Response {
	case Accepted:
		return errors.Join(err, d.respond(ctx, h, out.x, out.payload))
	case Delivered:
		return errors.Join(err, d.reply(ctx, c, receiptFrame(s)))
	}
	return err
}

// resumedByDevice answers a resume of a device with the state and what waits for it.
func (d *Dialect) resumedByDevice(ctx context.Context, c *relay.Conn, h deviceKeys, s scope, out outcome) error {
	if out.x == nil || out.verdict == Dead {
		return d.reply(ctx, c, inactiveFrame(s))
	}
	err := d.reply(ctx, c, stateFrame(s, out.x.Exchange))
	for _, k := range []kind{request, completion} {
		if err != nil || out.x.of(k) != Accepted {
			continue
		}
		_, err = d.postPayload(ctx, c.ID, h, parcel{scope: out.x.scope(k), address: out.x.Address})
		if errors.Is(err, gateway.ErrGone) { // the next connection gets it from the drain
			d.core.ReportLost(ctx, &relay.Member{Group: c.Group, Key: c.Member, Conn: c.ID})
			return nil
		}
	}
	return err
}
