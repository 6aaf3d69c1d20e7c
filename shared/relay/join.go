package relay

import (
	"context"
	"errors"
	"fmt"

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
	if err := r.lookSoon(ctx, m.Group); err != nil {
		return Joined{}, err
	}
	before := *c
	c.joins(m)
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
	// And the one before may have died in its admission, when it was draining.
	untold := replaced == c.ID || r.distributed && old.Attrs["cs"].Num() == connDraining
	out := Joined{Replaced: replaced, First: replaced == "" || untold || r.front.Gone(replaced)}
	if replaced == c.ID {
		replaced = c.after // nor may the one before have been closed
	}
	if replaced != "" {
		r.closeReplaced(ctx, c, replaced)
	}
	return out, nil
}

// joins makes of c the next connection of m.
func (c *Conn) joins(m *Member) {
	switch left := gateway.Conn(m.attrs[lastLeft].Str()); {
	case m.Conn != "" && m.Conn != c.ID:
		c.after = m.Conn
	case m.Conn == "" && left != c.ID:
		// Somebody has found it gone, perhaps before its last frames were handled.
		c.after = left
	}
	c.Group, c.Member, c.Role, c.lane = m.Group, m.Key, m.Role, m.Lane
	c.Epoch = m.Epoch + 1
	c.posted, c.pausedAt = 0, 0
	c.left = false
}

// closeReplaced closes the connection that c has replaced.
func (r *Relay) closeReplaced(ctx context.Context, c *Conn, id gateway.Conn) {
	code := gateway.CloseReplaced
	if d, ok := r.dialect(c.Dialect).(Replacer); ok {
		code = d.ReplacedCode()
	}
	err := r.front.Close(ctx, id, code, "replaced by a newer connection")
	if err != nil && !errors.Is(err, gateway.ErrGone) {
		r.log.WarnContext(ctx, "failed to close a replaced connection", "conn", id, "error", err)
	}
	if !r.distributed {
		return
	}
	// Should its end not be reported, the new one must not wait for it in vain.
	if err := r.endLater(ctx, id); err != nil {
		r.log.WarnContext(ctx, "failed to note that a connection has been replaced", "conn", id, "error", err)
	}
}
