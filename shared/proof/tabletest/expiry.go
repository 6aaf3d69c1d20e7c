package tabletest

import (
	"time"

	"blindpost/shared/table"
)

var expiryCases = []testCase{
	{"present until just before, absent from the very moment", func(f *fixture) {
		expires := f.soon(10)
		f.putExpiring("s", table.Attrs{"a": table.Number(1)}, expires)
		f.put("t", nil)
		f.clock.AdvanceTo(expires.Add(-1))
		f.wantItem("s", table.Attrs{"a": table.Number(1)}, expires)
		f.wantSorts(table.Query{}, "s", "t")
		f.clock.AdvanceTo(expires)
		f.wantAbsent("s")
		f.wantSorts(table.Query{}, "t")
		f.clock.Advance(time.Hour)
		f.wantAbsent("s")
		f.wantItem("t", table.Attrs{}, time.Time{})
	}},
	{"is rounded up to whole seconds", func(f *fixture) {
		whole := f.soon(10)
		f.putExpiring("s", nil, whole.Add(-time.Second+1))
		f.wantItem("s", table.Attrs{}, whole)
		f.write(table.Op{Action: table.Update, Key: f.key("t"), Expires: whole.Add(-time.Millisecond)})
		f.wantItem("t", table.Attrs{}, whole)
		f.transact(table.Op{Action: table.Put, Key: f.key("u"), Expires: whole.Add(-time.Nanosecond)})
		f.wantItem("u", table.Attrs{}, whole)
		f.clock.AdvanceTo(whole.Add(-1))
		f.wantSorts(table.Query{}, "s", "t", "u")
		f.clock.AdvanceTo(whole)
		f.wantSorts(table.Query{})
	}},
	{"any time zone", func(f *fixture) {
		expires := f.soon(10)
		f.putExpiring("s", nil, expires.In(time.FixedZone("east", 5*3600)))
		f.wantItem("s", table.Attrs{}, expires)
	}},
	{"in the past is absent at once", func(f *fixture) {
		f.put("s", table.Attrs{"a": table.Number(1)})
		f.putExpiring("s", table.Attrs{"a": table.Number(2)}, f.soon(-10))
		f.wantAbsent("s")
		f.wantNone(f.put("s", table.Attrs{"a": table.Number(3)}))
		f.write(table.Op{Action: table.Update, Key: f.key("s"), Expires: f.soon(0)})
		f.wantAbsent("s")
		f.putExpiring("t", nil, time.Unix(1, 0))
		f.wantAbsent("t")
	}},
	{"far in the future", func(f *fixture) {
		end := time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC)
		f.putExpiring("s", nil, end)
		f.wantItem("s", table.Attrs{}, end)
	}},
	{"an expired item is absent for every operation", func(f *fixture) {
		attrs := table.Attrs{"n": table.Number(5), "x": table.String("x")}
		for _, name := range []string{"put", "update", "delete", "if exists", "if absent", "if none", "if equal", "checked", "transacted"} {
			f.putExpiring(name, attrs, f.soon(10))
		}
		f.clock.AdvanceTo(f.soon(10))

		f.wantNone(f.put("put", nil))
		f.wantItem("put", table.Attrs{}, time.Time{})
		f.wantNone(f.write(table.Op{Action: table.Update, Key: f.key("update"), Add: map[string]int64{"n": 1}}))
		f.wantItem("update", table.Attrs{"n": table.Number(1)}, time.Time{})
		f.wantNone(f.write(table.Op{Action: table.Delete, Key: f.key("delete")}))
		f.wantAbsent("delete")

		f.wantWriteError(table.Op{Action: table.Put, Key: f.key("if exists"), Conds: []table.Cond{table.IfExists()}}, table.ErrCondition)
		f.wantAbsent("if exists")
		f.wantWriteError(table.Op{Action: table.Update, Key: f.key("if equal"), Conds: []table.Cond{table.IfEqual("n", table.Number(5))}}, table.ErrCondition)
		f.wantAbsent("if equal")
		f.write(table.Op{Action: table.Put, Key: f.key("if absent"), Conds: []table.Cond{table.IfAbsent()}})
		f.wantItem("if absent", table.Attrs{}, time.Time{})
		f.write(table.Op{Action: table.Update, Key: f.key("if none"), Conds: []table.Cond{table.IfNone("n")}})
		f.wantItem("if none", table.Attrs{}, time.Time{})

		f.transact(
			table.Op{Action: table.Check, Key: f.key("checked"), Conds: []table.Cond{table.IfAbsent()}},
			table.Op{Action: table.Update, Key: f.key("transacted"), Set: table.Attrs{"y": table.Number(1)}},
		)
		f.wantAbsent("checked")
		f.wantItem("transacted", table.Attrs{"y": table.Number(1)}, time.Time{})
	}},
	{"an update that only moves the expiry cannot revive", func(f *fixture) {
		f.putExpiring("s", table.Attrs{"a": table.Number(1)}, f.soon(10))
		f.putExpiring("t", table.Attrs{"a": table.Number(1)}, f.soon(10))
		f.clock.AdvanceTo(f.soon(10))
		f.write(table.Op{Action: table.Update, Key: f.key("s"), Expires: f.soon(100)})
		f.wantItem("s", table.Attrs{}, f.soon(100))
		f.write(table.Op{Action: table.Update, Key: f.key("t"), KeepForever: true})
		f.wantItem("t", table.Attrs{}, time.Time{})
	}},
	{"what is deleted when it has expired does not come back with the clock", func(f *fixture) {
		for _, sort := range []string{"written", "transacted", "together"} {
			f.putExpiring(sort, nil, f.soon(10))
		}
		f.clock.Advance(time.Minute)
		f.write(table.Op{Action: table.Delete, Key: f.key("written")})
		f.transact(
			table.Op{Action: table.Delete, Key: f.key("transacted")},
			table.Op{Action: table.Delete, Key: f.key("together")},
		)
		f.clock.Advance(-time.Minute)
		f.wantSorts(table.Query{})
	}},
	{"a moved expiry is the one that counts", func(f *fixture) {
		first, second := f.soon(10), f.soon(20)
		for _, sort := range []string{"later", "forever", "replaced", "sooner"} {
			f.putExpiring(sort, nil, first)
		}
		f.write(table.Op{Action: table.Update, Key: f.key("later"), Expires: second})
		f.write(table.Op{Action: table.Update, Key: f.key("forever"), KeepForever: true})
		f.put("replaced", nil)
		f.write(table.Op{Action: table.Update, Key: f.key("sooner"), Expires: f.soon(5)})
		f.clock.AdvanceTo(f.soon(5))
		f.wantSorts(table.Query{}, "forever", "later", "replaced")
		f.clock.AdvanceTo(first)
		f.wantSorts(table.Query{}, "forever", "later", "replaced")
		f.clock.AdvanceTo(second)
		f.wantSorts(table.Query{}, "forever", "replaced")
	}},
	{"pages go on over expired items", func(f *fixture) {
		expires := f.soon(10)
		live := map[rune]bool{'Z': true, '[': true, 'i': true} // the first after 1.5 MB
		for sort := 'A'; sort < 'A'+45; sort++ {
			if live[sort] {
				f.put(string(sort), nil)
			} else {
				f.putExpiring(string(sort), table.Attrs{"b": table.Bytes(filled(60<<10, 1))}, expires)
			}
		}
		f.clock.AdvanceTo(expires)
		f.wantSorts(table.Query{}, "Z", "[", "i")
		f.wantSorts(table.Query{Limit: 2}, "Z", "[")
		f.wantSorts(table.Query{After: "[", Before: "i"})
		items, err := table.QueryAll(background(), f.tbl, table.Query{Partition: f.partition})
		if err != nil {
			f.Fatal(err)
		}
		f.wantPages(table.Query{Limit: 1}, items)
	}},
}
