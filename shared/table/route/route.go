// Package route makes one table out of two: partitions with certain prefixes are in
// one, all others in the other. So items that are useless after a restart can stay in
// memory while the others are in a file.
//
// It keeps the contract of package table as far as both tables do, with one exception:
// a transaction over partitions of both tables cannot be atomic and is ErrInvalid.
package route

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"blindpost/shared/table"
)

var _ table.Table = (*Table)(nil)

// Table sends every operation to one of two tables. Make one with New.
type Table struct {
	special  table.Table
	prefixes []string
	rest     table.Table
}

// New makes a table that keeps the partitions that begin with one of the
// prefixes in special and all others in rest.
func New(special table.Table, prefixes []string, rest table.Table) *Table {
	return &Table{special: special, prefixes: slices.Clone(prefixes), rest: rest}
}

// isSpecial reports whether a partition is in the special table.
func (t *Table) isSpecial(partition string) bool {
	for _, prefix := range t.prefixes {
		if strings.HasPrefix(partition, prefix) {
			return true
		}
	}
	return false
}

func (t *Table) table(partition string) table.Table {
	if t.isSpecial(partition) {
		return t.special
	}
	return t.rest
}

// Get implements table.Table.
func (t *Table) Get(ctx context.Context, k table.Key) (table.Item, error) {
	return t.table(k.Partition).Get(ctx, k)
}

// Query implements table.Table.
func (t *Table) Query(ctx context.Context, q table.Query) (table.Page, error) {
	return t.table(q.Partition).Query(ctx, q)
}

// Write implements table.Table.
func (t *Table) Write(ctx context.Context, op table.Op) (table.Item, error) {
	return t.table(op.Key.Partition).Write(ctx, op)
}

// Transact implements table.Table. It refuses a transaction over both tables.
func (t *Table) Transact(ctx context.Context, ops []table.Op) error {
	if len(ops) == 0 {
		return t.rest.Transact(ctx, ops)
	}
	special := t.isSpecial(ops[0].Key.Partition)
	for i := range ops[1:] {
		if t.isSpecial(ops[i+1].Key.Partition) != special {
			return fmt.Errorf("%w: transaction over two tables", table.ErrInvalid)
		}
	}
	return t.table(ops[0].Key.Partition).Transact(ctx, ops)
}
