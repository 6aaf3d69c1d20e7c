package agentknock

import (
	"context"
	"errors"

	"blindpost/shared/gateway"
	"blindpost/shared/relay"
)

// clientFrame handles a frame of a client. The device is held.
func (d *Dialect) clientFrame(ctx context.Context, c *relay.Conn, s *session, f frame) error {
	h := s.keys()
	self, client, err := d.checkClient(ctx, c, s, f.scope)
	if err != nil || self == nil {
		return err
	}
	if f.Type == typeMessage && messageSize(f.scope, addressFor(s, client, f.Request))+len(f.Payload) > MaxFrame {
		// The relay adds the address, which makes the frame too large for the device.
		no := &fault{code: codeInvalidFrame, message: "with the address the message is larger than a frame can be"}
		return d.failAndClose(ctx, c, f.scope, no, gateway.CloseTooLarge)
	}
	m := move{scope: f.scope, frame: c.FrameID(), connAt: c.At, pairing: s.Pairing, self: self}
	switch {
	case f.Type == typeResume:
		m.resume, m.conn = true, c.ID
	case f.Type == typeAck:
		m.event = ResponseTaken
	case f.Kind == request:
		m.event, m.payload, m.conn = RequestSent, f.Payload, c.ID
	default:
		m.event, m.payload, m.conn = CompletionSent, f.Payload, c.ID
	}
	out, err := d.apply(ctx, h, m)
	if err != nil {
		if errors.Is(err, errAttemptOver) {
			return d.attemptOver(ctx, c, f.scope, m)
		}
		return d.failed(ctx, c, f.scope, err)
	}
	switch {
	case m.resume:
		return d.resumed(ctx, c, h, f.scope, out)
	case m.event == ResponseTaken:
		return d.responseTaken(ctx, h, f.scope, out)
	case m.event == RequestSent:
		return d.requestSent(ctx, c, h, f.scope, out)
	default:
		return d.completionSent(ctx, c, h, f.scope, out)
	}
}

// addressFor is the address that goes with a message to the device. The exchange of the
// initial pairing has one, whatever connection its messages come on.
func addressFor(s *session, client *clientRecord, request string) string {
	switch {
	case s.Pairing != nil:
		return s.Pairing.Address
	case client != nil && request == client.ID:
		return client.Address
	}
	return ""
}

// checkClient checks that the device exists and that the client may be connected. If not,
// it closes the connection and returns nil as the device.
func (d *Dialect) checkClient(ctx context.Context, c *relay.Conn, s *session, sc scope) (*relay.Member, *clientRecord, error) {
	inactive := &fault{code: codeClientInactive, message: "the pairing is not active"}
	m, err := d.device(ctx, s.keys())
	if err != nil {
		return nil, nil, err
	}
	if m == nil {
		return nil, nil, d.failAndClose(ctx, c, sc, inactive, gateway.CloseRevoked)
	}
	client, err := d.loadClient(ctx, s.keys(), s.Client)
	switch {
	case err != nil:
		return nil, nil, err
	case client == nil && s.Pairing != nil:
		return m, nil, nil
	case client == nil:
		return nil, nil, d.failAndClose(ctx, c, sc, inactive, gateway.CloseRevoked)
	}
	if code, over := closeCodeOf(client.State); over {
		return nil, nil, d.failAndClose(ctx, c, sc, inactive, code)
	}
	return m, client, nil
}

// failed answers a move that was refused.
func (d *Dialect) failed(ctx context.Context, c *relay.Conn, s scope, err error) error {
	var f *fault
	switch {
	case errors.Is(err, errOtherAttempt):
		f = &fault{code: codeRequestIDConflict, message: errOtherAttempt.Error()}
		return d.failAndClose(ctx, c, s, f, gateway.ClosePolicy)
	case errors.As(err, &f):
		return d.reply(ctx, c, f.frame(s))
	}
	if errors.Is(err, errNoDevice) {
		f = &fault{code: codeClientInactive, message: "the device is gone"}
		return d.failAndClose(ctx, c, s, f, gateway.CloseRevoked)
	}
	return err
}

// requestSent answers a request. The ack comes before the receipt and the delivery, so
// that no frame of the device can reach the client before the ack.
func (d *Dialect) requestSent(ctx context.Context, c *relay.Conn, h deviceKeys, s scope, out outcome) error {
	if out.verdict == Dead {
		return d.reply(ctx, c, inactiveFrame(s.whole()))
	}
	err := d.reply(ctx, c, ackFrame(s))
	if err != nil && d.distributed() {
		return err // the frame is delivered again, and the ack has to come first
	}
	if out.x.Request == Delivered {
		err = errors.Join(err, d.reply(ctx, c, receiptFrame(s)))
	}
	switch {
	case out.x.Request == Accepted && (out.verdict == Changed || out.again):
		return errors.Join(err, d.deliver(ctx, h, out.x, request, out.payload))
	case out.verdict == Repeated:
		// A client that has missed the ack sends its request again and does not resume.
		return errors.Join(err, d.sendWaiting(ctx, c, h, out))
	}
	return err
}

// sendWaiting posts what waits in an exchange that its client has published again or
// resumed on c: the response on c, and the request to the device once more, in case the
// handler that has accepted it has died before its post.
func (d *Dialect) sendWaiting(ctx context.Context, c *relay.Conn, h deviceKeys, out outcome) error {
	if out.x.Response == Accepted {
		return d.respondOn(ctx, c.ID, h, out.x, nil)
	}
	if out.x.Request == Accepted && out.remind {
		return d.remind(ctx, h, out.x)
	}
	return nil
}

// completionSent answers a completion. Every completion gets an ack, also one that is
// discarded.
func (d *Dialect) completionSent(ctx context.Context, c *relay.Conn, h deviceKeys, s scope, out outcome) error {
	err := d.reply(ctx, c, ackFrame(s))
	switch {
	case out.x == nil || err != nil && d.distributed():
		return err
	case out.x.Completion == Delivered:
		return errors.Join(err, d.reply(ctx, c, receiptFrame(s)))
	case out.x.Completion == Accepted && out.x.Request == Delivered && (out.verdict == Changed || out.again || out.remind):
		return errors.Join(err, d.deliver(ctx, h, out.x, completion, out.payload))
	case out.x.Completion == Accepted && (out.verdict == Changed || out.again):
		return errors.Join(err, d.wakeOffline(ctx, h))
	}
	return err
}

// responseTaken tells the device that the client has its response.
func (d *Dialect) responseTaken(ctx context.Context, h deviceKeys, s scope, out outcome) error {
	if out.verdict != Changed && !out.again {
		return nil
	}
	m, err := d.device(ctx, h)
	if err != nil || m == nil || m.Conn == "" || !greeted(m) {
		return err
	}
	_, err = d.post(ctx, m.Conn, receiptFrame(s))
	return err
}

// resumed answers a resume of a client with the state and what waits for it.
func (d *Dialect) resumed(ctx context.Context, c *relay.Conn, h deviceKeys, s scope, out outcome) error {
	if out.x == nil || out.verdict == Dead {
		return d.reply(ctx, c, inactiveFrame(s))
	}
	if err := d.reply(ctx, c, stateFrame(s, out.x.Exchange)); err != nil {
		return err
	}
	return d.sendWaiting(ctx, c, h, out)
}
