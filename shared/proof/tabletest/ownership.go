package tabletest

import (
	"time"

	"blindpost/shared/table"
)

// spoil changes everything of an operation that can be changed after the call.
func spoil(op *table.Op) {
	for name, v := range op.Set {
		for i := range v.Raw() {
			v.Raw()[i] ^= 0xff
		}
		delete(op.Set, name)
	}
	if op.Set != nil {
		op.Set["spoilt"] = table.Number(1)
	}
	if op.Add != nil {
		op.Add["spoilt"] = 1
	}
	for i := range op.Remove {
		op.Remove[i] = "spoilt"
	}
	for i := range op.Conds {
		for j := range op.Conds[i].Value.Raw() {
			op.Conds[i].Value.Raw()[j] ^= 0xff
		}
		op.Conds[i] = table.IfAbsent()
	}
	op.Key = table.Key{Partition: "spoilt", Sort: "spoilt"}
}

// spoilItem changes everything of an item.
func spoilItem(it table.Item) {
	for name, v := range it.Attrs {
		raw := v.Raw()
		for i := range raw {
			raw[i] ^= 0xff
		}
		_ = append(raw, 0xee, 0xee, 0xee, 0xee) // must not run into a neighbour
		it.Attrs[name] = table.String("spoilt")
	}
	if it.Attrs != nil {
		it.Attrs["spoilt"] = table.Number(1)
	}
}

func ownedAttrs() table.Attrs {
	return table.Attrs{"a": table.Bytes([]byte("aaaa")), "b": table.Bytes([]byte("bbbb")), "c": table.Bytes([]byte("cccc")),
		"s": table.String("text"), "n": table.Number(7)}
}

var ownershipCases = []testCase{
	{"what was passed to write is not kept", func(f *fixture) {
		put := table.Op{Action: table.Put, Key: f.key("s"), Set: ownedAttrs(), Conds: []table.Cond{table.IfAbsent()}}
		f.write(put)
		spoil(&put)
		f.wantItem("s", ownedAttrs(), time.Time{})

		update := table.Op{Action: table.Update, Key: f.key("s"), Set: table.Attrs{"a": table.Bytes([]byte("new"))},
			Add: map[string]int64{"n": 1}, Remove: []string{"s"}, Conds: []table.Cond{table.IfEqual("b", table.Bytes([]byte("bbbb")))}}
		f.write(update)
		spoil(&update)
		f.wantItem("s", table.Attrs{"a": table.Bytes([]byte("new")), "b": table.Bytes([]byte("bbbb")), "c": table.Bytes([]byte("cccc")),
			"n": table.Number(8)}, time.Time{})
	}},
	{"what was passed to write is not changed", func(f *fixture) {
		f.put("s", table.Attrs{"a": table.Bytes([]byte("old")), "x": table.Number(1)})
		update := table.Op{Action: table.Update, Key: f.key("s"), Set: ownedAttrs(), Add: map[string]int64{"x": 1}, Remove: []string{"z", "y"},
			Conds: []table.Cond{table.IfEqual("a", table.Bytes([]byte("old"))), table.IfExists()}}
		f.write(update)
		f.wantSame("set", table.Item{Attrs: update.Set}, table.Item{Attrs: ownedAttrs()})
		if len(update.Add) != 1 || update.Add["x"] != 1 || len(update.Remove) != 2 || update.Remove[0] != "z" ||
			len(update.Conds) != 2 || string(update.Conds[0].Value.Raw()) != "old" {
			f.Fatalf("the operation is now %+v", update)
		}
	}},
	{"what was passed to transact is neither kept nor changed", func(f *fixture) {
		f.put("t", table.Attrs{"n": table.Number(1)})
		ops := []table.Op{
			{Action: table.Put, Key: f.key("s"), Set: ownedAttrs()},
			{Action: table.Update, Key: f.key("t"), Set: table.Attrs{"a": table.Bytes([]byte("new"))}, Add: map[string]int64{"n": 1}},
		}
		f.transact(ops...)
		f.wantSame("set", table.Item{Attrs: ops[0].Set}, table.Item{Attrs: ownedAttrs()})
		for i := range ops {
			spoil(&ops[i])
		}
		f.wantItem("s", ownedAttrs(), time.Time{})
		f.wantItem("t", table.Attrs{"a": table.Bytes([]byte("new")), "n": table.Number(2)}, time.Time{})
	}},
	{"what was handed out belongs to the caller", func(f *fixture) {
		f.put("s", ownedAttrs())
		it, err := f.tbl.Get(background(), f.key("s"))
		if err != nil {
			f.Fatal(err)
		}
		spoilItem(it)
		f.wantItem("s", ownedAttrs(), time.Time{})

		for _, it := range f.query(table.Query{}).Items {
			spoilItem(it)
		}
		f.wantItem("s", ownedAttrs(), time.Time{})

		spoilItem(f.write(table.Op{Action: table.Update, Key: f.key("s"), Add: map[string]int64{"n": 0}}))
		f.wantItem("s", ownedAttrs(), time.Time{})
		spoilItem(f.put("s", ownedAttrs()))
		f.wantItem("s", ownedAttrs(), time.Time{})
	}},
	{"what was handed out stays as it is", func(f *fixture) {
		f.put("s", ownedAttrs())
		f.put("t", ownedAttrs())
		want := table.Item{Key: f.key("s"), Attrs: ownedAttrs()}
		got, err := f.tbl.Get(background(), f.key("s"))
		if err != nil {
			f.Fatal(err)
		}
		queried := f.query(table.Query{}).Items[0]
		old := f.put("s", table.Attrs{"a": table.Bytes([]byte("new"))})
		for range 20 { // enough to reuse any buffer
			f.put("s", table.Attrs{"a": table.Bytes(filled(4, 9)), "b": table.Bytes(filled(4, 9))})
			f.write(table.Op{Action: table.Delete, Key: f.key("t")})
			f.put("t", table.Attrs{"z": table.String("zzzzzzzzzzzz")})
		}
		f.wantSame("item of get", got, want)
		f.wantSame("item of query", queried, want)
		f.wantSame("old item of write", old, want)
	}},
	{"values of one item are apart", func(f *fixture) {
		f.put("s", ownedAttrs())
		it, err := f.tbl.Get(background(), f.key("s"))
		if err != nil {
			f.Fatal(err)
		}
		_ = append(it.Attrs["a"].Raw(), "xxxxxxxx"...)
		_ = append(it.Attrs["b"].Raw(), "xxxxxxxx"...)
		f.wantSame("item", it, table.Item{Key: f.key("s"), Attrs: ownedAttrs()})
	}},
}
