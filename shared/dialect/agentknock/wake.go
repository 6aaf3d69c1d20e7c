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

// A device that is not connected when something arrives for it is woken by a push. A
// job sends it, so that no provider ever delays a message, and it looks again first:
// the device may have come by itself. However much arrives, pushes are at least
// WakeInterval apart; when one has just been sent there is one more after that time,
// should the first have been lost.

// States of the push registration.
const (
	pushMissing    = "missing"
	pushRegistered = "registered"
	pushInvalid    = "invalid"
)

// wake asks for a push, unless one is to come already. That it fails does not fail
// the message that it is for, which is stored.
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

// wakeOffline wakes a device that is not connected.
func (d *Dialect) wakeOffline(ctx context.Context, h deviceKeys) error {
	m, err := d.device(ctx, h)
	if err != nil || m == nil || d.core.Online(m) {
		return err
	}
	return d.wake(ctx, m)
}

// MemberLeft asks for a push if something waits for a device that has lost its
// connection: what was posted to it may not have arrived, and what was left to be sent
// when it had connected was not.
func (d *Dialect) MemberLeft(ctx context.Context, m *relay.Member) error {
	waits, err := d.anythingWaits(ctx, deviceKeys{deviceOf(m.Group), m.Generation})
	if err != nil || !waits {
		return err
	}
	return d.wake(ctx, m)
}

// wakeJob pushes, if the device still has to be woken.
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

// connected asks the front: where the end of a connection is reported late, what the
// table says is not enough.
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

// forgetToken forgets a push token that the provider refuses for good, unless it was
// replaced meanwhile. The device hears of it when it connects.
func (d *Dialect) forgetToken(ctx context.Context, h deviceKeys, token string) error {
	for range maxTries {
		m, err := d.device(ctx, h)
		if err != nil || m == nil || m.Token != token {
			return err
		}
		none := ""
		err = d.changeDevice(ctx, m, relay.MemberChange{
			Token: &none, Attrs: map[string]table.Value{attrPush: table.String(pushInvalid)},
		})
		if !errors.Is(err, table.ErrCondition) {
			return err
		}
	}
	return table.ErrBusy
}

// changeDevice changes the dialect's part of a device that is as it was read.
func (d *Dialect) changeDevice(ctx context.Context, m *relay.Member, ch relay.MemberChange) error {
	_, err := d.core.Table().Write(ctx, relay.UpdateOp(m.Group, m.Key, ch, m.IfUnchanged()...))
	return err
}

// Recovered asks for a push for a device, when a process has begun on what another
// one has left: jobs that were in its memory are gone.
func (d *Dialect) Recovered(ctx context.Context, m *relay.Member) (woken bool, err error) {
	if m.Token == "" {
		return false, nil
	}
	b := jobBody{Device: deviceOf(m.Group), Generation: m.Generation}
	if err := d.later(ctx, jobWake, b, time.Time{}); err != nil {
		return true, err
	}
	// One was to come, and until then nobody asks for another one.
	if last := timeFrom(m.Attr(attrWake)); last.After(d.core.Now()) {
		return true, d.later(ctx, jobWake, b, last)
	}
	return true, nil
}
