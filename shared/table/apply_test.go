package table

import (
	"errors"
	"math"
	"testing"
	"time"
)

func TestApply(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	later := now.Add(time.Hour)
	item := func(attrs Attrs, expires time.Time) *Item {
		return &Item{Key: someKey, Attrs: attrs, Expires: expires}
	}
	failed := &ConditionError{}
	cases := []struct {
		name string
		op   Op
		old  *Item
		want *Item
		err  error
	}{
		{name: "put replaces everything", op: Op{Action: Put, Set: Attrs{"b": Number(2)}},
			old: item(Attrs{"a": Number(1)}, later), want: item(Attrs{"b": Number(2)}, time.Time{})},
		{name: "put rounds the expiry up", op: Op{Action: Put, Expires: later.Add(1)}, want: item(Attrs{}, later.Add(time.Second))},
		{name: "update changes only what it names",
			op:   Op{Action: Update, Set: Attrs{"s": String("new")}, Add: map[string]int64{"n": -3, "m": 4}, Remove: []string{"r", "none"}},
			old:  item(Attrs{"s": String("old"), "n": Number(1), "r": Number(1), "k": Bytes([]byte("k"))}, later),
			want: item(Attrs{"s": String("new"), "n": Number(-2), "m": Number(4), "k": Bytes([]byte("k"))}, later)},
		{name: "update creates", op: Op{Action: Update, Add: map[string]int64{"n": 1}, Expires: later}, want: item(Attrs{"n": Number(1)}, later)},
		{name: "update with nothing creates", op: Op{Action: Update}, want: item(Attrs{}, time.Time{})},
		{name: "update moves the expiry", op: Op{Action: Update, Expires: later.Add(time.Second)}, old: item(Attrs{}, later),
			want: item(Attrs{}, later.Add(time.Second))},
		{name: "update removes the expiry", op: Op{Action: Update, KeepForever: true}, old: item(Attrs{}, later), want: item(Attrs{}, time.Time{})},
		{name: "update of an expired item starts from nothing", op: Op{Action: Update, Add: map[string]int64{"n": 1}},
			old: item(Attrs{"n": Number(5), "x": Number(1)}, now), want: item(Attrs{"n": Number(1)}, time.Time{})},
		{name: "one second before, the item is there", op: Op{Action: Update, Add: map[string]int64{"n": 1}},
			old: item(Attrs{"n": Number(5)}, now.Add(time.Second)), want: item(Attrs{"n": Number(6)}, now.Add(time.Second))},
		{name: "delete", op: Op{Action: Delete}, old: item(Attrs{}, later)},
		{name: "delete of nothing", op: Op{Action: Delete}},
		{name: "check", op: Op{Action: Check, Conds: []Cond{IfExists()}}, old: item(Attrs{"a": Number(1)}, later), want: item(Attrs{"a": Number(1)}, later)},
		{name: "all conditions count", op: Op{Action: Delete, Conds: []Cond{IfExists(), IfNone("a")}}, old: item(Attrs{"a": Number(1)}, later), err: failed},
		{name: "an expired item does not exist", op: Op{Action: Put, Conds: []Cond{IfExists()}}, old: item(Attrs{}, now), err: failed},
		{name: "the condition speaks before the sum", op: Op{Action: Update, Conds: []Cond{IfAbsent()}, Add: map[string]int64{"s": 1}},
			old: item(Attrs{"s": String("")}, later), err: failed},
		{name: "add to a string", op: Op{Action: Update, Add: map[string]int64{"s": 1}}, old: item(Attrs{"s": String("1")}, later), err: ErrInvalid},
		{name: "sum too large", op: Op{Action: Update, Add: map[string]int64{"n": 2}}, old: item(Attrs{"n": Number(math.MaxInt64 - 1)}, later), err: ErrInvalid},
		{name: "sum too small", op: Op{Action: Update, Add: map[string]int64{"n": math.MinInt64}}, old: item(Attrs{"n": Number(-1)}, later), err: ErrInvalid},
		{name: "sums at the edge", op: Op{Action: Update, Add: map[string]int64{"n": 1, "m": math.MinInt64}},
			old: item(Attrs{"n": Number(math.MaxInt64 - 1)}, later), want: item(Attrs{"n": Number(math.MaxInt64), "m": Number(math.MinInt64)}, later)},
		{name: "update grows too large", op: Op{Action: Update, Set: Attrs{"b": Bytes(make([]byte, 200<<10))}},
			old: item(Attrs{"a": Bytes(make([]byte, 201<<10))}, later), err: ErrTooLarge},
		{name: "put too large", op: Op{Action: Put, Set: Attrs{"b": Bytes(make([]byte, MaxItemSize))}}, err: ErrTooLarge},
		{name: "unknown action", op: Op{}, err: ErrInvalid},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			c.op.Key = someKey
			var before []byte
			if c.old != nil {
				before = AppendItem(nil, c.old.Attrs, c.old.Expires)
			}
			got, err := Apply(c.op, c.old, now)
			if c.err != nil {
				if !errors.Is(err, ErrCondition) && !errors.Is(err, c.err) || errors.Is(err, ErrCondition) != (c.err == error(failed)) {
					t.Fatalf("error %v, want %v", err, c.err)
				}
				if got != nil {
					t.Fatal("an item along with the error")
				}
			} else if err != nil {
				t.Fatal(err)
			} else if (got == nil) != (c.want == nil) || got != nil && !equalItems(*got, *c.want) {
				t.Fatalf("got %v, want %v", got, c.want)
			}
			if c.old != nil && string(AppendItem(nil, c.old.Attrs, c.old.Expires)) != string(before) {
				t.Fatal("the old item was changed")
			}
		})
	}
}

