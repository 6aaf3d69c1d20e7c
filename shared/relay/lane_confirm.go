package relay

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"blindpost/shared/table"
)

// confirm deletes confirmed entries from a lane. A second confirmation is harmless.
func (r *Relay) confirm(ctx context.Context, group, key, lane string, marks []uint64) error {
	const chunk = (table.MaxTransaction - 1) / 2 // an entry may be two items
	for part := range slices.Chunk(marks, chunk) {
		if err := r.confirmPart(ctx, group, key, lane, part); err != nil {
			return fmt.Errorf("failed to confirm delivery: %w", err)
		}
	}
	return nil
}

func (r *Relay) confirmPart(ctx context.Context, group, key, lane string, marks []uint64) error {
	err := r.confirmTogether(ctx, group, key, lane, marks)
	if !errors.Is(err, table.ErrCondition) {
		return err
	}
	if len(marks) == 1 {
		// It is deleted already, or has expired. What has expired must go too: it would
		// come back if the clock were set back. The counters include it, as they do all
		// that has expired.
		return r.table.Transact(ctx, deleteOps(lane, marks[0]))
	}
	for i := range marks {
		if err := r.confirmPart(ctx, group, key, lane, marks[i:i+1]); err != nil {
			return err
		}
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
		del := deleteOps(lane, mark)
		del[0].Conds = []table.Cond{table.IfExists()}
		ops = append(ops, del...)
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

// deleteOps delete an entry: one operation, or two for a frame in two items.
func deleteOps(lane string, mark uint64) []table.Op {
	seq := markSeq(mark)
	ops := []table.Op{{Action: table.Delete, Key: laneKey(lane, seq)}}
	if mark&pairMark != 0 {
		ops = append(ops, table.Op{Action: table.Delete, Key: laneKey(lane, seq-1)})
	}
	return ops
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
