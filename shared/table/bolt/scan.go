package bolt

import (
	"bytes"
	"context"

	"blindpost/shared/table"
)

// Scan visits the items of all partitions that begin with prefix, in order. It is for
// the recovery at start; the table contract has no operation over all partitions. It
// reads in pages, each in a transaction of its own, so that it never blocks writers.
func (t *Table) Scan(ctx context.Context, prefix string, visit func(table.Item) error) error {
	for from := []byte(prefix); from != nil; {
		if err := ctx.Err(); err != nil {
			return err
		}
		items, next, err := t.scanPage(prefix, from)
		if err != nil {
			return err
		}
		for _, it := range items {
			if err := visit(it); err != nil {
				return err
			}
		}
		from = next
	}
	return nil
}

// scanPage returns a page of items and the key of the next page, nil at the end.
func (t *Table) scanPage(prefix string, from []byte) ([]table.Item, []byte, error) {
	if t.ended.Load() {
		return nil, nil, ErrClosed
	}
	tx, err := t.begin()
	if err != nil {
		return nil, nil, err
	}
	var items []table.Item
	var next []byte
	size, now := 0, t.now()
	cursor := tx.Bucket(bucketItems).Cursor()
	for k, stored := cursor.Seek(from); k != nil && bytes.HasPrefix(k, []byte(prefix)); k, stored = cursor.Next() {
		if size >= pageSize {
			next = bytes.Clone(k)
			break
		}
		size += len(stored)
		partition, sort, ok := bytes.Cut(k, []byte{separator})
		if !ok || table.Expired(stored, now) {
			continue
		}
		it, err := table.DecodeItem(table.Key{Partition: string(partition), Sort: string(sort)}, stored)
		if err != nil {
			return nil, nil, rollback(tx, err)
		}
		items = append(items, it)
	}
	return items, next, rollback(tx, nil)
}