func TestConditions(t *testing.T) {
	it := &Item{Key: someKey, Attrs: Attrs{"n": Number(5), "s": String("5"), "b": Bytes([]byte("5")), "e": String("")}}
	cases := []struct {
		cond             Cond
		present, without bool // with the item, without any
	}{
		{IfExists(), true, false},
		{IfAbsent(), false, true},
		{IfNone("x"), true, true},
		{IfNone("n"), false, true},
		{IfNone("e"), false, true},
		{IfEqual("n", Number(5)), true, false},
		{IfEqual("n", Number(6)), false, false},
		{IfEqual("n", String("5")), false, false},
		{IfEqual("s", String("5")), true, false},
		{IfEqual("s", Bytes([]byte("5"))), false, false},
		{IfEqual("b", Bytes([]byte("5"))), true, false},
		{IfEqual("e", String("")), true, false},
		{IfEqual("x", String("")), false, false},
		{IfLess("n", 5), false, false},
		{IfLess("n", 6), true, false},
		{IfLess("s", 6), false, false},
		{IfLess("x", 6), false, false},
		{IfAtMost("n", 4), false, false},
		{IfAtMost("n", 5), true, false},
		{IfAtMost("b", 9), false, false},
		{IfAtMost("x", 9), false, false},
		{Cond{}, false, false},
	}
	for _, c := range cases {
		if got := holds(&c.cond, it); got != c.present {
			t.Errorf("%+v with the item: %v", c.cond, got)
		}
		if got := holds(&c.cond, nil); got != c.without {
			t.Errorf("%+v without: %v", c.cond, got)
		}
	}
}

func TestEqual(t *testing.T) {
	values := []Value{{}, String(""), Bytes(nil), Number(0), String("a"), Bytes([]byte("a")), Number(1)}
	for i, v := range values {
		for j, w := range values {
			if got, want := v.Equal(w), i == j && i > 0; got != want {
				t.Errorf("%d and %d: %v", i, j, got)
			}
		}
	}
	if !Bytes(nil).Equal(Bytes([]byte{})) {
		t.Error("empty bytes differ")
	}
}
