package tabletest

import (
	"math"
	"strings"
	"time"

	"blindpost/shared/table"
)

var itemCases = []testCase{
	{"get answers ErrNotFound for an absent item", func(f *fixture) {
		f.wantAbsent("s")
		f.put("other", table.Attrs{"a": table.Number(1)})
		f.wantAbsent("s")
	}},
	{"put and get", func(f *fixture) {
		attrs := table.Attrs{"s": table.String("text"), "n": table.Number(42), "b": table.Bytes([]byte{0, 1, 255})}
		f.wantNone(f.put("s", attrs))
		f.wantItem("s", attrs, time.Time{})
	}},
	{"an item without attributes is an item", func(f *fixture) {
		f.put("s", nil)
		f.wantItem("s", table.Attrs{}, time.Time{})
		f.wantSame("old item", f.put("s", table.Attrs{"a": table.Number(1)}), table.Item{Key: f.key("s"), Attrs: table.Attrs{}})
	}},
	{"values come back as they were", func(f *fixture) {
		all := make([]byte, 256)
		for i := range all {
			all[i] = byte(i)
		}
		attrs := table.Attrs{
			"empty string": table.String(""),
			"empty bytes":  table.Bytes(nil),
			"zero":         table.Number(0),
			"largest":      table.Number(math.MaxInt64),
			"smallest":     table.Number(math.MinInt64),
			"precise":      table.Number(1<<53 + 1),
			"all bytes":    table.Bytes(all),
			"many bytes":   table.Bytes(filled(300<<10, 3)),
			"wide":         table.String("ä€😀\x00\n"),
			"long string":  table.String(strings.Repeat("ж", 10_000)),
			"Ünïcode name": table.String("x"),
			"a.b-c#d:e":    table.Number(-1),
			"partition":    table.String("no clash with the key"),
			"sort":         table.String("no clash with the key"),
			"expires":      table.Number(1),
			"ttl":          table.Number(1),
		}
		f.put("s", attrs)
		f.wantItem("s", attrs, time.Time{})
	}},
	{"keys are bytes and nothing is special in them", func(f *fixture) {
		sorts := []string{"a", "A", "a ", " a", "a/b", "a%", "a*", "a_", "é", "e\u0301", strings.Repeat("k", table.MaxKey), "ä€😀"}
		for i, sort := range sorts {
			f.wantNone(f.put(sort, table.Attrs{"i": table.Number(int64(i))}))
		}
		for i, sort := range sorts {
			f.wantItem(sort, table.Attrs{"i": table.Number(int64(i))}, time.Time{})
		}
	}},
	{"partition and sort key are apart", func(f *fixture) {
		keys := []table.Key{
			{Partition: f.partition + "a", Sort: "b"}, {Partition: f.partition + "ab", Sort: "b"},
			{Partition: f.partition + "a", Sort: "bb"}, {Partition: f.partition + "a/", Sort: "b"},
			{Partition: f.partition + "a", Sort: "/b"}, {Partition: f.partition + "a#b", Sort: "b"}, {Partition: f.partition + "a", Sort: "b#b"},
		}
		for i, k := range keys {
			f.wantNone(f.write(table.Op{Action: table.Put, Key: k, Set: table.Attrs{"i": table.Number(int64(i))}}))
		}
		for i, k := range keys {
			it, err := f.tbl.Get(background(), k)
			if err != nil {
				f.Fatal(err)
			}
			f.wantSame("item", it, table.Item{Key: k, Attrs: table.Attrs{"i": table.Number(int64(i))}})
		}
	}},
	{"put replaces the whole item and returns the old one", func(f *fixture) {
		expires := f.soon(100)
		first := table.Attrs{"a": table.Number(1), "b": table.String("x")}
		f.putExpiring("s", first, expires)
		old := f.put("s", table.Attrs{"c": table.Number(2)})
		f.wantSame("old item", old, table.Item{Key: f.key("s"), Attrs: first, Expires: expires})
		f.wantItem("s", table.Attrs{"c": table.Number(2)}, time.Time{})
	}},
	{"delete removes the item and returns it", func(f *fixture) {
		f.put("s", table.Attrs{"a": table.Number(1)})
		f.put("t", table.Attrs{"a": table.Number(2)})
		old := f.write(table.Op{Action: table.Delete, Key: f.key("s")})
		f.wantSame("old item", old, table.Item{Key: f.key("s"), Attrs: table.Attrs{"a": table.Number(1)}})
		f.wantAbsent("s")
		f.wantItem("t", table.Attrs{"a": table.Number(2)}, time.Time{})
	}},
	{"delete of an absent item is no error", func(f *fixture) {
		f.wantNone(f.write(table.Op{Action: table.Delete, Key: f.key("s")}))
	}},
	{"what was deleted can come back", func(f *fixture) {
		f.putExpiring("s", table.Attrs{"a": table.Number(1)}, f.soon(100))
		f.write(table.Op{Action: table.Delete, Key: f.key("s")})
		f.wantNone(f.write(table.Op{Action: table.Update, Key: f.key("s"), Set: table.Attrs{"b": table.Number(2)}}))
		f.wantItem("s", table.Attrs{"b": table.Number(2)}, time.Time{})
	}},
}
