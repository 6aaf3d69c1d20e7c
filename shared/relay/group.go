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
		Set:    table.Attrs{attrGroup: table.String(group)},
	}
}

// GroupItem is the key of an item of the dialect in the partition of a group. The
// item has the generation of the group in [AttrGeneration] and is deleted with it.
func GroupItem(group, name string) table.Key {
	return table.Key{Partition: groupPartition(group), Sort: "x/" + name}
}

// Expired reports whether a group has been without any connection for ttl, and if
// not, when that may be the case. root is the member that stands for the group.
// The members decide, whether or not the sweeper has run.
func (r *Relay) Expired(ctx context.Context, root *Member, ttl time.Duration) (bool, time.Time, error) {
	now := r.now()
	if ttl <= 0 {
		return false, now.Add(24 * time.Hour), nil
	}
	if root.Conn != "" || now.Before(root.Seen.Add(ttl)) {
		return false, lastConnected(root, now).Add(ttl), nil
	}
	members, err := r.Members(ctx, root.Group, root.Generation)
	if err != nil {
		return false, time.Time{}, err
	}
	var last time.Time
	for _, m := range members {
		if t := lastConnected(m, now); t.After(last) {
			last = t
		}
	}
	at := last.Add(ttl)
	return !now.Before(at), at, nil
}

// lastConnected is when a member was last connected: now, if it may still be.
func lastConnected(m *Member, now time.Time) time.Time {
	if m.Conn != "" {
		return now
	}
	return m.Seen
}

// lookEvery is how often the sweeper looks at the connections of a group, where
// the front may fail to report an end. A post finds a lost connection at once; the
// sweeper finds those that get no posts.
const lookEvery = 30 * time.Minute

// nextLook is when the sweeper looks next. These times are the same for all groups, so
// that many joins within one group write one item.
func nextLook(now time.Time) time.Time { return now.Truncate(lookEvery).Add(lookEvery) }

// scheduleLook has the sweeper look at the connections of a group, where a front may
// fail to report their end. It comes before a join: after a crash in between, no
// connection may ever come to do it.
func (r *Relay) scheduleLook(ctx context.Context, group string) error {
	if !r.distributed {
		return nil
	}
	op := DueOp(nextLook(r.now()), group)
	_, err := r.table.Get(ctx, op.Key) // a read costs less than a second write
	if errors.Is(err, table.ErrNotFound) {
		_, err = r.table.Write(ctx, op)
	}
	if err != nil {
		return fmt.Errorf("failed to note when to look at a group: %w", err)
	}
	return nil
}

// maxSweepErrors bounds how many errors a sweep reports one by one.
const maxSweepErrors = 10

// Sweep does what is due: it looks at groups whose expiry may have come. What it
// costs depends on what is due, not on what there is. A group that fails stays due
// and does not keep the others waiting.
func (r *Relay) Sweep(ctx context.Context) error {
	var errs []error
	failed := 0
	q := table.Query{Partition: duePartition, Before: dueSort(r.now()) + "0", Limit: 100}
	for {
		p, err := r.table.Query(ctx, q)
		if err != nil {
			return errors.Join(append(errs, fmt.Errorf("failed to read what is due: %w", err))...)
		}
		for _, it := range p.Items {
			err := r.sweepGroup(ctx, it)
			if err == nil {
				continue
			}
			failed++
			if len(errs) < maxSweepErrors {
				errs = append(errs, fmt.Errorf("failed to sweep %s: %w", ShortGroup(it.Attrs[attrGroup].Str()), err))
			}
			if ctx.Err() != nil {
				return errors.Join(errs...)
			}
		}
		if !p.More {
			if n := failed - len(errs); n > 0 {
				errs = append(errs, fmt.Errorf("failed to sweep %d more", n))
			}
			return errors.Join(errs...)
		}
		q.After = p.Next
	}
}

func (r *Relay) sweepGroup(ctx context.Context, due table.Item) error {
	group := due.Attrs[attrGroup].Str()
	at, err := r.expire(ctx, group)
	if err != nil {
		return err
	}
	// The new item first. A transaction would cost twice as much; after a crash in
	// between, both items are there and the sweeper looks twice.
	if !at.IsZero() {
		next := DueOp(at, group)
		if next.Key == due.Key {
			return nil
		}
		if _, err := r.table.Write(ctx, next); err != nil {
			return fmt.Errorf("failed to put off what is due: %w", err)
		}
	}
	if _, err := r.table.Write(ctx, table.Op{Action: table.Delete, Key: due.Key}); err != nil {
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
	if s, ok := d.(GroupSweeper); ok {
		return s.SweepGroup(ctx, group)
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
	connected, err := r.endLost(ctx, root)
	if err != nil {
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
		if next := nextLook(r.now()); connected && r.distributed && next.Before(at) {
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

// endLost finds the connections that are lost though no end was reported: their
// process died, or the front failed to report. It reports whether any member of the
// group has, or had, a connection. Jobs end them, because frames of them may still
// wait to be handled.
func (r *Relay) endLost(ctx context.Context, root *Member) (bool, error) {
	members, err := r.Members(ctx, root.Group, root.Generation)
	if err != nil {
		return false, err
	}
	connected := false
	for _, m := range members {
		if m.Conn == "" {
			continue
		}
		connected = true
		looked := r.now()
		if _, err := r.front.Stat(ctx, m.Conn); !errors.Is(err, gateway.ErrGone) {
			continue // alive, or we cannot tell
		}
		if opening, err := r.mayBeOpening(ctx, m.Conn, looked); err != nil {
			return false, err
		} else if opening {
			continue // the next look is soon enough
		}
		b := jobBody{Group: m.Group, Member: m.Key, Conn: m.Conn}
		if err := r.sendJob(ctx, jobEnd, string(m.Conn), b); err != nil {
			return false, err
		}
	}
	return connected, nil
}

// openTime is how long a front may take from an upgrade to a connection that can be
// posted to: API Gateway waits 29 s for Connect.
const openTime = 30 * time.Second

// MayOpen reports whether a connection that the front has called gone may still open: a
// dialect may join during Connect. began is when its Connect began; looked is a time not
// after the front was asked, because what the caller does in between may take any time.
func (r *Relay) MayOpen(id gateway.Conn, began, looked time.Time) bool {
	if !r.distributed && r.connRecordTTL == 0 {
		return !r.front.Gone(id) // this front reports every end, and waits for a Connect without a limit
	}
	return looked.Sub(began) < openTime
}

func (r *Relay) mayBeOpening(ctx context.Context, id gateway.Conn, looked time.Time) (bool, error) {
	c, err := r.LoadConn(ctx, id)
	if err != nil || c == nil {
		return false, err
	}
	return r.MayOpen(id, c.At, looked), nil
}

// rootItem names the member that stands for the group.
func rootItem(group string) table.Key { return GroupItem(group, "root") }

// RootOp makes the operation that names the member which stands for the group:
// the group lives as long as that member does.
func RootOp(group, generation, key string) table.Op {
	return table.Op{
		Action: table.Put, Key: rootItem(group),
		Set: table.Attrs{attrMember: table.String(key), AttrGeneration: table.String(generation)},
	}
}

// Root reads the member that stands for a group, nil if there is none.
func (r *Relay) Root(ctx context.Context, group string) (*Member, error) {
	it, ok, err := r.Find(ctx, rootItem(group), "a group")
	if err != nil || !ok {
		return nil, err
	}
	return r.GetMember(ctx, group, it.Attrs[attrMember].Str())
}
