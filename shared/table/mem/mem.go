// Package mem is a table in memory. It keeps the contract of package table except
// durability: all items are lost when the process ends. It is for items that are useless
// after a restart, such as the records of open connections, and for tests.
//
// Items are stored encoded, with about 130 bytes of overhead. Expired items are absent
// at once; later writes and [Table.Sweep] free their memory.
package mem

import (
	"context"
	"strings"
	"sync"
	"time"

	"github.com/tidwall/btree"

	"blindpost/shared/table"
)

var _ table.Table = (*Table)(nil)

// pageSize is the most bytes that a query reads, including those of expired items, so
// that it holds the lock for a bounded time.
const pageSize = 1 << 20

// Table is a table in memory. Make one with New.
type Table struct {
	now func() time.Time

	mu      sync.RWMutex
	items   map[string]string // storage key to encoded item
	order   btree.Set[string] // the keys of items
	scratch []byte
	sweeper sweeper
}

// New makes an empty table that takes the time from now.
func New(now func() time.Time) *Table {
	return &Table{now: now, items: make(map[string]string)}
}

// Len returns the number of items that take memory, expired ones included.
func (t *Table) Len() int {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return len(t.items)
}

// separator is between partition and sort key. As keys have no control characters, it
// occurs in neither and is less than all their characters. So storage keys of a
// partition have the order of the sort keys.
const separator = "\x00"

func storageKey(k table.Key) string { return k.Partition + separator + k.Sort }

// Get implements table.Table.
func (t *Table) Get(ctx context.Context, k table.Key) (table.Item, error) {
	if err := ctx.Err(); err != nil {
		return table.Item{}, err
	}
	if err := k.Validate(); err != nil {
		return table.Item{}, err
	}
	var buf [256]byte
	key := append(append(append(buf[:0], k.Partition...), separator...), k.Sort...)
	t.mu.RLock()
	enc, ok := t.items[string(key)]
	t.mu.RUnlock()
	if !ok {
		return table.Item{}, table.ErrNotFound
	}
	it, err := table.DecodeItemString(k, enc)
	if err != nil {
		return table.Item{}, err
	}
	if it.Expired(t.now()) {
		return table.Item{}, table.ErrNotFound
	}
	return it, nil
}

// Query implements table.Table.
func (t *Table) Query(ctx context.Context, q table.Query) (table.Page, error) {
	if err := ctx.Err(); err != nil {
		return table.Page{}, err
	}
	if err := q.Validate(); err != nil {
		return table.Page{}, err
	}
	type entry struct{ sort, enc string }
	var found []entry
	var page table.Page
	partition := q.Partition + separator
	now := t.now()
	size := 0

	t.mu.RLock()
	t.order.Ascend(partition+max(q.Prefix, q.After), func(key string) bool {
		sort, ok := strings.CutPrefix(key, partition)
		if !ok || !strings.HasPrefix(sort, q.Prefix) || (q.Before != "" && sort >= q.Before) {
			return false
		}
		if q.After != "" && sort == q.After {
			return true
		}
		if size >= pageSize || (q.Limit > 0 && len(found) == q.Limit) {
			page.More = true
			return false
		}
		enc := t.items[key]
		size += len(enc)
		page.Next = sort
		if !table.Expired(enc, now) {
			found = append(found, entry{sort, enc})
		}
		return true
	})
	t.mu.RUnlock()

	if !page.More {
		page.Next = ""
	}
	page.Items = make([]table.Item, 0, len(found))
	for _, e := range found {
		it, err := table.DecodeItemString(table.Key{Partition: q.Partition, Sort: e.sort}, e.enc)
		if err != nil {
			return table.Page{}, err
		}
		page.Items = append(page.Items, it)
	}
	return page, nil
}

// Write implements table.Table.
func (t *Table) Write(ctx context.Context, op table.Op) (table.Item, error) {
	if err := ctx.Err(); err != nil {
		return table.Item{}, err
	}
	if err := table.ValidateWrite(op); err != nil {
		return table.Item{}, err
	}
	p := table.Prepare(op)
	key := storageKey(op.Key)

	t.mu.Lock()
	now := t.now()
	old, next, err := t.evaluate(&p, key, now)
	if err == nil {
		t.store(key, next)
		t.sweepSome(now, 1)
	}
	t.mu.Unlock()

	if err != nil || old == "" || table.Expired(old, now) {
		return table.Item{}, err
	}
	return table.DecodeItemString(op.Key, old)
}

// Transact implements table.Table.
func (t *Table) Transact(ctx context.Context, ops []table.Op) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := table.ValidateTransaction(ops); err != nil {
		return err
	}
	prepared := make([]table.Prepared, len(ops))
	keys := make([]string, len(ops))
	for i := range ops {
		prepared[i] = table.Prepare(ops[i])
		keys[i] = storageKey(ops[i].Key)
	}
	news := make([]string, len(ops))

	t.mu.Lock()
	defer t.mu.Unlock()
	now := t.now()
	// The operations have different keys, so all can be evaluated before the
	// first is stored.
	for i := range prepared {
		_, next, err := t.evaluate(&prepared[i], keys[i], now)
		if err != nil {
			return table.AtOp(err, i)
		}
		news[i] = next
	}
	for i := range news {
		t.store(keys[i], news[i])
	}
	t.sweepSome(now, len(ops))
	return nil
}

// evaluate returns the stored encoding and the one to store, "" for none.
func (t *Table) evaluate(p *table.Prepared, key string, now time.Time) (old, next string, err error) {
	old = t.items[key]
	if p.Action() == table.Check {
		return old, old, table.CheckEncoded(p, old, now)
	}
	enc, err := table.ApplyEncoded(p, old, now, t.scratch)
	if err != nil {
		return "", "", err
	}
	if p.Action() == table.Update && cap(enc) <= maxScratch {
		t.scratch = enc
	}
	return old, string(enc), nil
}

// maxScratch is the largest buffer kept between updates.
const maxScratch = 64 << 10

func (t *Table) store(key, enc string) {
	if enc == "" {
		t.remove(key)
		return
	}
	before := len(t.items)
	t.items[key] = enc
	if len(t.items) > before {
		t.order.Insert(key)
	}
}

func (t *Table) remove(key string) {
	before := len(t.items)
	delete(t.items, key)
	if len(t.items) < before {
		t.order.Delete(key)
	}
}
