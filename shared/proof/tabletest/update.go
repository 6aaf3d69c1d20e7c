package tabletest

import (
	"testing"
	"time"

	"blindpost/shared/table"
)

var updateCases = []testCase{
	{"creates an absent item", func(f *fixture) {
		expires := f.soon(100)
		f.wantNone(f.write(table.Op{Action: table.Update, Key: f.key("s"),
			Set: table.Attrs{"a": table.String("x")}, Add: map[string]int64{"n": 3}, Remove: []string{"r"}, Expires: expires}))
		f.wantItem("s", table.Attrs{"a": table.String("x"), "n": table.Number(3)}, expires)
	}},
	{"with nothing to change creates an item without attributes", func(f *fixture) {
		f.write(table.Op{Action: table.Update, Key: f.key("s")})
		f.wantItem("s", table.Attrs{}, time.Time{})
	}},
	{"changes what it names and leaves the rest", func(f *fixture) {
		before := table.Attrs{"set": table.String("old"), "add": table.Number(5), "remove": table.Number(1), "keep": table.Bytes([]byte("k"))}
		f.put("s", before)
		old := f.write(table.Op{Action: table.Update, Key: f.key("s"),
			Set: table.Attrs{"set": table.Number(1), "new": table.String("")}, Add: map[string]int64{"add": -7, "fresh": -1}, Remove: []string{"remove", "never there"}})
		f.wantSame("old item", old, table.Item{Key: f.key("s"), Attrs: before})
		f.wantItem("s", table.Attrs{"set": table.Number(1), "new": table.String(""), "add": table.Number(-2),
			"fresh": table.Number(-1), "keep": table.Bytes([]byte("k"))}, time.Time{})
	}},
	{"can remove the last attribute", func(f *fixture) {
		f.put("s", table.Attrs{"a": table.Number(1)})
		f.write(table.Op{Action: table.Update, Key: f.key("s"), Remove: []string{"a"}})
		f.wantItem("s", table.Attrs{}, time.Time{})
	}},
	{"adding zero makes a zero", func(f *fixture) {
		f.write(table.Op{Action: table.Update, Key: f.key("s"), Add: map[string]int64{"n": 0}})
		f.wantItem("s", table.Attrs{"n": table.Number(0)}, time.Time{})
	}},
	{"adding to another kind is ErrInvalid and changes nothing", func(f *fixture) {
		before := table.Attrs{"s": table.String("1"), "b": table.Bytes([]byte{1}), "n": table.Number(1)}
		f.put("s", before)
		for _, attr := range []string{"s", "b"} {
			op := table.Op{Action: table.Update, Key: f.key("s"), Set: table.Attrs{"x": table.Number(1)}, Add: map[string]int64{"n": 1, attr: 1}}
			f.wantWriteError(op, table.ErrInvalid)
			f.wantTransactError(table.ErrInvalid, table.Op{Action: table.Put, Key: f.key("t")}, op)
			f.wantItem("s", before, time.Time{})
			f.wantAbsent("t")
		}
	}},
	{"leaves the expiry, moves it, removes it", func(f *fixture) {
		first, second := f.soon(100), f.soon(200)
		f.putExpiring("s", nil, first)
		f.write(table.Op{Action: table.Update, Key: f.key("s"), Add: map[string]int64{"n": 1}})
		f.wantItem("s", table.Attrs{"n": table.Number(1)}, first)
		f.write(table.Op{Action: table.Update, Key: f.key("s"), Expires: second})
		f.wantItem("s", table.Attrs{"n": table.Number(1)}, second)
		f.write(table.Op{Action: table.Update, Key: f.key("s"), KeepForever: true})
		f.wantItem("s", table.Attrs{"n": table.Number(1)}, time.Time{})
		f.write(table.Op{Action: table.Update, Key: f.key("s"), KeepForever: true})
		f.write(table.Op{Action: table.Update, Key: f.key("s"), Expires: first})
		f.wantItem("s", table.Attrs{"n": table.Number(1)}, first)
	}},
}

// state is a stored item for a condition to look at.
type state struct {
	name  string
	attrs table.Attrs // nil: no item
}

var conditionStates = []state{
	{"no item", nil},
	{"empty item", table.Attrs{}},
	{"number 5", table.Attrs{"a": table.Number(5)}},
	{"string 5", table.Attrs{"a": table.String("5")}},
	{"bytes 5", table.Attrs{"a": table.Bytes([]byte("5"))}},
	{"empty string", table.Attrs{"a": table.String("")}},
	{"empty bytes", table.Attrs{"a": table.Bytes(nil)}},
	{"number -5", table.Attrs{"a": table.Number(-5)}},
}

