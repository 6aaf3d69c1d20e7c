package agentknock

import (
	"context"
	"errors"
	"time"

	"blindpost/shared/gateway"
	"blindpost/shared/push"
	"blindpost/shared/relay"
	"blindpost/shared/table"
)

// A device that is offline when a message arrives for it gets a push. A job sends the push,
// so that no provider delays a message, and first checks that the device is still offline.
// Pushes are at least WakeInterval apart; a message that arrives within that time after a
// push causes one more push at its end, in case the first was lost.

// States of the push registration.
const (
	pushMissing    = "missing"
	pushRegistered = "registered"
	pushInvalid    = "invalid"
)

// wake sends the job for a push, unless one is due already. A failure is only logged: the
// message that the push is for is stored.
func (d *Dialect) wake(ctx context.Context, m *relay.Member) error {
	if m.Token == "" {
		return nil
	}
	now := d.core.Now()
	last := timeFrom(m.Attr(attrWake))
	if last.After(now) {
		return nil
	}
	at := now
	if next := last.Add(d.lim().WakeInterval); !last.IsZero() && next.After(now) {
		at = next
	}
	b := jobBody{Device: deviceOf(m.Group), Generation: m.Generation}
	if err := d.later(ctx, jobWake, b, at); err != nil {
		d.core.Log().WarnContext(ctx, "failed to ask for a push", "error", err)
		return nil
	}
	change := relay.MemberChange{Attrs: map[string]table.Value{attrWake: table.Number(at.UnixMilli())}}
	_, err := d.core.Table().Write(ctx, relay.UpdateOp(m.Group, m.Key, change, m.IfUnchanged()...))
	if err != nil && !errors.Is(err, table.ErrCondition) {
		d.core.Log().WarnContext(ctx, "failed to note a push", "error", err)
	}
	return nil
}

// wakeOffline is wake for a device that is offline.
func (d *Dialect) wakeOffline(ctx context.Context, h deviceKeys) error {
	m, err := d.device(ctx, h)
	if err != nil || m == nil || d.core.Online(m) {
		return err
	}
	return d.wake(ctx, m)
}

// MemberLeft asks for a push if messages wait for a device that has left: those that were
// posted to it may not have arrived, and its drain may not have been complete.
func (d *Dialect) MemberLeft(ctx context.Context, m *relay.Member) error {
	waits, err := d.anythingWaits(ctx, deviceKeys{deviceOf(m.Group), m.Generation})
	if err != nil || !waits {
		return err
	}
	return d.wake(ctx, m)
}

// wakeJob sends the push, if the device is still offline and messages still wait.
func (d *Dialect) wakeJob(ctx context.Context, b jobBody) error {
	m, err := d.device(ctx, b.keys())
	if err != nil || m == nil || m.Token == "" {
		return err
	}
	connected, err := d.connected(ctx, m)
	if err != nil || connected {
		return err
	}
	waits, err := d.anythingWaits(ctx, b.keys())
	if err != nil || !waits {
		return err
	}
	payload, err := push.AgentknockWake()
	if err != nil {
		return err
	}
	n := push.Notification{
		Token: m.Token, Platform: push.Platform(m.Platform), Payload: payload, Kind: push.Wake, TTL: d.lim().ExchangeTTL,
	}
	err = d.pusher.Send(ctx, n)
	d.core.Observer().Pushed(n, err)
	if errors.Is(err, push.ErrTokenGone) {
		return d.forgetToken(ctx, b.keys(), m.Token)
	}
	return err
}

// connected reports whether a device is connected. It asks the front, because where the end
// of a connection is reported late the table is not enough.
func (d *Dialect) connected(ctx context.Context, m *relay.Member) (bool, error) {
	if !d.core.Online(m) {
		return false, nil
	}
	_, err := d.core.Front().Stat(ctx, m.Conn)
	if errors.Is(err, gateway.ErrGone) {
		return false, nil
	}
	return err == nil, err
}

// forgetToken deletes a push token that the provider refuses for good, unless the device
// has another one by now. The device is told when it connects.
func (d *Dialect) forgetToken(ctx context.Context, h deviceKeys, token string) error {
	return retry("forget a push token", func() error {
		m, err := d.device(ctx, h)
		if err != nil || m == nil || m.Token != token {
			return err
		}
		none := ""
		return d.changeDevice(ctx, m, relay.MemberChange{
			Token: &none, Attrs: map[string]table.Value{attrPush: table.String(pushInvalid)},
		})
	})
}

// changeDevice changes the dialect's part of a device, on condition that the device is as
// it was read.
func (d *Dialect) changeDevice(ctx context.Context, m *relay.Member, ch relay.MemberChange) error {
	_, err := d.core.Table().Write(ctx, relay.UpdateOp(m.Group, m.Key, ch, m.IfUnchanged()...))
	return err
}

// Recovered asks for a push after the process before has crashed: the jobs in its memory
// are lost.
func (d *Dialect) Recovered(ctx context.Context, m *relay.Member) (woken bool, err error) {
	if m.Token == "" {
		return false, nil
	}
	b := jobBody{Device: deviceOf(m.Group), Generation: m.Generation}
	if err := d.later(ctx, jobWake, b, time.Time{}); err != nil {
		return true, err
	}
	// A push was due at last, and until then wake asks for no other.
	if last := timeFrom(m.Attr(attrWake)); last.After(d.core.Now()) {
		return true, d.later(ctx, jobWake, b, last)
	}
	return true, nil
}
