package agentknock

import (
	"context"
	"errors"
	"fmt"

	"blindpost/shared/table"
)

// entries reads all exchanges of a device that are live, oldest first.
func (d *Dialect) entries(ctx context.Context, h deviceKeys) ([]entry, error) {
	items, err := table.QueryAll(ctx, d.core.Table(), table.Query{Partition: h.partition(), Prefix: openSort})
	if err != nil {
		return nil, fmt.Errorf("failed to read the open exchanges: %w", err)
	}
	now := d.core.Now()
	out := make([]entry, 0, len(items))
	for _, it := range items {
		if e := entryFrom(it); e.live(now) {
			out = append(out, e)
		}
	}
	return out, nil
}

// recount sets the counters of a device and of one of its clients to the exchanges that
// are open. If another handler changes the counters at the same time, it changes nothing.
func (d *Dialect) recount(ctx context.Context, h deviceKeys, client string) error {
	// Read before the entries: a change after that makes the condition fail.
	device, err := d.loadUsage(ctx, h)
	if err != nil {
		return err
	}
	c, err := d.loadClient(ctx, h, client)
	if err != nil {
		return err
	}
	entries, err := d.entries(ctx, h)
	if err != nil {
		return err
	}
	var all, own usage
	for _, e := range entries {
		all.Open, all.Bytes = all.Open+1, all.Bytes+e.bytes
		if e.address != "" {
			all.PairOpen, all.PairBytes = all.PairOpen+1, all.PairBytes+e.bytes
		}
		if e.client == client {
			own.Open, own.Bytes = own.Open+1, own.Bytes+e.bytes
		}
	}
	if err := d.setUsage(ctx, h.key(countersSort), device, all); err != nil || c == nil {
		return err
	}
	return d.setUsage(ctx, h.clientKey(client), c.usage, own)
}

func (d *Dialect) setUsage(ctx context.Context, key table.Key, was, is usage) error {
	if was.Open == is.Open && was.Bytes == is.Bytes && was.PairOpen == is.PairOpen && was.PairBytes == is.PairBytes {
		return nil
	}
	_, err := d.core.Table().Write(ctx, table.Op{
		Action: table.Update, Key: key, Conds: was.unchanged(),
		Set: table.Attrs{
			attrOpen: table.Number(is.Open), attrBytes: table.Number(is.Bytes),
			attrPairOpen: table.Number(is.PairOpen), attrPairBytes: table.Number(is.PairBytes),
		},
	})
	if err != nil && !errors.Is(err, table.ErrCondition) {
		return fmt.Errorf("failed to recount: %w", err)
	}
	return nil
}
