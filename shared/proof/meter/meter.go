// Package meter tells what the use of a table would cost on DynamoDB. It wraps any
// table, counts the request units of every operation from the items themselves,
// and changes nothing about the operations. So a scenario that runs over table/bolt
// or table/mem has a price.
//
// The rules are those that AWS documents. A write takes one write unit for each
// KB, begun, of the larger of the item before and after; a strongly consistent
// read one read unit for each 4 KB, a query for all its items together; at least
// one in each case. In a transaction every operation costs double, a check like a
// write of the item. A failed condition costs what the write would have cost. How
// table/dynamo stores an item and what it asks of DynamoDB are taken into account:
// a transaction of one operation is a write to it, or a read.
//
// What a meter cannot see it does not count. DynamoDB also charges for reading
// expired items that it has not removed yet; table/dynamo needs a second write for
// the first update after an expiry, may read one item of a query more than it
// returns, and repeats requests after a conflict. AWS documents no charge for a
// cancelled transaction; it is counted like one that was done.
//
// To know the size of an item that a transaction replaces, or that failed a
// condition, the meter reads it, which another writer may change in between. Those
// reads are not counted, but would be paid for: where the table is table/dynamo, its
// OnConsumed tells more for less.
package meter

import (
	"context"
	"errors"
	"sync"
	"time"

	"blindpost/shared/table"
)

var _ table.Table = (*Table)(nil)

// Table counts the operations of another table. Make one with New.
type Table struct {
	under table.Table

	mu    sync.Mutex
	usage Usage
}

// New wraps a table.
func New(under table.Table) *Table { return &Table{under: under} }

// Usage returns what has been used so far.
func (t *Table) Usage() Usage {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.usage
}

func (t *Table) count(k Kind, u Units, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	c := &t.usage[k]
	c.Calls++
	if errors.Is(err, table.ErrCondition) {
		c.Refused++
	}
	c.Units = c.Units.Plus(u)
}

// Get implements table.Table.
func (t *Table) Get(ctx context.Context, k table.Key) (table.Item, error) {
	it, err := t.under.Get(ctx, k)
	switch {
	case err == nil:
		t.count(Get, Units{Read: ReadUnits(Size(it))}, nil)
	case errors.Is(err, table.ErrNotFound):
		t.count(Get, Units{Read: ReadUnits(0)}, nil)
	default:
		t.count(Get, Units{}, err)
	}
	return it, err
}

// Query implements table.Table.
func (t *Table) Query(ctx context.Context, q table.Query) (table.Page, error) {
	page, err := t.under.Query(ctx, q)
	if err != nil {
		t.count(Query, Units{}, err)
		return page, err
	}
	size := 0
	for _, it := range page.Items {
		size += Size(it)
	}
	t.count(Query, Units{Read: ReadUnits(size)}, nil)
	return page, nil
}

// Write implements table.Table.
func (t *Table) Write(ctx context.Context, op table.Op) (table.Item, error) {
	old, err := t.under.Write(ctx, op)
	var units Units
	switch {
	case err == nil:
		units.Write = writeUnits(op, stored(old))
	case errors.Is(err, table.ErrCondition):
		units.Write = writeUnits(op, t.look(ctx, op.Key))
	}
	t.count(kindOf(op.Action), units, err)
	return old, err
}

// Transact implements table.Table.
func (t *Table) Transact(ctx context.Context, ops []table.Op) error {
	if len(ops) == 0 {
		return t.under.Transact(ctx, ops)
	}
	before := make([]*table.Item, len(ops))
	if table.ValidateTransaction(ops) == nil {
		for i := range ops {
			before[i] = t.look(ctx, ops[i].Key)
		}
	}
	err := t.under.Transact(ctx, ops)
	var units Units
	if err == nil || errors.Is(err, table.ErrCondition) {
		units = transactUnits(ops, before)
	}
	kind := Transact
	if len(ops) == 1 {
		kind = kindOf(ops[0].Action)
	}
	t.count(kind, units, err)
	return err
}

// look returns the item that is stored, nil if there is none or nobody knows.
func (t *Table) look(ctx context.Context, k table.Key) *table.Item {
	it, err := t.under.Get(context.WithoutCancel(ctx), k)
	if err != nil {
		return nil
	}
	return &it
}

// stored is the old item of a write, nil if there was none.
func stored(old table.Item) *table.Item {
	if old.Attrs == nil {
		return nil
	}
	return &old
}

func transactUnits(ops []table.Op, before []*table.Item) Units {
	if len(ops) == 1 {
		if ops[0].Action == table.Check {
			return Units{Read: ReadUnits(sizeOf(before[0]))}
		}
		return Units{Write: writeUnits(ops[0], before[0])}
	}
	var units Units
	for i := range ops {
		units.Write += 2 * writeUnits(ops[i], before[i])
	}
	return units
}

// writeUnits is what an operation costs on an item, nil for none: by the larger of
// the item before and after.
func writeUnits(op table.Op, before *table.Item) int64 {
	size := sizeOf(before)
	op.Conds = nil // what would become of the item, also if they fail
	// The item has been seen as live, so no time has to be told.
	if after, err := table.Apply(op, before, time.Time{}); err == nil {
		size = max(size, sizeOf(after))
	}
	return WriteUnits(size)
}

func sizeOf(it *table.Item) int {
	if it == nil {
		return 0
	}
	return Size(*it)
}
