package relay

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"blindpost/shared/gateway"
	"blindpost/shared/table"
)

// Removing a member takes four steps, and after a crash between any two the rest
// must still be done. A removal item says what is left to do.
//
//  1. RemoveOps, in the dialect's transaction: the member item is deleted, and with
//     it the current connection, the push token and the lane; the removal item is written.
//  2. FinishRemovals closes the connection and purges the lane.
//  3. AnnounceRemovals tells the others.
//  4. AnnounceRemovals deletes the removal item, forgetAfter later. As long as frames
//     of the removed member may be under way, the others keep its fence.

const (
	removalItem = "gone/"
	// forgetAfter is longer than any handler runs.
	forgetAfter = time.Hour
)

// Removal is why a member is removed, as its connection hears it.
type Removal struct {
	Code   gateway.CloseCode
	Reason string
}

// RemoveOps makes the two operations of a transaction that remove m, on condition
// that it is connected as it was when it was read. The other conditions are on the
// member item too.
func RemoveOps(m *Member, why Removal, conds ...table.Cond) []table.Op {
	return []table.Op{
		{Action: table.Delete, Key: memberKey(m.Group, m.Key), Conds: append(conds, m.ifConn())},
		{
			Action: table.Put,
			Key:    GroupItem(m.Group, removalItem+m.Lane),
			Set: table.Attrs{
				AttrGeneration: table.String(m.Generation),
				attrMember:     table.String(m.Key),
				attrLane:       table.String(m.Lane),
				attrConn:       table.String(string(m.Conn)),
				attrPrevious:   table.String(m.attrs[attrPrevious].Str()),
				attrCloseCode:  table.Number(int64(why.Code)),
				attrReason:     table.String(why.Reason),
			},
		},
	}
}

// FinishRemovals closes the connections of the removed members of a group and purges
// their lanes. When it returns nil, nothing more reaches them.
func (r *Relay) FinishRemovals(ctx context.Context, group string) error {
	items, err := r.removals(ctx, group)
	if err != nil {
		return err
	}
	items = slices.DeleteFunc(items, told)
	var errs []error
	// All connections first: the sooner they are closed, the better.
	for _, it := range items {
		for _, attr := range []string{attrConn, attrPrevious} {
			conn := gateway.Conn(it.Attrs[attr].Str())
			if conn == "" {
				continue
			}
			err := r.front.Close(ctx, conn, gateway.CloseCode(it.Attrs[attrCloseCode].Num()), it.Attrs[attrReason].Str())
			if err != nil && !errors.Is(err, gateway.ErrGone) {
				errs = append(errs, fmt.Errorf("failed to close the connection of a removed member: %w", err))
			}
		}
	}
	for _, it := range items {
		n, err := r.purgeLane(ctx, it.Attrs[attrLane].Str())
		errs = append(errs, err)
		r.observe.Dropped(ClassStored, "revoked", n)
	}
	return errors.Join(errs...)
}

// purgeLane deletes all entries of a lane whose member was deleted, and returns how
// many stored ones there were.
func (r *Relay) purgeLane(ctx context.Context, lane string) (int, error) {
	stored := 0
	q := table.Query{Partition: lanePartition(lane), Limit: table.MaxTransaction}
	for {
		p, err := r.table.Query(ctx, q)
		if err != nil {
			return stored, fmt.Errorf("failed to read a lane: %w", err)
		}
		ops := make([]table.Op, 0, len(p.Items))
		for _, it := range p.Items {
			if _, bound := it.Attrs[entConn]; !bound {
				stored++
			}
			ops = append(ops, table.Op{Action: table.Delete, Key: it.Key})
		}
		if len(ops) > 0 {
			if err := r.table.Transact(ctx, ops); err != nil {
				return stored, fmt.Errorf("failed to purge a lane: %w", err)
			}
		}
		if !p.More {
			return stored, nil
		}
		q.After = p.Next
	}
}

// AnnounceRemovals tells the others that members which were connected when they were
// removed are offline. It comes after FinishRemovals. It also ends the removals that
// are older than forgetAfter.
func (r *Relay) AnnounceRemovals(ctx context.Context, group string) error {
	items, err := r.removals(ctx, group)
	if err != nil {
		return err
	}
	var old []table.Item
	for _, it := range items {
		if told(it) {
			if !r.now().Before(time.UnixMilli(it.Attrs[attrTold].Num()).Add(forgetAfter)) {
				old = append(old, it)
			}
			continue
		}
		if it.Attrs[attrConn].Str() != "" {
			// The others are told nothing if a new incarnation is online already.
			m := &Member{Group: group, Key: it.Attrs[attrMember].Str(), Generation: it.Attrs[AttrGeneration].Str(), Conn: gateway.Conn(it.Attrs[attrConn].Str())}
			if err := r.announceChange(ctx, group, m.Key, m); err != nil {
				return err
			}
		}
		_, err := r.table.Write(ctx, table.Op{
			Action: table.Update, Key: it.Key, Conds: []table.Cond{table.IfExists()},
			Set: table.Attrs{attrTold: table.Number(r.now().UnixMilli())},
		})
		if err != nil && !errors.Is(err, table.ErrCondition) {
			return fmt.Errorf("failed to note that a removal was told: %w", err)
		}
	}
	return r.forgetSenders(ctx, group, old)
}

