package agentknock

import (
	"context"
	"errors"
	"time"

	"blindpost/shared/gateway"
	"blindpost/shared/relay"
)

// parcel is a message to be posted.
type parcel struct {
	scope
	address string // of an initial pairing
	payload []byte // nil: the stored one
	mark    uint64
}

// postPayload posts a message. The outcome is 0 if its payload is no longer stored, or if
// it was not posted; the error is gateway.ErrGone if the connection is gone.
func (d *Dialect) postPayload(ctx context.Context, c gateway.Conn, h deviceKeys, p parcel) (gateway.Outcome, error) {
	if p.payload == nil {
		payload, ok, err := d.loadPayload(ctx, h, p.Request, p.Kind)
		if err != nil || !ok {
			return 0, err
		}
		p.payload = payload
	}
	if p.Kind == response {
		p.address = ""
	}
	f := messageFrame(p.scope, p.address, p.payload)
	outcome, err := d.core.Front().Post(ctx, c, gateway.Message{Data: f.Data, Text: true, Mark: p.mark})
	if errors.Is(err, gateway.ErrTooLarge) {
		// This front will never carry the message; another one may.
		d.core.Observer().Dropped(relay.ClassLive, "too_large_for_front", 1)
		return 0, nil
	}
	return outcome, err
}

// deliver posts a message to the device if it is connected, else asks for a push. The
// message is stored, so a failure here cannot lose it.
func (d *Dialect) deliver(ctx context.Context, h deviceKeys, x *record, k kind, payload []byte) error {
	m, err := d.device(ctx, h)
	if err != nil || m == nil {
		return err
	}
	if m.Conn == "" || d.core.Front().Gone(m.Conn) {
		d.core.Observer().Message(relay.ClassStored, relay.Stored)
		return d.wake(ctx, m)
	}
	if !greeted(m) || (k == request && !takesMessages(m)) {
		d.core.Observer().Message(relay.ClassStored, relay.Queued)
		return nil // the drain is running, and will send this message
	}
	_, err = d.postPayload(ctx, m.Conn, h, parcel{scope: x.scope(k), address: x.Address, payload: payload})
	switch {
	case errors.Is(err, gateway.ErrGone):
		d.core.Observer().Message(relay.ClassStored, relay.Stored)
		d.core.ReportLost(ctx, m)
		return d.wake(ctx, m)
	case err != nil:
		return d.deliverLater(ctx, h, x, "", err)
	}
	d.core.Observer().Message(relay.ClassStored, relay.Delivered)
	return nil
}

// remind posts a request once more to a device that is connected.
func (d *Dialect) remind(ctx context.Context, h deviceKeys, x *record) error {
	m, err := d.device(ctx, h)
	if err != nil || m == nil || m.Conn == "" || !takesMessages(m) {
		return err
	}
	_, err = d.postPayload(ctx, m.Conn, h, parcel{scope: x.scope(request), address: x.Address})
	switch {
	case errors.Is(err, gateway.ErrGone):
		d.core.ReportLost(ctx, m)
		return nil
	case err != nil:
		return d.deliverLater(ctx, h, x, "", err)
	}
	return nil
}

// respond posts a response to the connections on which the client has published or resumed
// the exchange. If they are gone, the client will resume.
func (d *Dialect) respond(ctx context.Context, h deviceKeys, x *record, payload []byte) error {
	var errs []error
	for _, c := range x.Conns {
		errs = append(errs, d.respondOn(ctx, c, h, x, payload))
	}
	return errors.Join(errs...)
}

// respondOn posts a response to one connection.
func (d *Dialect) respondOn(ctx context.Context, c gateway.Conn, h deviceKeys, x *record, payload []byte) error {
	_, err := d.postPayload(ctx, c, h, parcel{scope: x.scope(response), payload: payload})
	if err == nil || errors.Is(err, gateway.ErrGone) {
		return nil
	}
	return d.deliverLater(ctx, h, x, c, err)
}

// toClient posts an ack or a receipt to the connections of the client. A client that does
// not get it can ask for the state.
func (d *Dialect) toClient(ctx context.Context, x *record, f relay.Frame) error {
	var errs []error
	for _, c := range x.Conns {
		_, err := d.post(ctx, c, f)
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// distributed reports whether handlers of a device may run at the same time, in other
// processes.
func (d *Dialect) distributed() bool { return d.core.ConnRecordTTL() > 0 }

// ackBefore posts the acks of messages that were accepted just now, before the device gets
// the messages. The handler that has accepted them may not have posted the acks yet, and
// the ack must reach the client before the receipt. A second ack does no harm.
func (d *Dialect) ackBefore(ctx context.Context, h deviceKeys, parcels []parcel) error {
	if !d.distributed() {
		return nil
	}
	x, err := d.loadExchange(ctx, h, parcels[0].Request, false)
	if err != nil || x == nil || x.Heard {
		return err
	}
	for _, p := range parcels {
		if err := d.toClient(ctx, x, ackFrame(p.scope)); err != nil {
			return err
		}
	}
	return nil
}

// deliverAfter is the time until the retry of a failed post.
const deliverAfter = 2 * time.Second

// deliverLater sends a job that posts a message again: to the connection c of the client,
// or to the device if c is "".
func (d *Dialect) deliverLater(ctx context.Context, h deviceKeys, x *record, c gateway.Conn, cause error) error {
	d.core.Log().WarnContext(ctx, "failed to post a message, trying again", "device", short(h.device), "error", cause)
	b := jobBody{Device: h.device, Generation: h.generation, Client: x.Client, Request: x.ID, Conn: c}
	return d.later(ctx, jobDeliver, b, d.core.Now().Add(deliverAfter))
}

// deliverJob posts the message that waits in an exchange: for the connection of the
// client that the job names, or for the device.
func (d *Dialect) deliverJob(ctx context.Context, b jobBody) error {
	h := b.keys()
	release, err := d.hold(ctx, h)
	if err != nil {
		return err
	}
	defer release()
	x, err := d.loadExchange(ctx, h, b.Request, false)
	if err != nil || x == nil || x.Client != b.Client || !x.Live() {
		return err
	}
	switch {
	case b.Conn != "":
		if x.Response != Accepted {
			return nil
		}
		return d.respondOn(ctx, b.Conn, h, x, nil)
	case x.Request == Accepted:
		return d.deliver(ctx, h, x, request, nil)
	case x.Completion == Accepted:
		return d.deliver(ctx, h, x, completion, nil)
	}
	return nil
}
