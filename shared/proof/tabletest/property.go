package tabletest

import (
	"errors"
	"testing"
	"time"

	"pgregory.net/rapid"

	"blindpost/shared/table"
)

// property runs random histories against the table and the model at once and
// compares every answer. The table is not emptied between histories; each has
// partitions of its own.
func (s *suite) property(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		base := s.freshPartition()
		h := &history{suite: s, model: newModel(), outer: t, partitions: []string{base, base + "/", base + "/a"}}
		steps := map[string]func(*rapid.T){
			"get":      h.get,
			"query":    h.query,
			"write":    h.write,
			"write 2":  h.write, // twice as often
			"transact": h.transact,
			"advance":  h.advance,
			"compare":  h.compare,
		}
		if s.reopen != nil {
			steps["reopen"] = h.reopen
		}
		rt.Repeat(steps)
		h.compare(rt)
	})
}

type history struct {
	*suite
	model      *model
	outer      *testing.T
	partitions []string
}

var (
	// Sort keys that are prefixes of each other, and partitions that end like
	// sort keys begin.
	sortKeys    = rapid.SampledFrom([]string{"a", "a/", "a/1", "a/10", "a/2", "b", "/a", "é", "\ufffd", "😀"})
	queryBounds = rapid.SampledFrom([]string{"", "", "", " ", "a", "a/", "a/1", "a/15", "a0", "b", "z", "é", "\ufffd", "😀", "\U0010ffff"})
	attrNames   = []string{"a", "b", "n", "m"}
	numbers     = rapid.Int64Range(-3, 3)
	values      = rapid.OneOf(
		rapid.Map(numbers, table.Number),
		rapid.Map(numbers, table.Number),
		rapid.Map(rapid.SampledFrom([]string{"", "x", "n1", "ж"}), table.String),
		rapid.Map(rapid.SampledFrom([]string{"", "x", "\x00\xff"}), func(s string) table.Value { return table.Bytes([]byte(s)) }),
	)
	conds = rapid.Custom(func(t *rapid.T) table.Cond {
		attr := rapid.SampledFrom(attrNames).Draw(t, "attr")
		switch test := table.Test(rapid.IntRange(int(table.Exists), int(table.AtMost)).Draw(t, "test")); test {
		case table.Equal:
			return table.IfEqual(attr, values.Draw(t, "value"))
		case table.Less, table.AtMost:
			return table.Cond{Test: test, Attr: attr, Value: table.Number(numbers.Draw(t, "number"))}
		default:
			return table.Cond{Test: test, Attr: attr}
		}
	})
	// Relative to the clock, which moves by quarters of a second.
	lifetimes = rapid.SampledFrom([]time.Duration{0, 0, 0, time.Nanosecond, 250 * time.Millisecond, time.Second, 1500 * time.Millisecond,
		2 * time.Second, 5 * time.Second, 30 * time.Second, -time.Second})
	advances = rapid.SampledFrom([]time.Duration{250 * time.Millisecond, 750 * time.Millisecond, time.Second, 3 * time.Second, 20 * time.Second})
)

func (h *history) drawKey(t *rapid.T) table.Key {
	return table.Key{Partition: rapid.SampledFrom(h.partitions).Draw(t, "partition"), Sort: sortKeys.Draw(t, "sort")}
}

// drawOp makes a valid operation.
func (h *history) drawOp(t *rapid.T, k table.Key, last table.Action) table.Op {
	op := table.Op{Action: table.Action(rapid.IntRange(int(table.Put), int(last)).Draw(t, "action")), Key: k}
	op.Conds = rapid.SliceOfN(conds, 0, 2).Draw(t, "conds")
	switch op.Action {
	case table.Check:
		if len(op.Conds) == 0 {
			op.Conds = []table.Cond{table.IfExists()}
		}
		return op
	case table.Delete:
		return op
	}
	op.Set = table.Attrs{}
	for _, name := range attrNames {
		how := rapid.SampledFrom([]string{"leave", "set", "add", "remove"}).Draw(t, name)
		switch {
		case how == "set":
			op.Set[name] = values.Draw(t, "value")
		case how == "add" && op.Action == table.Update:
			if op.Add == nil {
				op.Add = map[string]int64{}
			}
			op.Add[name] = numbers.Draw(t, "delta")
		case how == "remove" && op.Action == table.Update:
			op.Remove = append(op.Remove, name)
		}
	}
	if life := lifetimes.Draw(t, "lifetime"); life != 0 {
		op.Expires = h.clock.Now().Add(life)
	} else if op.Action == table.Update {
		op.KeepForever = rapid.Bool().Draw(t, "keep forever")
	}
	return op
}

