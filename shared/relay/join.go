package relay

import (
	"context"
	"errors"
	"fmt"

	"blindpost/shared/gateway"
	"blindpost/shared/table"
)

// Hold waits until no other handler of this process works for the member, and
// keeps others out until release is called. The core holds the member behind a
// connection during its Frame, Confirmed and Disconnect; a dialect holds it
// during admission, before it joins. A handler holds one member at a time.
func (r *Relay) Hold(ctx context.Context, group, key string) (release func(), err error) {
	ch, err := r.memberLocks.lock(ctx, group, key)
	if err != nil {
		return nil, fmt.Errorf("failed to hold a member: %w", err)
	}
	return func() { unlock(ch) }, nil
}

// Joining says which member joins with a connection, and on which conditions.
type Joining struct {
	// Member is the member as the dialect has read and admitted it; its epoch
	// and incarnation are conditions of the join.
	Member *Member
	// Conds are further conditions on the member item.
	Conds []table.Cond
	// Change is written by the same operation.
	Change MemberChange
}

// Joined is the outcome of a join.
type Joined struct {
	// First says that the member had no connection before: its presence changes.
	First bool
	// Replaced is the connection that the member had until now.
	Replaced gateway.Conn
}

// ErrReplaced is the answer of Join to a connection that has joined before and was
// replaced since: its admission was delivered again after a crash.
var ErrReplaced = errors.New("connection has been replaced")

// Join makes c the connection of a member, in the state draining, and closes
// the connection that the member had. table.ErrCondition means that the member
// has changed since it was read: the dialect decides again. The caller holds the member.
func (r *Relay) Join(ctx context.Context, c *Conn, j Joining) (Joined, error) {
	m := j.Member
	if c.Epoch != 0 && m.Conn != c.ID && m.Epoch >= c.Epoch {
		return Joined{}, ErrReplaced
	}
	if err := r.scheduleLook(ctx, m.Group); err != nil {
		return Joined{}, err
	}
	before := *c
	c.joins(m)
	// The record comes first: if we die in between, the end of the connection finds
	// which member leaves, and lets it leave only if the member item names c.
	if err := r.SaveConn(ctx, c); err != nil {
		return Joined{}, err
	}
	op := m.updateOp(table.Attrs{
		attrConn:      table.String(string(c.ID)),
		attrConnState: table.Number(connDraining),
		attrEpoch:     table.Number(c.Epoch),
	}, append(m.IfUnchanged(), j.Conds...)...)
	if m.Conn != "" && m.Conn != c.ID {
		// A removal must close it too, until the Close below has worked.
		op.Set[attrPrevious] = table.String(string(m.Conn))
	}
	j.Change.apply(&op)
	old, err := r.table.Write(ctx, op)
	if errors.Is(err, table.ErrCondition) {
		*c = before // c may have joined in an earlier run
		if saveErr := r.SaveConn(ctx, c); saveErr != nil {
			return Joined{}, errors.Join(err, saveErr)
		}
	}
	if err != nil {
		// If the write was done though it looked failed, the record tells which member leaves.
		return Joined{}, fmt.Errorf("failed to join: %w", err)
	}
	r.observe.Joined(c.Dialect, c.Role)
	replaced := gateway.Conn(old.Attrs[attrConn].Str())
	// If the member had c already, an earlier run of this admission has died, perhaps
	// before the others were told. And a connection before that was still draining may
	// have died in its admission. In both cases the others are told again.
	untold := replaced == c.ID || r.distributed && old.Attrs[attrConnState].Num() == connDraining
	out := Joined{Replaced: replaced, First: replaced == "" || untold || r.front.Gone(replaced)}
	if replaced == c.ID {
		replaced = c.after // the earlier run may not have closed it
	}
	if replaced == "" {
		return out, nil
	}
	return out, r.closeReplaced(ctx, c.Dialect, replaced)
}

// joins makes of c the next connection of m.
func (c *Conn) joins(m *Member) {
	switch left := gateway.Conn(m.attrs[attrLeft].Str()); {
	case m.Conn != "" && m.Conn != c.ID:
		c.after = m.Conn
	case m.Conn == "" && left != c.ID:
		// That connection was lost, perhaps before its last frames were handled.
		c.after = left
	}
	c.Group, c.Member, c.Role, c.lane = m.Group, m.Key, m.Role, m.Lane
	c.Epoch = m.Epoch + 1
	c.posted, c.pausedAt = 0, 0
	c.memberLeft = false
}
