package meter

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"blindpost/shared/proof/tabletest"
	"blindpost/shared/table"
	"blindpost/shared/table/mem"
)

// A metered table is the table that it meters.
func TestConformance(t *testing.T) {
	tabletest.Run(t, func(_ *testing.T, now func() time.Time) table.Table { return New(mem.New(now)) }, tabletest.Checks(30))
}

var start = time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)

func key(sort string) table.Key { return table.Key{Partition: "p", Sort: sort} }

// overhead is what an item with the key p/s weighs beside its attributes: 2 names
// of 2 bytes and 2 values of 1.
const overhead = 6

// sized makes attributes so that an item p/s weighs so many bytes in all.
func sized(size int) table.Attrs {
	return table.Attrs{"b": table.Bytes(make([]byte, size-overhead-1))}
}

func TestSized(t *testing.T) {
	if got := Size(table.Item{Key: key("s"), Attrs: sized(1024)}); got != 1024 {
		t.Fatalf("%d bytes", got)
	}
}

// seed is an item that is stored before.
type seed struct {
	sort string
	size int
}

func read(n int64) Units  { return Units{Read: n} }
func write(n int64) Units { return Units{Write: n} }

// prices are operations and what AWS's rules say they cost, worked out by hand.
var prices = []struct {
	name  string
	seeds []seed
	do    func(ctx context.Context, tbl table.Table) error
	kind  Kind
	want  Units
	err   error
}{
	{"get nothing", nil, get("s"), Get, read(1), table.ErrNotFound},
	{"get a small one", []seed{{"s", 7}}, get("s"), Get, read(1), nil},
	{"get 4 KB", []seed{{"s", 4096}}, get("s"), Get, read(1), nil},
	{"get 4 KB and a byte", []seed{{"s", 4097}}, get("s"), Get, read(2), nil},
	{"get 400 KB", []seed{{"s", 400 << 10}}, get("s"), Get, read(100), nil},
	{"get with a bad key", nil, get(""), Get, Units{}, table.ErrInvalid},

	{"query nothing", nil, query(table.Query{Partition: "p"}), Query, read(1), nil},
	{"query many small ones: by their sum", []seed{{"a", 1000}, {"b", 1000}, {"c", 1000}, {"d", 1000}}, query(table.Query{Partition: "p"}), Query, read(1), nil},
	{"query 4 KB and a byte", []seed{{"a", 2048}, {"b", 2049}}, query(table.Query{Partition: "p"}), Query, read(2), nil},
	{"query with a limit", []seed{{"a", 4000}, {"b", 4000}, {"c", 4000}}, query(table.Query{Partition: "p", Limit: 2}), Query, read(2), nil},
	{"query with a bad bound", nil, query(table.Query{}), Query, Units{}, table.ErrInvalid},

	{"put", nil, put("s", 7), Put, write(1), nil},
	{"put 1 KB", nil, put("s", 1024), Put, write(1), nil},
	{"put 1 KB and a byte", nil, put("s", 1025), Put, write(2), nil},
	{"put over a larger one", []seed{{"s", 9000}}, put("s", 100), Put, write(9), nil},
	{"put over a smaller one", []seed{{"s", 100}}, put("s", 9000), Put, write(9), nil},
	{"put that fails on a larger one", []seed{{"s", 9000}}, put("s", 100, table.IfAbsent()), Put, write(9), table.ErrCondition},
	{"put that fails on a smaller one", []seed{{"s", 100}}, put("s", 9000, table.IfAbsent()), Put, write(9), table.ErrCondition},
	{"put that fails on nothing", nil, put("s", 3000, table.IfExists()), Put, write(3), table.ErrCondition},
	{"put that is too large", nil, put("s", 500<<10), Put, Units{}, table.ErrTooLarge},

	{"update of a large item", []seed{{"s", 9000}}, addOne("s"), Update, write(9), nil},
	{"update of nothing", nil, addOne("s"), Update, write(1), nil},
	{"update across a KB", []seed{{"s", 1023}}, addOne("s"), Update, write(2), nil}, // 3 bytes for n and 1
	{"update that shrinks", []seed{{"s", 2049}}, update("s", table.Op{Remove: []string{"b"}}), Update, write(3), nil},
	{"update that sets an expiry", []seed{{"s", 1016}}, update("s", table.Op{Expires: start.Add(time.Hour)}), Update, write(2), nil}, // 9 bytes
	{"update that fails", []seed{{"s", 2000}}, update("s", table.Op{Set: table.Attrs{"c": table.Bytes(make([]byte, 1000))}, Conds: []table.Cond{table.IfAbsent()}}),
		Update, write(3), table.ErrCondition},
	{"update of what is no number", []seed{{"s", 2000}}, update("s", table.Op{Add: map[string]int64{"b": 1}}), Update, Units{}, table.ErrInvalid},

	{"delete nothing", nil, remove("s"), Delete, write(1), nil},
	{"delete 5 KB", []seed{{"s", 5 << 10}}, remove("s"), Delete, write(5), nil},
	{"delete that fails", []seed{{"s", 5 << 10}}, remove("s", table.IfNone("b")), Delete, write(5), table.ErrCondition},

	{"transaction", []seed{{"a", 3000}, {"b", 100}, {"c", 5000}},
		transact(putOp("a", 100), putOp("b", 2000), table.Op{Action: table.Check, Key: key("c"), Conds: []table.Cond{table.IfExists()}},
			table.Op{Action: table.Delete, Key: key("d")}), Transact, write(2 * (3 + 2 + 5 + 1)), nil},
	{"transaction that fails", []seed{{"a", 3000}}, transact(putOp("a", 100), putOp("b", 2000, table.IfExists())), Transact, write(2 * (3 + 2)), table.ErrCondition},
	{"transaction of one write", []seed{{"a", 3000}}, transact(putOp("a", 100)), Put, write(3), nil},
	{"transaction of one write that fails", []seed{{"a", 3000}}, transact(putOp("a", 100, table.IfAbsent())), Put, write(3), table.ErrCondition},
	{"transaction of one check", []seed{{"a", 5000}}, transact(table.Op{Action: table.Check, Key: key("a"), Conds: []table.Cond{table.IfExists()}}), Get, read(2), nil},
	{"transaction that breaks a rule", nil, transact(putOp("a", 100), putOp("a", 100)), Transact, Units{}, table.ErrInvalid},
}

