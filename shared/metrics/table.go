package metrics

import (
	"context"
	"errors"
	"time"

	"blindpost/shared/table"
)

// Table measures the operations of another table.
type Table struct {
	under   table.Table
	metrics *Metrics
}

var _ table.Table = (*Table)(nil)

// NewTable wraps a table.
func NewTable(under table.Table, m *Metrics) *Table {
	return &Table{under: under, metrics: m}
}

// Get implements table.Table.
func (t *Table) Get(ctx context.Context, k table.Key) (table.Item, error) {
	start := time.Now()
	item, err := t.under.Get(ctx, k)
	t.metrics.TableOperation("get", tableResult(err), time.Since(start))
	return item, err
}

// Query implements table.Table.
func (t *Table) Query(ctx context.Context, q table.Query) (table.Page, error) {
	start := time.Now()
	page, err := t.under.Query(ctx, q)
	t.metrics.TableOperation("query", tableResult(err), time.Since(start))
	return page, err
}

// Write implements table.Table.
func (t *Table) Write(ctx context.Context, op table.Op) (table.Item, error) {
	start := time.Now()
	old, err := t.under.Write(ctx, op)
	t.metrics.TableOperation("write", tableResult(err), time.Since(start))
	return old, err
}

// Transact implements table.Table.
func (t *Table) Transact(ctx context.Context, ops []table.Op) error {
	start := time.Now()
	err := t.under.Transact(ctx, ops)
	t.metrics.TableOperation("transact", tableResult(err), time.Since(start))
	return err
}

// TableOperation counts an operation on the table and notes how long it took.
func (m *Metrics) TableOperation(operation, result string, took time.Duration) {
	m.tableOps.two(operation, result).Inc()
	m.tableSeconds.one(operation).Observe(took.Seconds())
}

// tableResult is the label of a result. A failed condition or a missing item is a normal
// result, not a fault.
func tableResult(err error) string {
	switch {
	case err == nil:
		return "ok"
	case errors.Is(err, table.ErrNotFound):
		return "not_found"
	case errors.Is(err, table.ErrCondition):
		return "condition"
	case errors.Is(err, table.ErrBusy):
		return "busy"
	case errors.Is(err, table.ErrTooLarge):
		return "too_large"
	case errors.Is(err, table.ErrInvalid):
		return "invalid"
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return "canceled"
	}
	return "failed"
}
