package tabletest

import (
	"bytes"
	"errors"
	"fmt"
	"sort"
	"strings"
	"testing"
	"time"

	"blindpost/shared/table"
)

// fixture is what a case works with: a partition of its own, and steps that
// fail the test when they do not go as told.
type fixture struct {
	*testing.T
	tbl       table.Table
	clock     *clock
	partition string
	suite     *suite
}

func (f *fixture) key(sort string) table.Key { return table.Key{Partition: f.partition, Sort: sort} }

// soon is a whole second ahead of the clock.
func (f *fixture) soon(seconds int) time.Time {
	return f.clock.Now().Truncate(time.Second).Add(time.Duration(seconds) * time.Second)
}

func (f *fixture) write(op table.Op) table.Item {
	f.Helper()
	old, err := persistWrite(f.tbl, op)
	if err != nil {
		f.Fatalf("write: %v", err)
	}
	return old
}

func (f *fixture) put(sort string, attrs table.Attrs) table.Item {
	f.Helper()
	return f.write(table.Op{Action: table.Put, Key: f.key(sort), Set: attrs})
}

func (f *fixture) putExpiring(sort string, attrs table.Attrs, expires time.Time) {
	f.Helper()
	f.write(table.Op{Action: table.Put, Key: f.key(sort), Set: attrs, Expires: expires})
}

// persist repeats a write while the table is busy, as its users do.
func persist(write func() error) error {
	for {
		err := write()
		if !errors.Is(err, table.ErrBusy) {
			return err
		}
	}
}

func persistWrite(tbl table.Table, op table.Op) (old table.Item, err error) {
	err = persist(func() error {
		old, err = tbl.Write(background(), op)
		return err
	})
	return old, err
}

func persistTransact(tbl table.Table, ops ...table.Op) error {
	return persist(func() error { return tbl.Transact(background(), ops) })
}

func (f *fixture) transact(ops ...table.Op) {
	f.Helper()
	if err := persistTransact(f.tbl, ops...); err != nil {
		f.Fatalf("transact: %v", err)
	}
}

func (f *fixture) query(q table.Query) table.Page {
	f.Helper()
	if q.Partition == "" {
		q.Partition = f.partition
	}
	p, err := f.tbl.Query(background(), q)
	if err != nil {
		f.Fatalf("query: %v", err)
	}
	return p
}

// wantItem demands that Get returns exactly this item.
func (f *fixture) wantItem(sort string, attrs table.Attrs, expires time.Time) {
	f.Helper()
	it, err := f.tbl.Get(background(), f.key(sort))
	if err != nil {
		f.Fatalf("get: %v", err)
	}
	f.wantSame("item", it, table.Item{Key: f.key(sort), Attrs: attrs, Expires: expires})
}

func (f *fixture) wantAbsent(sort string) {
	f.Helper()
	it, err := f.tbl.Get(background(), f.key(sort))
	if !errors.Is(err, table.ErrNotFound) {
		f.Fatalf("get: %v, %v; want no item", describe(it), err)
	}
}

func (f *fixture) wantSame(what string, got, want table.Item) {
	f.Helper()
	if describe(got) != describe(want) {
		f.Fatalf("%s is\n  %s, want\n  %s", what, describe(got), describe(want))
	}
}

// wantNone demands the zero Item, as Write returns it when there was none.
func (f *fixture) wantNone(got table.Item) {
	f.Helper()
	if got.Attrs != nil || got.Key != (table.Key{}) || !got.Expires.IsZero() {
		f.Fatalf("old item is %s, want the zero Item", describe(got))
	}
}

func (f *fixture) wantWriteError(op table.Op, want error) {
	f.Helper()
	old, err := persistWrite(f.tbl, op)
	if !errors.Is(err, want) {
		f.Fatalf("write: error %v, want %v", err, want)
	}
	f.wantNone(old)
	if want == table.ErrCondition {
		f.wantFailedOp(err, 0)
	}
}

func (f *fixture) wantTransactError(want error, ops ...table.Op) error {
	f.Helper()
	err := persistTransact(f.tbl, ops...)
	if !errors.Is(err, want) {
		f.Fatalf("transact: error %v, want %v", err, want)
	}
	return err
}

// wantFailedOp demands a ConditionError about the operation with this index.
func (f *fixture) wantFailedOp(err error, index int) {
	f.Helper()
	var condition *table.ConditionError
	if !errors.As(err, &condition) || !errors.Is(err, table.ErrCondition) {
		f.Fatalf("error %v, want a ConditionError", err)
	}
	if condition.Op != index {
		f.Fatalf("operation %d failed, want %d", condition.Op, index)
	}
}

// wantSorts reads all pages of a query and demands these sort keys.
func (f *fixture) wantSorts(q table.Query, want ...string) {
	f.Helper()
	if q.Partition == "" {
		q.Partition = f.partition
	}
	items, err := table.QueryAll(background(), f.tbl, q)
	if err != nil {
		f.Fatalf("query: %v", err)
	}
	if got := sorts(items); got != fmt.Sprintf("%q", want) {
		f.Fatalf("query %+v\n  found %s, want\n  %q", q, got, want)
	}
}

func sorts(items []table.Item) string {
	list := []string{}
	for _, it := range items {
		list = append(list, it.Key.Sort)
	}
	return fmt.Sprintf("%q", list)
}

// describe writes an item in full, in one way for equal items. Long values are
// shortened, but told apart.
func describe(it table.Item) string {
	if it.Attrs == nil {
		return "(no item)"
	}
	var parts []string
	for name, v := range it.Attrs {
		parts = append(parts, fmt.Sprintf("%q:%s", name, describeValue(v)))
	}
	sort.Strings(parts)
	expires := "never"
	if !it.Expires.IsZero() {
		expires = it.Expires.UTC().Format(time.RFC3339Nano)
	}
	return fmt.Sprintf("%q/%q {%s} until %s", it.Key.Partition, it.Key.Sort, strings.Join(parts, " "), expires)
}

func describeValue(v table.Value) string {
	switch v.Kind() {
	case table.KindString:
		return fmt.Sprintf("s%q", v.Str())
	case table.KindNumber:
		return fmt.Sprintf("n%d", v.Num())
	case table.KindBytes:
		b := v.Raw()
		if len(b) > 40 {
			return fmt.Sprintf("b%d bytes, %x...%x, sum %d", len(b), b[:8], b[len(b)-8:], checksum(b))
		}
		return fmt.Sprintf("b%x", b)
	default:
		return "(absent)"
	}
}

func checksum(b []byte) int {
	sum := 0
	for i, c := range b {
		sum += (i%251 + 1) * int(c)
	}
	return sum
}

// filled makes n bytes that differ from place to place.
func filled(n int, seed byte) []byte {
	b := bytes.Repeat([]byte{seed}, n)
	for i := range b {
		b[i] += byte(i % 251)
	}
	return b
}