func get(sort string) func(context.Context, table.Table) error {
	return func(ctx context.Context, tbl table.Table) error { _, err := tbl.Get(ctx, key(sort)); return err }
}

func query(q table.Query) func(context.Context, table.Table) error {
	return func(ctx context.Context, tbl table.Table) error { _, err := tbl.Query(ctx, q); return err }
}

func op(o table.Op) func(context.Context, table.Table) error {
	return func(ctx context.Context, tbl table.Table) error { _, err := tbl.Write(ctx, o); return err }
}

func putOp(sort string, size int, conds ...table.Cond) table.Op {
	return table.Op{Action: table.Put, Key: key(sort), Set: sized(size), Conds: conds}
}

func put(sort string, size int, conds ...table.Cond) func(context.Context, table.Table) error {
	return op(putOp(sort, size, conds...))
}

func update(sort string, o table.Op) func(context.Context, table.Table) error {
	o.Action, o.Key = table.Update, key(sort)
	return op(o)
}

func addOne(sort string) func(context.Context, table.Table) error {
	return update(sort, table.Op{Add: map[string]int64{"n": 1}})
}

func remove(sort string, conds ...table.Cond) func(context.Context, table.Table) error {
	return op(table.Op{Action: table.Delete, Key: key(sort), Conds: conds})
}

func transact(ops ...table.Op) func(context.Context, table.Table) error {
	return func(ctx context.Context, tbl table.Table) error { return tbl.Transact(ctx, ops) }
}

func TestPrices(t *testing.T) {
	for _, c := range prices {
		t.Run(c.name, func(t *testing.T) {
			under := mem.New(func() time.Time { return start })
			for _, s := range c.seeds {
				if err := put(s.sort, s.size)(t.Context(), under); err != nil {
					t.Fatal(err)
				}
			}
			tbl := New(under)
			if err := c.do(t.Context(), tbl); !errors.Is(err, c.err) {
				t.Fatalf("error %v, want %v", err, c.err)
			}
			var want Usage
			want[c.kind] = Count{Calls: 1, Units: c.want}
			if c.err == table.ErrCondition {
				want[c.kind].Refused = 1
			}
			if got := tbl.Usage(); got != want {
				t.Errorf("used %+v, want %+v", got, want)
			}
		})
	}
}

func TestTransactionOfNothingCostsNothing(t *testing.T) {
	tbl := New(mem.New(time.Now))
	if err := tbl.Transact(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	if got := tbl.Usage(); got != (Usage{}) {
		t.Errorf("used %+v", got)
	}
}

// An expired item is not there, for its price neither.
func TestExpiredItems(t *testing.T) {
	now := start
	tbl := New(mem.New(func() time.Time { return now }))
	large := putOp("s", 9000)
	large.Expires = start.Add(time.Minute)
	if _, err := tbl.Write(t.Context(), large); err != nil {
		t.Fatal(err)
	}
	now = now.Add(time.Hour)
	before := tbl.Usage()
	for _, do := range []func(context.Context, table.Table) error{get("s"), addOne("s")} {
		if err := do(t.Context(), tbl); err != nil && !errors.Is(err, table.ErrNotFound) {
			t.Fatal(err)
		}
	}
	if got := tbl.Usage().Since(before).Total(); got != (Count{Calls: 2, Units: Units{1, 1}}) {
		t.Errorf("used %+v", got)
	}
}

func TestCountsOfManyAtOnce(t *testing.T) {
	tbl := New(mem.New(time.Now))
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() {
			for range 50 {
				if err := addOne("s")(context.Background(), tbl); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	if got := tbl.Usage()[Update]; got != (Count{Calls: 1000, Units: write(1000)}) {
		t.Errorf("used %+v", got)
	}
}

func TestCost(t *testing.T) {
	if got := (Units{Read: 2_000_000, Write: 1_000_000}).Cost(OnDemand); got != 0.875 {
		t.Errorf("costs %v", got)
	}
}

func TestKinds(t *testing.T) {
	if len(Kinds()) != int(numKinds) {
		t.Fatalf("%d of %d kinds", len(Kinds()), numKinds)
	}
	var names []string
	for _, k := range Kinds() {
		names = append(names, k.String())
	}
	if got := strings.Join(names, " "); got != "get query put update delete transact" {
		t.Error(got)
	}
	if got := Kind(200).String(); got != "unknown" {
		t.Error(got)
	}
}
