package tabletest

import (
	"fmt"
	"time"

	"blindpost/shared/table"
)

// counted makes n puts with different keys.
func (f *fixture) counted(n int) []table.Op {
	var ops []table.Op
	for i := range n {
		ops = append(ops, table.Op{Action: table.Put, Key: f.key(fmt.Sprintf("m/%03d", i)), Set: table.Attrs{"i": table.Number(int64(i))}})
	}
	return ops
}

var transactCases = []testCase{
	{"does all of it", func(f *fixture) {
		other := table.Key{Partition: f.suite.freshPartition(), Sort: "s"}
		f.put("updated", table.Attrs{"n": table.Number(1)})
		f.put("deleted", table.Attrs{"n": table.Number(1)})
		f.put("checked", table.Attrs{"n": table.Number(1)})
		f.transact(
			table.Op{Action: table.Put, Key: f.key("put"), Set: table.Attrs{"n": table.Number(9)}},
			table.Op{Action: table.Update, Key: f.key("updated"), Add: map[string]int64{"n": 1}},
			table.Op{Action: table.Delete, Key: f.key("deleted")},
			table.Op{Action: table.Check, Key: f.key("checked"), Conds: []table.Cond{table.IfEqual("n", table.Number(1))}},
			table.Op{Action: table.Put, Key: other, Set: table.Attrs{"n": table.Number(8)}},
		)
		f.wantItem("put", table.Attrs{"n": table.Number(9)}, time.Time{})
		f.wantItem("updated", table.Attrs{"n": table.Number(2)}, time.Time{})
		f.wantAbsent("deleted")
		f.wantItem("checked", table.Attrs{"n": table.Number(1)}, time.Time{})
		it, err := f.tbl.Get(background(), other)
		if err != nil {
			f.Fatal(err)
		}
		f.wantSame("item of the other partition", it, table.Item{Key: other, Attrs: table.Attrs{"n": table.Number(8)}})
	}},
	{"or none, and names the first operation that failed", func(f *fixture) {
		f.put("there", table.Attrs{"n": table.Number(1)})
		for failing := range 5 {
			ops := f.counted(5)
			ops[failing] = table.Op{Action: table.Update, Key: f.key("there"), Add: map[string]int64{"n": 1}, Conds: []table.Cond{table.IfAbsent()}}
			if failing < 4 { // a second failure behind it
				ops[4].Conds = []table.Cond{table.IfExists()}
			}
			f.wantFailedOp(f.wantTransactError(table.ErrCondition, ops...), failing)
			f.wantSorts(table.Query{}, "there")
			f.wantItem("there", table.Attrs{"n": table.Number(1)}, time.Time{})
		}
	}},
	{"conditions see the state before the transaction", func(f *fixture) {
		f.put("a", table.Attrs{"n": table.Number(1)})
		f.transact(
			table.Op{Action: table.Delete, Key: f.key("a"), Conds: []table.Cond{table.IfExists()}},
			table.Op{Action: table.Put, Key: f.key("b"), Conds: []table.Cond{table.IfAbsent()}},
		)
		f.wantSorts(table.Query{}, "b")
	}},
	{"of checks alone writes nothing", func(f *fixture) {
		f.put("a", table.Attrs{"n": table.Number(1)})
		f.transact(
			table.Op{Action: table.Check, Key: f.key("a"), Conds: []table.Cond{table.IfExists()}},
			table.Op{Action: table.Check, Key: f.key("b"), Conds: []table.Cond{table.IfAbsent()}},
		)
		f.wantFailedOp(f.wantTransactError(table.ErrCondition,
			table.Op{Action: table.Check, Key: f.key("a"), Conds: []table.Cond{table.IfExists()}},
			table.Op{Action: table.Check, Key: f.key("b"), Conds: []table.Cond{table.IfExists()}},
		), 1)
		f.wantSorts(table.Query{}, "a")
		f.wantItem("a", table.Attrs{"n": table.Number(1)}, time.Time{})
	}},
	{"of nothing does nothing", func(f *fixture) {
		if err := f.tbl.Transact(background(), nil); err != nil {
			f.Fatal(err)
		}
	}},
	{"of the largest number of operations", func(f *fixture) {
		f.transact(f.counted(table.MaxTransaction)...)
		items, err := table.QueryAll(background(), f.tbl, table.Query{Partition: f.partition, Prefix: "m/"})
		if err != nil || len(items) != table.MaxTransaction {
			f.Fatalf("%d items, %v", len(items), err)
		}
		for i, it := range items {
			if it.Attrs["i"].Num() != int64(i) {
				f.Fatalf("item %d is %s", i, describe(it))
			}
		}
	}},
	{"of more is refused", func(f *fixture) {
		f.wantTransactError(table.ErrInvalid, f.counted(table.MaxTransaction+1)...)
		f.wantSorts(table.Query{})
	}},
	{"of too many bytes is refused", func(f *fixture) {
		ops := f.counted(12)
		for i := range ops {
			ops[i].Set = table.Attrs{"b": table.Bytes(filled(380<<10, byte(i)))}
		}
		f.wantTransactError(table.ErrTooLarge, ops...)
		f.wantSorts(table.Query{})
		f.transact(ops[:10]...)
	}},
	{"of two operations on one item is refused", func(f *fixture) {
		for _, n := range []int{2, 50} {
			ops := f.counted(n)
			ops[n-1] = table.Op{Action: table.Check, Key: ops[0].Key, Conds: []table.Cond{table.IfAbsent()}}
			f.wantTransactError(table.ErrInvalid, ops...)
			f.wantSorts(table.Query{})
		}
	}},
	{"with one invalid operation is refused", func(f *fixture) {
		ops := f.counted(3)
		ops[2].Set = table.Attrs{"": table.Number(1)}
		f.wantTransactError(table.ErrInvalid, ops...)
		f.wantSorts(table.Query{})
	}},
	{"two with conditions on each other's items, one after the other", func(f *fixture) {
		move := func(from, to string) table.Op {
			return table.Op{Action: table.Update, Key: f.key(from), Add: map[string]int64{to: 1}, Conds: []table.Cond{table.IfAtMost("n", 0)}}
		}
		f.put("x", table.Attrs{"n": table.Number(0)})
		f.put("y", table.Attrs{"n": table.Number(1)})
		f.wantFailedOp(f.wantTransactError(table.ErrCondition, move("x", "n"), move("y", "n")), 1)
		f.write(table.Op{Action: table.Update, Key: f.key("y"), Add: map[string]int64{"n": -1}})
		f.transact(move("x", "n"), move("y", "n"))
		f.wantFailedOp(f.wantTransactError(table.ErrCondition, move("x", "n"), move("y", "n")), 0)
		f.wantItem("x", table.Attrs{"n": table.Number(1)}, time.Time{})
		f.wantItem("y", table.Attrs{"n": table.Number(1)}, time.Time{})
	}},
}
