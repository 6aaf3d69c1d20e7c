package relay

import (
	"context"
	"errors"
	"fmt"
	"time"

	"blindpost/shared/gateway"
	"blindpost/shared/table"
)

// duePartition lists the groups by the time at which their expiry has to be
// looked at, so that the sweeper reads only what is due.
const duePartition = "due"

func dueKey(at time.Time, group string) table.Key {
	return table.Key{Partition: duePartition, Sort: dueSort(at) + "/" + group}
}

func dueSort(at time.Time) string { return fmt.Sprintf("%012d", at.Unix()) }

// DueOp makes the operation that has the sweeper look at a group at a time. A
// dialect puts it into the transaction that creates the group.
func DueOp(at time.Time, group string) table.Op {
	return table.Op{
		Action: table.Put,
		Key:    dueKey(at, group),
		Set:    table.Attrs{"g": table.String(group)},
	}
}

// GroupItem is the key of an item of the dialect in the partition of a group. The
// item has the generation of the group in its attribute "gen" and is deleted
// with it.
func GroupItem(group, name string) table.Key {
	return table.Key{Partition: groupPartition(group), Sort: "x/" + name}
}

// Expired reports whether a group has been without any connection for its whole
// life span, and if not, when that may be the case. root is the member that
// stands for the group. It is decided from the members themselves, not from the
// sweeper having run.
func (r *Relay) Expired(ctx context.Context, root *Member, ttl time.Duration) (bool, time.Time, error) {
	now := r.now()
	if ttl <= 0 {
		return false, now.Add(24 * time.Hour), nil
	}
	if root.Conn != "" || now.Before(root.Seen.Add(ttl)) {
		return false, later(root, now).Add(ttl), nil
	}
	members, err := r.Members(ctx, root.Group, root.Generation)
	if err != nil {
		return false, time.Time{}, err
	}
	var last time.Time
	for _, m := range members {
		if t := later(m, now); t.After(last) {
			last = t
		}
	}
	at := last.Add(ttl)
	return !now.Before(at), at, nil
}

// later is when a member was last connected: now, if it may still be.
func later(m *Member, now time.Time) time.Time {
	if m.Conn != "" {
		return now
	}
	return m.Seen
}

// Sweep does what is due: it looks at groups whose expiry may have come. What it
// costs depends on what is due, not on what there is.
func (r *Relay) Sweep(ctx context.Context) error {
	q := table.Query{Partition: duePartition, Before: dueSort(r.now()) + "0", Limit: 100}
	for {
		p, err := r.table.Query(ctx, q)
		if err != nil {
			return fmt.Errorf("failed to read what is due: %w", err)
		}
		for _, it := range p.Items {
			if err := r.sweepGroup(ctx, it); err != nil {
				return err
			}
		}
		if !p.More {
			return nil
		}
		q.After = p.Next
	}
}

func (r *Relay) sweepGroup(ctx context.Context, due table.Item) error {
	group := due.Attrs["g"].Str()
	at, err := r.expire(ctx, group)
	if err != nil {
		return err
	}
	ops := []table.Op{{Action: table.Delete, Key: due.Key}}
	if !at.IsZero() {
		if next := DueOp(at, group); next.Key != due.Key {
			ops = append(ops, next)
		} else {
			return nil
		}
	}
	if err := r.table.Transact(ctx, ops); err != nil {
		return fmt.Errorf("failed to put off what is due: %w", err)
	}
	return nil
}

// expire deletes a group whose time has come; otherwise it returns when to look
// again. The zero time says that there is nothing left to look at.
func (r *Relay) expire(ctx context.Context, group string) (time.Time, error) {
	d := r.dialectOfGroup(group)
	if d == nil {
		return time.Time{}, nil
	}
	root, err := r.Root(ctx, group)
	if err != nil {
		return time.Time{}, err
	}
	if root == nil {
		return time.Time{}, r.CleanGroup(ctx, group)
	}
	if err := errors.Join(r.FinishRemovals(ctx, group), r.AnnounceRemovals(ctx, group)); err != nil {
		return time.Time{}, err
	}
	if err := r.clearLost(ctx, root); err != nil {
		return time.Time{}, err
	}
	if root, err = r.Root(ctx, group); err != nil || root == nil {
		return time.Time{}, err
	}
	expired, at, err := r.Expired(ctx, root, d.GroupTTL())
	if err != nil {
		return time.Time{}, err
	}
	if !expired {
		if next := r.now().Add(time.Minute); at.Before(next) {
			at = next
		}
		return at, nil
	}
	deleted, err := r.DeleteGroup(ctx, root)
	if err != nil {
		return time.Time{}, err
	}
	if !deleted {
		return r.now().Add(time.Minute), nil
	}
	r.log.InfoContext(ctx, "group expired", "group", ShortGroup(group))
	return time.Time{}, nil
}

// clearLost takes members offline whose connection is no more though nobody has
// said so: its process died, or the front failed to report. Their time without a
// connection starts now.
func (r *Relay) clearLost(ctx context.Context, root *Member) error {
	members, err := r.Members(ctx, root.Group, root.Generation)
	if err != nil {
		return err
	}
	for _, m := range members {
		if m.Conn == "" {
			continue
		}
		if _, err := r.front.Stat(ctx, m.Conn); !errors.Is(err, gateway.ErrGone) {
			continue // alive, or we cannot tell
		}
		if err := r.leaveHeld(ctx, root.Group, m.Key, m.Conn); err != nil {
			return err
		}
	}
	return nil
}

// rootItem names the member that stands for the group.
func rootItem(group string) table.Key { return GroupItem(group, "root") }

// RootOp makes the operation that names the member which stands for the group:
// the group lives as long as that member does.
func RootOp(group, generation, key string) table.Op {
	return table.Op{
		Action: table.Put, Key: rootItem(group),
		Set: table.Attrs{"m": table.String(key), "gen": table.String(generation)},
	}
}

// Root reads the member that stands for a group, nil if there is none.
func (r *Relay) Root(ctx context.Context, group string) (*Member, error) {
	it, err := r.table.Get(ctx, rootItem(group))
	if errors.Is(err, table.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("failed to read a group: %w", err)
	}
	return r.GetMember(ctx, group, it.Attrs["m"].Str())
}
