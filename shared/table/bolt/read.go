package bolt

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"

	"go.etcd.io/bbolt"
	bolterrors "go.etcd.io/bbolt/errors"

	"blindpost/shared/table"
)

// pageSize is the most bytes that a query reads, including those of expired items, so
// that it keeps old pages of the file alive for a bounded time.
const pageSize = 1 << 20

// begin starts a read transaction. It sees every commit that was answered.
func (t *Table) begin() (*bbolt.Tx, error) {
	tx, err := t.db.Begin(false)
	if errors.Is(err, bolterrors.ErrDatabaseNotOpen) {
		return nil, ErrClosed
	}
	if err != nil {
		return nil, fmt.Errorf("failed to read: %w", err)
	}
	return tx, nil
}

// Get implements table.Table.
func (t *Table) Get(ctx context.Context, k table.Key) (table.Item, error) {
	if err := k.Validate(); err != nil {
		return table.Item{}, err
	}
	if err := ctx.Err(); err != nil {
		return table.Item{}, err
	}
	var buf [256]byte
	key := appendStorageKey(buf[:0], k)
	it, err := t.lookup(k, key)
	if err != nil {
		return table.Item{}, err
	}
	if it.Expired(t.now()) {
		return table.Item{}, table.ErrNotFound
	}
	return it, nil
}

// lookup reads a stored item, expired or not, from the cache or the file.
func (t *Table) lookup(k table.Key, key []byte) (table.Item, error) {
	if t.ended.Load() {
		return table.Item{}, ErrClosed
	}
	enc, missed := t.cache.get(key)
	if enc != "" {
		return table.DecodeItemString(k, enc)
	}
	tx, err := t.begin()
	if err != nil {
		return table.Item{}, err
	}
	stored := tx.Bucket(bucketItems).Get(key)
	if stored == nil {
		return table.Item{}, rollback(tx, table.ErrNotFound)
	}
	it, err := table.DecodeItem(k, stored)
	if err == nil {
		t.cache.insert(key, stored, missed)
	}
	return it, rollback(tx, err)
}

// Query implements table.Table.
func (t *Table) Query(ctx context.Context, q table.Query) (table.Page, error) {
	if err := q.Validate(); err != nil {
		return table.Page{}, err
	}
	if err := ctx.Err(); err != nil {
		return table.Page{}, err
	}
	tx, err := t.begin()
	if err != nil {
		return table.Page{}, err
	}
	page, err := t.readPage(tx.Bucket(bucketItems).Cursor(), q)
	if err := rollback(tx, err); err != nil {
		return table.Page{}, err
	}
	return page, nil
}

func (t *Table) readPage(cursor *bbolt.Cursor, q table.Query) (table.Page, error) {
	var page table.Page
	now := t.now()
	partition := append([]byte(q.Partition), separator)
	start := append(bytes.Clone(partition), max(q.Prefix, q.After)...)
	size := 0
	for k, stored := cursor.Seek(start); k != nil; k, stored = cursor.Next() {
		rest, ok := bytes.CutPrefix(k, partition)
		if !ok {
			break
		}
		sort := string(rest)
		if !strings.HasPrefix(sort, q.Prefix) || (q.Before != "" && sort >= q.Before) {
			break
		}
		if q.After != "" && sort == q.After {
			continue
		}
		if size >= pageSize || (q.Limit > 0 && len(page.Items) == q.Limit) {
			page.More = true
			return page, nil
		}
		size += len(stored)
		page.Next = sort
		if table.Expired(stored, now) {
			continue
		}
		it, err := table.DecodeItem(table.Key{Partition: q.Partition, Sort: sort}, stored)
		if err != nil {
			return table.Page{}, err
		}
		page.Items = append(page.Items, it)
	}
	page.Next = ""
	return page, nil
}
