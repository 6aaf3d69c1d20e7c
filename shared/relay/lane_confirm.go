package relay

import (
	"context"
	"errors"
	"fmt"

	"blindpost/shared/table"
)

// confirm deletes confirmed entries from a lane. It skips those that are deleted
// already, so that a second confirmation is harmless.
func (r *Relay) confirm(ctx context.Context, group, key, lane string, marks []uint64) error {
	const chunk = (table.MaxTransaction - 1) / 2 // an entry may be two items
	for len(marks) > 0 {
		n := min(len(marks), chunk)
		err := r.confirmTogether(ctx, group, key, lane, marks[:n])
		if errors.Is(err, table.ErrCondition) {
			err = r.confirmSingly(ctx, group, key, lane, marks[:n])
		}
		if err != nil {
			return fmt.Errorf("failed to confirm delivery: %w", err)
		}
		marks = marks[n:]
	}
	return nil
}

func (r *Relay) confirmTogether(ctx context.Context, group, key, lane string, marks []uint64) error {
	ops := make([]table.Op, 0, len(marks)+1)
	var stored, transient int64
	for _, mark := range marks {
		if mark&transientMark != 0 {
			transient++
		} else {
			stored++
		}
		seq := markSeq(mark)
		if mark&pairMark != 0 {
			ops = append(ops, table.Op{Action: table.Delete, Key: laneKey(lane, seq-1)})
		}
		ops = append(ops, table.Op{
			Action: table.Delete,
			Key:    laneKey(lane, seq),
			Conds:  []table.Cond{table.IfExists()},
		})
	}
	add := make(map[string]int64, 2)
	if stored != 0 {
		add[attrStored] = -stored
	}
	if transient != 0 {
		add[attrTransient] = -transient
	}
	ops = append(ops, table.Op{
		Action: table.Update,
		Key:    memberKey(group, key),
		Conds:  []table.Cond{table.IfEqual(attrLane, table.String(lane))},
		Add:    add,
	})
	if err := r.table.Transact(ctx, ops); err != nil {
		return err
	}
	r.observe.Confirmed(int(stored))
	return nil
}

func (r *Relay) confirmSingly(ctx context.Context, group, key, lane string, marks []uint64) error {
	for _, mark := range marks {
		err := r.confirmTogether(ctx, group, key, lane, []uint64{mark})
		if err != nil && !errors.Is(err, table.ErrCondition) {
			return err
		}
	}
	return nil
}

// recount sets the counters of a lane to the number of entries that are there. The
// counters include expired entries, so they can be too high, never too low; that matters
// only when the cap is reached. It reports whether to read the member again, because
// the counters went down or the member has changed.
func (r *Relay) recount(ctx context.Context, m *Member) (bool, error) {
	items, err := table.QueryAll(ctx, r.table, table.Query{Partition: lanePartition(m.Lane)})
	if err != nil {
		return false, fmt.Errorf("failed to recount a lane: %w", err)
	}
	var stored, transient int64
	for _, it := range items {
		if it.Attrs[entFirst].Num() == 1 {
			continue // its second half counts
		}
		if _, bound := it.Attrs[entConn]; bound {
			transient++
		} else {
			stored++
		}
	}
	if stored >= m.stored && transient >= m.transient {
		return false, nil
	}
	set := table.Attrs{attrStored: table.Number(stored), attrTransient: table.Number(transient)}
	_, err = r.table.Write(ctx, m.updateOp(set, m.ifLane(), m.ifTail(),
		m.ifCount(attrStored, m.stored), m.ifCount(attrTransient, m.transient)))
	if errors.Is(err, table.ErrCondition) {
		return true, nil // changed by another handler
	}
	if err != nil {
		return false, fmt.Errorf("failed to recount a lane: %w", err)
	}
	r.observe.Dropped(ClassStored, "expired", int(m.stored-stored))
	return true, nil
}

func (m *Member) ifCount(attr string, n int64) table.Cond {
	if _, ok := m.attrs[attr]; !ok {
		return table.IfNone(attr)
	}
	return table.IfEqual(attr, table.Number(n))
}
