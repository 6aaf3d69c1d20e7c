package metrics

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"testing"
	"testing/synctest"
	"time"

	"blindpost/shared/table"
)

// slowTable answers after a while, always the same.
type slowTable struct {
	took time.Duration
	err  error
	last any // what it was asked
}

func (s *slowTable) answer(asked any) error {
	time.Sleep(s.took)
	s.last = asked
	return s.err
}

func (s *slowTable) Get(_ context.Context, k table.Key) (table.Item, error) {
	return table.Item{Key: k}, s.answer(k)
}

func (s *slowTable) Query(_ context.Context, q table.Query) (table.Page, error) {
	return table.Page{Next: q.After}, s.answer(q)
}

func (s *slowTable) Write(_ context.Context, op table.Op) (table.Item, error) {
	return table.Item{Key: op.Key}, s.answer(op)
}

func (s *slowTable) Transact(_ context.Context, ops []table.Op) error {
	return s.answer(ops)
}

func TestTableTimesAndChangesNothing(t *testing.T) {
	key := table.Key{Partition: "p", Sort: "s"}
	query := table.Query{Partition: "p", After: "a"}
	op := table.Op{Action: table.Delete, Key: key}
	tests := []struct {
		err    error
		result string
	}{
		{nil, "ok"},
		{table.ErrNotFound, "not_found"},
		{&table.ConditionError{Op: 3}, "condition"},
		{fmt.Errorf("failed to write: %w", table.ErrBusy), "busy"},
		{table.ErrTooLarge, "too_large"},
		{table.ErrInvalid, "invalid"},
		{context.Canceled, "canceled"},
		{context.DeadlineExceeded, "canceled"},
		{errors.New("disk on fire"), "failed"},
	}
	for _, tt := range tests {
		t.Run(tt.result, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := New(Options{})
				under := &slowTable{took: 3 * time.Second, err: tt.err}
				wrapped := NewTable(under, m)
				before := scrape(t, m)

				calls := []struct {
					name  string
					asked any
					do    func() (any, error)
					want  any
				}{
					{"get", key, func() (any, error) { return wrapped.Get(t.Context(), key) }, table.Item{Key: key}},
					{"query", query, func() (any, error) { return wrapped.Query(t.Context(), query) }, table.Page{Next: "a"}},
					{"write", op, func() (any, error) { return wrapped.Write(t.Context(), op) }, table.Item{Key: key}},
					{"transact", []table.Op{op}, func() (any, error) { return nil, wrapped.Transact(t.Context(), []table.Op{op}) }, nil},
				}
				want := map[string]float64{}
				for _, c := range calls {
					got, err := c.do()
					if err != tt.err || !reflect.DeepEqual(got, c.want) || !reflect.DeepEqual(under.last, c.asked) {
						t.Errorf("%s of %v answers %v, %v", c.name, under.last, got, err)
					}
					want[`blindpost_table_operations_total{operation="`+c.name+`",result="`+tt.result+`"}`] = 1
					want[`blindpost_table_operation_seconds_count{operation="`+c.name+`"}`] = 1
					want[`blindpost_table_operation_seconds_sum{operation="`+c.name+`"}`] = 3
				}
				if got := changed(before, scrape(t, m)); !maps.Equal(got, want) {
					t.Errorf("moved %v\nwant  %v", got, want)
				}
			})
		})
	}
}