// conditions are a table of the tests: holds lists the states, by their index
// above, in which the condition holds.
var conditions = []struct {
	name  string
	cond  table.Cond
	holds []int
}{
	{"exists", table.IfExists(), []int{1, 2, 3, 4, 5, 6, 7}},
	{"absent", table.IfAbsent(), []int{0}},
	{"attribute absent", table.IfNone("a"), []int{0, 1}},
	{"equal to number", table.IfEqual("a", table.Number(5)), []int{2}},
	{"equal to string", table.IfEqual("a", table.String("5")), []int{3}},
	{"equal to bytes", table.IfEqual("a", table.Bytes([]byte("5"))), []int{4}},
	{"equal to empty string", table.IfEqual("a", table.String("")), []int{5}},
	{"equal to empty bytes", table.IfEqual("a", table.Bytes([]byte{})), []int{6}},
	{"equal, other attribute", table.IfEqual("b", table.Number(5)), nil},
	{"less than 5", table.IfLess("a", 5), []int{7}},
	{"less than 6", table.IfLess("a", 6), []int{2, 7}},
	{"less than -5", table.IfLess("a", -5), nil},
	{"at most 4", table.IfAtMost("a", 4), []int{7}},
	{"at most 5", table.IfAtMost("a", 5), []int{2, 7}},
	{"at most -6", table.IfAtMost("a", -6), nil},
}

var conditionCases = []testCase{
	{"hold or fail as the contract says", func(f *fixture) {
		for _, c := range conditions {
			for i, st := range conditionStates {
				want := false
				for _, index := range c.holds {
					want = want || index == i
				}
				f.Run(c.name+" with "+st.name, func(t *testing.T) {
					inner := *f
					inner.T = t
					inner.partition = f.suite.freshPartition()
					inner.wantCondition(c.cond, st.attrs, want)
				})
			}
		}
	}},
	{"all must hold", func(f *fixture) {
		f.put("s", table.Attrs{"a": table.Number(1), "b": table.Number(2)})
		yes, no := table.IfEqual("a", table.Number(1)), table.IfEqual("b", table.Number(1))
		f.wantWriteError(table.Op{Action: table.Delete, Key: f.key("s"), Conds: []table.Cond{yes, no}}, table.ErrCondition)
		f.wantWriteError(table.Op{Action: table.Delete, Key: f.key("s"), Conds: []table.Cond{no, yes}}, table.ErrCondition)
		f.write(table.Op{Action: table.Delete, Key: f.key("s"), Conds: []table.Cond{yes, yes, table.IfExists()}})
		f.wantAbsent("s")
	}},
	{"see the item before the change", func(f *fixture) {
		f.put("s", table.Attrs{"n": table.Number(1)})
		op := table.Op{Action: table.Update, Key: f.key("s"), Add: map[string]int64{"n": 1}, Conds: []table.Cond{table.IfLess("n", 2)}}
		f.write(op)
		f.wantWriteError(op, table.ErrCondition)
		f.wantItem("s", table.Attrs{"n": table.Number(2)}, time.Time{})
	}},
}

// wantCondition tries one condition with every action, against an item with
// these attributes or none.
func (f *fixture) wantCondition(cond table.Cond, attrs table.Attrs, holds bool) {
	f.Helper()
	ops := []table.Op{
		{Action: table.Put, Set: table.Attrs{"new": table.Number(1)}},
		{Action: table.Update, Set: table.Attrs{"new": table.Number(1)}},
		{Action: table.Delete},
	}
	for i, op := range ops {
		sort := string(rune('a' + i))
		if attrs != nil {
			f.put(sort, attrs)
		}
		op.Key, op.Conds = f.key(sort), []table.Cond{cond}
		check := table.Op{Action: table.Check, Key: op.Key, Conds: op.Conds}
		other := table.Op{Action: table.Put, Key: f.key(sort + " written")}
		if holds {
			f.transact(check, other)
			f.wantItem(sort+" written", table.Attrs{}, time.Time{})
			f.write(op)
			continue
		}
		f.wantFailedOp(f.wantTransactError(table.ErrCondition, other, check), 1)
		f.wantWriteError(op, table.ErrCondition)
		f.wantFailedOp(f.wantTransactError(table.ErrCondition, op, other), 0)
		f.wantAbsent(sort + " written")
		if attrs == nil {
			f.wantAbsent(sort)
		} else {
			f.wantItem(sort, attrs, time.Time{})
		}
	}
}