func (h *history) get(t *rapid.T) { h.compareItem(t, h.drawKey(t)) }

func (h *history) compareItem(t *rapid.T, k table.Key) {
	got, err := h.tbl.Get(background(), k)
	want, exists := h.model.get(k, h.clock.Now())
	if !exists {
		if !errors.Is(err, table.ErrNotFound) {
			t.Fatalf("get %q: %s, %v; want no item", k, describe(got), err)
		}
		return
	}
	if err != nil {
		t.Fatalf("get %q: %v, want %s", k, err, describeModel(k, want))
	}
	if problem := h.model.differs(got, k, want); problem != "" {
		t.Fatalf("get: %s", problem)
	}
}

func (h *history) query(t *rapid.T) {
	q := table.Query{
		Partition: rapid.SampledFrom(h.partitions).Draw(t, "partition"),
		Prefix:    queryBounds.Draw(t, "prefix"),
		After:     queryBounds.Draw(t, "after"),
		Before:    queryBounds.Draw(t, "before"),
		Limit:     rapid.IntRange(0, 4).Draw(t, "limit"),
	}
	h.compareQuery(t, q)
}

// compareQuery reads all pages and compares them with the model.
func (h *history) compareQuery(t *rapid.T, q table.Query) {
	now := h.clock.Now()
	all := q
	all.Limit = 0
	items, err := table.QueryAll(background(), h.tbl, all)
	if err != nil {
		t.Fatalf("query %+v: %v", q, err)
	}
	want := h.model.query(q, now)
	if len(items) != len(want) {
		t.Fatalf("query %+v: found %s, want %q", q, sorts(items), want)
	}
	for i, it := range items {
		k := table.Key{Partition: q.Partition, Sort: want[i]}
		expected, _ := h.model.get(k, now)
		if problem := h.model.differs(it, k, expected); problem != "" {
			t.Fatalf("query %+v: %s", q, problem)
		}
	}
	if problem := pagesProblem(h.tbl, q, items); problem != "" {
		t.Fatal(problem)
	}
}

func (h *history) write(t *rapid.T) {
	op := h.drawOp(t, h.drawKey(t), table.Delete)
	before, existed := h.model.get(op.Key, h.clock.Now())
	o := h.model.try(op, h.clock.Now())
	old, err := persistWrite(h.tbl, op)
	if !acceptable(err, []outcome{o}) {
		t.Fatalf("write %+v: error %v, want %v", op, err, o.err)
	}
	if err != nil || !existed {
		if old.Attrs != nil {
			t.Fatalf("write %+v returned %s and %v, want the zero Item", op, describe(old), err)
		}
	} else if problem := h.model.differs(old, op.Key, before); problem != "" {
		t.Fatalf("write %+v: old item: %s", op, problem)
	}
	h.model.do(op.Key, o)
	h.compareItem(t, op.Key)
}

func (h *history) transact(t *rapid.T) {
	keys := rapid.SliceOfNDistinct(rapid.Custom(h.drawKey), 1, 5, rapid.ID).Draw(t, "keys")
	var ops []table.Op
	var outcomes []outcome
	for _, k := range keys {
		op := h.drawOp(t, k, table.Check)
		ops = append(ops, op)
		outcomes = append(outcomes, h.model.try(op, h.clock.Now()))
	}
	err := persistTransact(h.tbl, ops...)
	if !acceptable(err, outcomes) {
		t.Fatalf("transact %+v: error %v; outcomes %+v", ops, err, outcomes)
	}
	for i, k := range keys {
		if err == nil {
			h.model.do(k, outcomes[i])
		}
		h.compareItem(t, k)
	}
}

func (h *history) advance(t *rapid.T) { h.clock.Advance(advances.Draw(t, "by")) }

func (h *history) reopen(*rapid.T) { h.tbl = h.suite.reopen(h.outer, h.tbl) }

// compare compares everything.
func (h *history) compare(t *rapid.T) {
	for _, partition := range h.partitions {
		h.compareQuery(t, table.Query{Partition: partition})
	}
}