func told(it table.Item) bool { return it.Attrs[attrTold].Kind() != 0 }

// forgetSenders ends removals: the fences of the removed senders are deleted.
func (r *Relay) forgetSenders(ctx context.Context, group string, removals []table.Item) error {
	if len(removals) == 0 {
		return nil
	}
	members, err := r.memberItems(ctx, group)
	if err != nil {
		return err
	}
	for _, removal := range removals {
		lane := removal.Attrs[attrLane].Str()
		names := []string{fence(lane), lastFrame(lane), lastSeq(lane)}
		for _, it := range members {
			if !slices.ContainsFunc(names, func(name string) bool { return it.Attrs[name].Kind() != 0 }) {
				continue
			}
			_, err := r.table.Write(ctx, table.Op{
				Action: table.Update, Key: it.Key, Remove: names,
				Conds: []table.Cond{table.IfEqual(attrLane, it.Attrs[attrLane])},
			})
			if err != nil && !errors.Is(err, table.ErrCondition) {
				return fmt.Errorf("failed to forget a sender: %w", err)
			}
		}
		if _, err := r.table.Write(ctx, table.Op{Action: table.Delete, Key: removal.Key}); err != nil {
			return fmt.Errorf("failed to end a removal: %w", err)
		}
	}
	return nil
}

func (r *Relay) removals(ctx context.Context, group string) ([]table.Item, error) {
	prefix := GroupItem(group, removalItem)
	items, err := table.QueryAll(ctx, r.table, table.Query{Partition: prefix.Partition, Prefix: prefix.Sort})
	if err != nil {
		return nil, fmt.Errorf("failed to read the removals of a group: %w", err)
	}
	return items, nil
}

// DeleteGroup deletes a group without connections. The root is deleted first, on
// condition that it is as it was read; with it the group is gone, because no handler
// asks for the generation of what remains. It reports false if the root has changed.
func (r *Relay) DeleteGroup(ctx context.Context, root *Member) (bool, error) {
	_, err := r.table.Write(ctx, table.Op{
		Action: table.Delete,
		Key:    memberKey(root.Group, root.Key),
		Conds:  append(root.IfUnchanged(), table.IfNone(attrConn)),
	})
	if errors.Is(err, table.ErrCondition) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("failed to delete a group: %w", err)
	}
	if err := r.dropLane(ctx, root.Lane); err != nil {
		return false, err
	}
	return true, r.CleanGroup(ctx, root.Group)
}

// CleanGroup deletes what is left of a group whose root is gone. It leaves a group
// that has its root alone.
func (r *Relay) CleanGroup(ctx context.Context, group string) error {
	it, ok, err := r.Find(ctx, rootItem(group), "a group")
	if err != nil || !ok {
		return err
	}
	root, err := r.GetMember(ctx, group, it.Attrs[attrMember].Str())
	if err != nil || root != nil {
		return err
	}
	gen := it.Attrs[AttrGeneration]
	items, err := table.QueryAll(ctx, r.table, table.Query{Partition: groupPartition(group)})
	if err != nil {
		return fmt.Errorf("failed to read a group: %w", err)
	}
	for _, it := range items {
		if it.Attrs[AttrGeneration].Str() != gen.Str() || it.Key == rootItem(group) {
			continue
		}
		if strings.HasPrefix(it.Key.Sort, memberSort) || it.Attrs[attrLane].Str() != "" {
			if err := r.dropLane(ctx, it.Attrs[attrLane].Str()); err != nil {
				return err
			}
		}
		if err := r.deleteOfGeneration(ctx, it.Key, gen); err != nil {
			return err
		}
	}
	if d, ok := r.dialectOfGroup(group).(Cleaner); ok {
		if err := d.CleanGroup(ctx, group, gen.Str()); err != nil {
			return err
		}
	}
	// Last: while this item exists, an interrupted clean-up is found and goes on.
	return r.deleteOfGeneration(ctx, rootItem(group), gen)
}

func (r *Relay) dropLane(ctx context.Context, lane string) error {
	n, err := r.purgeLane(ctx, lane)
	r.observe.Dropped(ClassStored, "namespace_deleted", n)
	return err
}

func (r *Relay) deleteOfGeneration(ctx context.Context, k table.Key, gen table.Value) error {
	_, err := r.table.Write(ctx, table.Op{
		Action: table.Delete, Key: k,
		Conds: []table.Cond{table.IfEqual(AttrGeneration, gen)},
	})
	if err != nil && !errors.Is(err, table.ErrCondition) {
		return fmt.Errorf("failed to delete what is left of a group: %w", err)
	}
	return nil
}
