package relay

import (
	"context"
	"errors"
	"fmt"
	"time"

	"blindpost/shared/gateway"
	"blindpost/shared/table"
)

// lastLeft names the attribute that holds the connection which was taken offline
// last: whoever finds that it was done already, by a try whose answer got lost or
// which died afterwards, knows that the rest may still be to do.
const lastLeft = "left"

// offlineOp makes the operation that takes m offline, if its connection is still
// the one we know.
func (m *Member) offlineOp(now time.Time) table.Op {
	return table.Op{
		Action: table.Update,
		Key:    memberKey(m.Group, m.Key),
		Conds:  []table.Cond{table.IfEqual("conn", table.String(string(m.Conn)))},
		Set: table.Attrs{
			"seen":   table.Number(now.UnixMilli()),
			lastLeft: table.String(string(m.Conn)),
		},
		Remove: []string{"conn", "cs"},
	}
}

// leave takes a member offline, if the connection is still its own; or goes on
// where an earlier try has ended. again says that the caller has tried before and
// may have died in the middle of it. The caller holds the member, and notes in the
// record of the connection that it is done.
func (r *Relay) leave(ctx context.Context, group, key string, id gateway.Conn, again bool) error {
	done, err := r.takeOffline(ctx, group, key, id)
	if err != nil || done {
		return err
	}
	m, err := r.GetMember(ctx, group, key)
	if err != nil || m == nil {
		return err
	}
	left := m.attrs[lastLeft].Str() == string(id)
	switch {
	case left && m.Conn == "":
		m.Conn = id // as it was before the earlier try
		return r.wasOnline(ctx, m)
	case left || again:
		// The member has come back since. The earlier try may have told the others that
		// it is offline after they were told that it is online, and died before it looked.
		return r.Announce(ctx, group, key)
	}
	return nil // replaced: history
}

// takeOffline takes a member offline, if the connection is still its own, which it
// reports.
func (r *Relay) takeOffline(ctx context.Context, group, key string, id gateway.Conn) (bool, error) {
	old, err := r.table.Write(ctx, (&Member{Group: group, Key: key, Conn: id}).offlineOp(r.now()))
	if errors.Is(err, table.ErrCondition) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("failed to take a member offline: %w", err)
	}
	return true, r.wasOnline(ctx, memberFrom(group, old))
}

// wasOnline does what follows when a member has gone offline; m is how it was
// before.
func (r *Relay) wasOnline(ctx context.Context, m *Member) error {
	if m.transient > 0 {
		if err := r.dropTransients(ctx, m); err != nil {
			return err
		}
	}
	if m.stored > 0 {
		// What was posted and never confirmed is still in the lane.
		r.wake(ctx, m.Group, m.Key, m.tail)
	}
	if k, ok := r.dialectOfGroup(m.Group).(Keeper); ok {
		if err := k.WentOffline(ctx, m); err != nil {
			return err
		}
	}
	return r.announceChange(ctx, m.Group, m.Key, m)
}

// dropTransients empties the lane of m from entries bound to the connection that
// m has just lost, or to one before it.
func (r *Relay) dropTransients(ctx context.Context, m *Member) error {
	entries, err := r.readAll(ctx, m.Lane)
	if err != nil {
		return err
	}
	var marks []uint64
	for _, e := range entries {
		if e.conn == "" || e.epoch > m.Epoch {
			continue
		}
		if err := r.dropTransient(ctx, m, e); err != nil {
			return err
		}
		marks = append(marks, e.mark())
	}
	return r.confirm(ctx, m.Group, m.Key, m.Lane, marks)
}
