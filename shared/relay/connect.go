package relay

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"blindpost/shared/gateway"
	"blindpost/shared/table"
)

// Connect admits a connection to the dialect that serves its path. Where the answer of a
// handler can be lost (see Options.Distributed), the same Connect may come again, and then
// has the same answer.
func (r *Relay) Connect(ctx context.Context, e gateway.ConnectEvent) (gateway.ConnectResult, error) {
	d := r.byPath(e.Path)
	if d == nil {
		return Refuse(http.StatusNotFound, "not_found", "there is nothing at this path", 0), nil
	}
	gate, hasGate := d.(Gatekeeper)
	if hasGate {
		if res, ok := gate.Precheck(e); !ok {
			r.observe.Refused(d.Name(), "dialect")
			return res, nil
		}
	}
	if r.distributed {
		c, err := r.LoadConn(ctx, e.Conn)
		if err != nil {
			return gateway.ConnectResult{}, err
		}
		if c != nil {
			return r.connectAgain(ctx, d, c, e)
		}
	}
	ok, err := r.TakeAddress(ctx, e.RemoteIP)
	if err != nil {
		return gateway.ConnectResult{}, err
	}
	if !ok {
		r.observe.Refused(d.Name(), "rate_limited")
		if hasGate {
			return gate.RateLimited(limitWindow), nil
		}
		return Refuse(http.StatusTooManyRequests, "rate_limited", "too many new connections from this address", limitWindow), nil
	}
	res, err := r.open(ctx, d, e)
	if err != nil && !r.distributed {
		// The front reports no end of a connection that has never opened, and no sweeper
		// looks for it here. If the peer has given up, ctx is cancelled: hence WithoutCancel.
		end := gateway.DisconnectEvent{Conn: e.Conn, Code: gateway.CloseAbnormal, At: e.At}
		err = errors.Join(err, r.Disconnect(context.WithoutCancel(ctx), end))
	}
	return res, err
}

func (r *Relay) open(ctx context.Context, d Dialect, e gateway.ConnectEvent) (gateway.ConnectResult, error) {
	c := &Conn{ID: e.Conn, Dialect: d.Name(), At: r.now()}
	res, err := d.Connect(ctx, c, e)
	if err != nil {
		return res, err
	}
	if !res.Accepted() {
		r.observe.Refused(d.Name(), "dialect")
		return res, nil
	}
	if c.Joined() {
		return res, r.SaveConn(ctx, c) // Join has written the record already
	}
	err = r.SaveConn(ctx, c, table.IfAbsent())
	if errors.Is(err, table.ErrCondition) {
		// Our write was done though it looked failed, or another run of this Connect goes
		// on at the same time: the record that is saved counts.
		if c, err = r.LoadConn(ctx, e.Conn); err == nil && c != nil {
			return r.connectAgain(ctx, d, c, e)
		}
		if err == nil {
			err = fmt.Errorf("failed to open a connection: %w", table.ErrBusy) // the connection has ended already
		}
	}
	return res, err
}

// connectAgain answers a Connect from the record that an earlier run has saved. It saves
// nothing itself: the connection may be in use by now.
func (r *Relay) connectAgain(ctx context.Context, d Dialect, c *Conn, e gateway.ConnectEvent) (gateway.ConnectResult, error) {
	if c.Dialect != d.Name() {
		return gateway.ConnectResult{}, errors.New("failed to open a connection: its id belongs to a connection of another dialect")
	}
	c.again = true
	res, err := d.Connect(ctx, c, e)
	if errors.Is(err, ErrReplaced) {
		res, err = Refuse(http.StatusConflict, "replaced", "there is a newer connection", 0), nil
	}
	if err != nil || res.Accepted() {
		return res, err
	}
	// It was accepted before, but would not be now. The front sends no Disconnect after a
	// refusal, so the connection ends here.
	r.observe.Refused(d.Name(), "dialect")
	return res, r.Disconnect(ctx, gateway.DisconnectEvent{Conn: c.ID, Code: gateway.CloseAbnormal, At: e.At})
}
