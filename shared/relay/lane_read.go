package relay

import (
	"context"
	"fmt"

	"blindpost/shared/table"
)

// readLane reads entries after a number, at most limit. It returns none only at the end
// of the lane: it reads on after a page whose entries have all expired.
func (r *Relay) readLane(ctx context.Context, lane string, after int64, limit int) ([]*entry, error) {
	q := table.Query{Partition: lanePartition(lane), After: laneSort(after), Limit: limit}
	for {
		p, err := r.table.Query(ctx, q)
		if err != nil {
			return nil, fmt.Errorf("failed to read a lane: %w", err)
		}
		if len(p.Items) == 0 && p.More {
			q.After = p.Next
			continue
		}
		if n := len(p.Items); n > 0 && p.Items[n-1].Attrs[entFirst].Num() == 1 {
			// The page ends in the middle of a frame.
			rest, err := r.table.Query(ctx, table.Query{
				Partition: q.Partition, After: p.Items[n-1].Key.Sort, Limit: 1,
			})
			if err != nil {
				return nil, fmt.Errorf("failed to read a lane: %w", err)
			}
			p.Items = append(p.Items, rest.Items...)
		}
		return entriesFrom(p.Items)
	}
}

// entriesFrom makes entries of items, and joins the two halves of a frame. A half
// whose other half is missing, because it has just expired, is left out.
func entriesFrom(items []table.Item) ([]*entry, error) {
	out := make([]*entry, 0, len(items))
	var first *entry
	for _, it := range items {
		e, err := entryFrom(it)
		if err != nil {
			return nil, err
		}
		switch {
		case it.Attrs[entFirst].Num() == 1:
			first = e
			continue
		case it.Attrs[entSecond].Num() == 1:
			if first == nil || first.seq != e.seq-1 {
				continue
			}
			e.pair = true
			e.frame.Data = append(first.frame.Data, e.frame.Data...)
		}
		first = nil
		out = append(out, e)
	}
	return out, nil
}

// readAll reads a whole lane.
func (r *Relay) readAll(ctx context.Context, lane string) ([]*entry, error) {
	items, err := table.QueryAll(ctx, r.table, table.Query{Partition: lanePartition(lane)})
	if err != nil {
		return nil, fmt.Errorf("failed to read a lane: %w", err)
	}
	return entriesFrom(items)
}
