package relay

import (
	"context"
	"errors"
	"fmt"
	"time"

	"blindpost/shared/gateway"
	"blindpost/shared/table"
)

// leaveOp makes the operation with which m leaves, if m.Conn is still its connection.
// It notes the connection in attrLeft: a later try that finds it there knows that an
// earlier one has written the item and lost the answer or died, and that what follows
// may still have to be done.
func (m *Member) leaveOp(now time.Time) table.Op {
	return table.Op{
		Action: table.Update,
		Key:    memberKey(m.Group, m.Key),
		Conds:  []table.Cond{table.IfEqual(attrConn, table.String(string(m.Conn)))},
		Set: table.Attrs{
			attrSeen: table.Number(now.UnixMilli()),
			attrLeft: table.String(string(m.Conn)),
		},
		Remove: []string{attrConn, attrConnState},
	}
}

// leave lets a member leave and does what follows, if id is still its connection; or
// goes on where an earlier try has stopped. again says that the caller has tried before
// and may have died in the middle. The caller holds the member, and afterwards notes in
// the record of the connection that all is done.
func (r *Relay) leave(ctx context.Context, group, key string, id gateway.Conn, again bool) error {
	done, err := r.tryLeave(ctx, group, key, id)
	if err != nil || done {
		return err
	}
	m, err := r.GetMember(ctx, group, key)
	if err != nil || m == nil {
		return err
	}
	left := m.attrs[attrLeft].Str() == string(id)
	switch {
	case left && m.Conn == "":
		m.Conn = id // as before the earlier try
		return r.afterLeave(ctx, m)
	case left || again:
		// The member has a newer connection. The earlier try may have told the others that
		// it is offline after they were told that it is online, and died before it looked again.
		return r.Announce(ctx, group, key)
	}
	return nil // replaced, and the others know of the newer connection
}

// tryLeave is the first try of leave. It reports whether id was the connection of the
// member.
func (r *Relay) tryLeave(ctx context.Context, group, key string, id gateway.Conn) (bool, error) {
	old, err := r.table.Write(ctx, (&Member{Group: group, Key: key, Conn: id}).leaveOp(r.now()))
	if errors.Is(err, table.ErrCondition) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("failed to take a member offline: %w", err)
	}
	return true, r.afterLeave(ctx, memberFrom(group, old))
}

// afterLeave does what follows when a member has left; m is the member before that. It
// may be called again.
func (r *Relay) afterLeave(ctx context.Context, m *Member) error {
	if m.transient > 0 {
		if err := r.dropTransients(ctx, m); err != nil {
			return err
		}
	}
	if m.stored > 0 {
		// Frames that were posted and never confirmed are still in the lane.
		r.wake(ctx, m.Group, m.Key, m.tail)
	}
	if k, ok := r.dialectOfGroup(m.Group).(Keeper); ok {
		if err := k.MemberLeft(ctx, m); err != nil {
			return err
		}
	}
	return r.announceChange(ctx, m.Group, m.Key, m)
}

// dropTransients takes the entries out of the lane of m that are bound to the
// connection with which m has left, or to an earlier one.
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
