package relay

import (
	"context"
	"errors"
	"fmt"
	"time"

	"blindpost/shared/gateway"
	"blindpost/shared/table"
)

// Hold waits until no other handler of this process works for the member and
// keeps it that way until release is called. The core holds the member behind a
// connection during its Frame, Confirmed and Disconnect; a dialect holds it
// during admission, before it joins. Whoever holds a member must not hold another.
func (r *Relay) Hold(ctx context.Context, group, key string) (release func(), err error) {
	ch, err := r.memberLocks.lock(ctx, group, key)
	if err != nil {
		return nil, fmt.Errorf("failed to hold a member: %w", err)
	}
	return func() { unlock(ch) }, nil
}

// Joining says who joins with a connection, and on which conditions.
type Joining struct {
	// Member is the member as the dialect has read and admitted it; its epoch
	// and incarnation are conditions of the join.
	Member *Member
	// Conds are further conditions on the member item.
	Conds []table.Cond
	// Change is written in the same step.
	Change MemberChange
}

// Joined is what a join has found.
type Joined struct {
	// First says that the member had no connection before: its presence changes.
	First bool
	// Replaced is the connection it had.
	Replaced gateway.Conn
}

// ErrReplaced is the answer of Join to a connection that has joined before and
// been replaced since: its admission is delivered again after a crash.
var ErrReplaced = errors.New("connection has been replaced")

// Join makes c the connection of a member, in the state draining, and closes
// the one before. table.ErrCondition means that the member is no longer as it
// was read: the dialect decides again. The caller holds the member.
func (r *Relay) Join(ctx context.Context, c *Conn, j Joining) (Joined, error) {
	m := j.Member
	if c.Epoch != 0 && m.Conn != c.ID && m.Epoch >= c.Epoch {
		return Joined{}, ErrReplaced
	}
	before := *c
	c.Group, c.Member, c.Role, c.lane = m.Group, m.Key, m.Role, m.Lane
	c.Epoch = m.Epoch + 1
	c.posted, c.pausedAt = 0, 0
	// The record comes first: should we die in between, the disconnect finds
	// whom to take offline, and does so only if the pointer is ours.
	if err := r.SaveConn(ctx, c); err != nil {
		return Joined{}, err
	}
	op := table.Op{
		Action: table.Update,
		Key:    memberKey(m.Group, m.Key),
		Conds:  append(m.IfUnchanged(), j.Conds...),
		Set: table.Attrs{
			"conn": table.String(string(c.ID)),
			"cs":   table.Number(connDraining),
			"ep":   table.Number(c.Epoch),
		},
	}
	if m.Conn != "" && m.Conn != c.ID {
		// Until its Close below has worked, a removal must close it too.
		op.Set["prev"] = table.String(string(m.Conn))
	}
	j.Change.apply(&op)
	old, err := r.table.Write(ctx, op)
	if errors.Is(err, table.ErrCondition) {
		*c = before // what it had joined before must not be forgotten
		if saveErr := r.SaveConn(ctx, c); saveErr != nil {
			return Joined{}, errors.Join(err, saveErr)
		}
	}
	if err != nil {
		// If it was written all the same, the record tells whom to take offline.
		return Joined{}, fmt.Errorf("failed to join: %w", err)
	}
	r.observe.Joined(c.Dialect, c.Role)
	replaced := gateway.Conn(old.Attrs["conn"].Str())
	// If the connection is ours already, a crash has interrupted this admission,
	// perhaps before the others were told: tell them, again.
	out := Joined{Replaced: replaced, First: replaced == "" || replaced == c.ID || r.front.Gone(replaced)}
	if replaced != "" && replaced != c.ID {
		if err := r.front.Close(ctx, replaced, gateway.CloseReplaced, "replaced by a newer connection"); err != nil && !errors.Is(err, gateway.ErrGone) {
			r.log.WarnContext(ctx, "failed to close a replaced connection", "conn", replaced, "error", err)
		}
	}
	return out, nil
}

// offlineOp makes the operation that takes m offline, if its connection is still
// the one we know.
func (m *Member) offlineOp(now time.Time) table.Op {
	return table.Op{
		Action: table.Update,
		Key:    memberKey(m.Group, m.Key),
		Conds:  []table.Cond{table.IfEqual("conn", table.String(string(m.Conn)))},
		Set:    table.Attrs{"seen": table.Number(now.UnixMilli())},
		Remove: []string{"conn", "cs"},
	}
}

// leave takes a member offline, if c is still its connection. The caller holds
// the member.
func (r *Relay) leave(ctx context.Context, group, key string, id gateway.Conn) error {
	old, err := r.table.Write(ctx, (&Member{Group: group, Key: key, Conn: id}).offlineOp(r.now()))
	if errors.Is(err, table.ErrCondition) {
		return nil // replaced or gone: history
	}
	if err != nil {
		return fmt.Errorf("failed to take a member offline: %w", err)
	}
	m := memberFrom(group, old)
	if m.transient > 0 {
		if err := r.dropTransients(ctx, m); err != nil {
			return err
		}
	}
	if m.stored > 0 {
		// What was posted and never confirmed is still in the lane.
		r.wake(ctx, group, key, m.tail)
	}
	return r.announceChange(ctx, group, key, m)
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

// Announce tells the other members of a group whether a member is online. It
// looks again after it has told them, and tells them once more if that has
// changed meanwhile, so that the last word is true. The caller holds the
// member; then it does not change.
func (r *Relay) Announce(ctx context.Context, group, key string) error {
	return r.announceChange(ctx, group, key, nil)
}

// announceChange is Announce for a member that the others know as told, nil if
// they know nothing of it.
func (r *Relay) announceChange(ctx context.Context, group, key string, told *Member) error {
	d := r.dialectOfGroup(group)
	if d == nil {
		return nil
	}
	for range maxTries {
		m, err := r.GetMember(ctx, group, key)
		if err != nil {
			return err
		}
		switch {
		case m == nil && (told == nil || told.Conn == ""):
			return nil
		case m == nil: // removed since it was known as online
			m = told
			m.Conn = ""
		case told != nil && (m.Conn != "") == (told.Conn != ""):
			return nil
		}
		if err := r.announce(ctx, d, m, m.Conn != ""); err != nil {
			return err
		}
		told = m
	}
	return nil
}

func (r *Relay) announce(ctx context.Context, d Dialect, m *Member, online bool) error {
	f, ok := d.Presence(m.Key, online)
	if !ok {
		return nil
	}
	members, err := r.Members(ctx, m.Group, m.Generation)
	if err != nil {
		return err
	}
	for _, other := range members {
		if other.Key == m.Key || other.Conn == "" {
			continue
		}
		again, err := r.notify(ctx, other, f)
		if again {
			err = r.Notify(ctx, m.Group, other.Key, f)
		}
		if err != nil {
			// One member that cannot be told must not keep the others in the dark.
			r.log.WarnContext(ctx, "failed to announce presence", "error", err)
		}
	}
	return nil
}
