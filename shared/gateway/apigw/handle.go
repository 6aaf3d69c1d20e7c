package apigw

import (
	"context"
	"errors"
	"fmt"

	"blindpost/shared/gateway"
	"blindpost/shared/gateway/apigw/record"
)

// Handle gives the event of a record to the handler. For a record without an id of its
// own, id is the id of the delivery: the same each time this record is delivered.
func (a *Adapter) Handle(ctx context.Context, r *record.Record, id string) error {
	c, err := a.conn(r)
	if err != nil {
		return fmt.Errorf("failed to read an event: %w", err)
	}
	switch r.Event {
	case record.Message:
		return a.frame(ctx, c, r, id)
	case record.Disconnect:
		return a.o.Handler.Disconnect(ctx, gateway.DisconnectEvent{
			Conn: c, Code: closeCode(r.Code), Reason: r.Reason, At: a.at(r.Time),
		})
	default:
		return fmt.Errorf("failed to read an event: unknown type %.20q", r.Event)
	}
}

func (a *Adapter) frame(ctx context.Context, c gateway.Conn, r *record.Record, id string) error {
	text, err := r.Text()
	if err != nil {
		return fmt.Errorf("failed to read a frame: %w", err)
	}
	e := gateway.FrameEvent{Conn: c, ID: r.MessageID, At: a.at(r.Time)}
	if e.ID == "" {
		e.ID = id
	}
	if r.Callback != "" {
		e.Data, e.Text = []byte(text), !r.Binary
		if r.Oversize > 0 {
			e.Data, e.Oversize, e.Size = nil, true, r.Oversize
		}
	} else if e.Data, e.Text = decode(text); r.Binary && e.Text {
		return errors.New("failed to read a frame: it is marked as base64 and is not")
	}
	if size := int64(len(e.Data)); a.o.MaxFrame > 0 && size > a.o.MaxFrame {
		e.Data, e.Oversize, e.Size = nil, true, size
	}
	if _, err := a.o.Handler.Frame(ctx, e); err != nil {
		return err
	}
	if !e.Oversize {
		return nil
	}
	return a.close(ctx, c, gateway.CloseTooLarge, "the message is too large")
}

// GiveUp closes the connection of a record that cannot be handled, so that the peer
// learns that a frame is lost. If the record does not identify the connection, or cannot
// be read at all and is nil, GiveUp uses group: the message group of a frame is the id
// of its connection.
func (a *Adapter) GiveUp(ctx context.Context, r *record.Record, group string) error {
	if r == nil {
		r = &record.Record{Event: record.Message}
	}
	if r.Event != record.Message {
		return nil
	}
	c, err := a.conn(r)
	if err != nil && r.Callback == "" && a.o.Callback != "" {
		c, err = newConn(group, a.o.Callback)
	}
	if err != nil {
		return fmt.Errorf("failed to give up a connection: %w", err)
	}
	return a.close(ctx, c, gateway.CloseInternal, "internal error")
}

func (a *Adapter) close(ctx context.Context, c gateway.Conn, code gateway.CloseCode, reason string) error {
	if err := a.o.Front.Close(ctx, c, code, reason); err != nil && !errors.Is(err, gateway.ErrGone) {
		return err
	}
	return nil
}

// closeCode is the close code of a disconnect. API Gateway sends 0 or -1 if it knows
// none.
func closeCode(code int64) gateway.CloseCode {
	if code < 1000 || code > 4999 {
		return gateway.CloseAbnormal
	}
	return gateway.CloseCode(code)
}
