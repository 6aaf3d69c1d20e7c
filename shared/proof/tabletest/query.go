package tabletest

import (
	"fmt"

	"blindpost/shared/table"
)

// inOrder are sort keys in the order of their bytes. (In UTF-16 the last two
// would be the other way round.)
var inOrder = []string{" ", "!", "0", "A", "a", "a ", "a/", "a/1", "a/10", "a/2", "a/b", "a0", "b", "z", "é", "ж", "€", "\ufffd", "😀"}

func (f *fixture) putInOrder() {
	f.Helper()
	for i := range inOrder {
		// Not in order, so that it cannot be the order of writing.
		sort := inOrder[(i*7)%len(inOrder)]
		f.put(sort, table.Attrs{"sort": table.String(sort)})
	}
	// Neighbours that must not show up.
	for _, partition := range []string{f.partition + "a", f.partition + " ", f.partition + "/", f.partition[:len(f.partition)-1] + "~"} {
		f.write(table.Op{Action: table.Put, Key: table.Key{Partition: partition, Sort: "a/1"}})
	}
}

var queryCases = []testCase{
	{"an empty partition has an empty page", func(f *fixture) {
		p := f.query(table.Query{})
		if len(p.Items) != 0 {
			f.Fatalf("found %s", sorts(p.Items))
		}
		f.wantSorts(table.Query{Prefix: "a", After: "b", Before: "c", Limit: 3})
	}},
	{"items come whole and in the order of the bytes of their sort keys", func(f *fixture) {
		f.putInOrder()
		expires := f.soon(100)
		f.putExpiring("z", table.Attrs{"sort": table.String("z"), "n": table.Number(1)}, expires)
		f.wantSorts(table.Query{}, inOrder...)
		for _, it := range f.query(table.Query{}).Items {
			want := table.Item{Key: f.key(it.Key.Sort), Attrs: table.Attrs{"sort": table.String(it.Key.Sort)}}
			if it.Key.Sort == "z" {
				want.Attrs["n"], want.Expires = table.Number(1), expires
			}
			f.wantSame("item", it, want)
		}
	}},
	{"prefix", func(f *fixture) {
		f.putInOrder()
		f.wantSorts(table.Query{Prefix: "a"}, "a", "a ", "a/", "a/1", "a/10", "a/2", "a/b", "a0")
		f.wantSorts(table.Query{Prefix: "a/"}, "a/", "a/1", "a/10", "a/2", "a/b")
		f.wantSorts(table.Query{Prefix: "a/1"}, "a/1", "a/10")
		f.wantSorts(table.Query{Prefix: "a/11"})
		f.wantSorts(table.Query{Prefix: "B"})
		f.wantSorts(table.Query{Prefix: "😀"}, "😀")
		f.wantSorts(table.Query{Prefix: "\U0010ffff"})
		f.wantSorts(table.Query{Prefix: "ж"}, "ж")
	}},
	{"after skips up to and including", func(f *fixture) {
		f.putInOrder()
		f.wantSorts(table.Query{After: "b"}, "z", "é", "ж", "€", "\ufffd", "😀")
		f.wantSorts(table.Query{After: "bb"}, "z", "é", "ж", "€", "\ufffd", "😀")
		f.wantSorts(table.Query{After: "😀"})
		f.wantSorts(table.Query{After: "\U0010ffff"})
		f.wantSorts(table.Query{Prefix: "a/", After: "a/1"}, "a/10", "a/2", "a/b")
		f.wantSorts(table.Query{Prefix: "a/", After: "A"}, "a/", "a/1", "a/10", "a/2", "a/b")
		f.wantSorts(table.Query{Prefix: "a/", After: "a/"}, "a/1", "a/10", "a/2", "a/b")
		f.wantSorts(table.Query{Prefix: "a/", After: "z"})
	}},
	{"before stops at sort keys that are not less", func(f *fixture) {
		f.putInOrder()
		f.wantSorts(table.Query{Before: "a"}, " ", "!", "0", "A")
		f.wantSorts(table.Query{Before: "Z"}, " ", "!", "0", "A")
		f.wantSorts(table.Query{Before: " "})
		f.wantSorts(table.Query{Prefix: "a/", Before: "a/2"}, "a/", "a/1", "a/10")
		f.wantSorts(table.Query{Prefix: "a/", Before: "b"}, "a/", "a/1", "a/10", "a/2", "a/b")
		f.wantSorts(table.Query{Prefix: "a/", Before: "a"})
		f.wantSorts(table.Query{After: "a/1", Before: "a/2"}, "a/10")
		f.wantSorts(table.Query{After: "a/2", Before: "a/1"})
		f.wantSorts(table.Query{After: "a/2", Before: "a/2"})
		f.wantSorts(table.Query{Prefix: "a/1", After: "a/1", Before: "a/11"}, "a/10")
	}},
	{"limit, and on from Next", func(f *fixture) {
		f.putInOrder()
		for limit := 1; limit <= len(inOrder)+1; limit++ {
			for _, base := range []table.Query{{}, {Prefix: "a"}, {After: "A", Before: "€"}} {
				whole, err := table.QueryAll(background(), f.tbl, table.Query{Partition: f.partition, Prefix: base.Prefix, After: base.After, Before: base.Before})
				if err != nil {
					f.Fatal(err)
				}
				base.Limit = limit
				f.wantPages(base, whole)
			}
		}
	}},
	{"QueryAll respects the limit over pages", func(f *fixture) {
		f.putInOrder()
		f.wantSorts(table.Query{Limit: 5}, inOrder[:5]...)
		f.wantSorts(table.Query{Limit: 100}, inOrder...)
	}},
	{"large results come in pages of about 1 MB", func(f *fixture) {
		var want []string
		for i := range 30 {
			sort := fmt.Sprintf("m/%02d", i)
			want = append(want, sort)
			f.put(sort, table.Attrs{"b": table.Bytes(filled(100<<10, byte(i)))})
		}
		p := f.query(table.Query{Prefix: "m/"})
		if !p.More || len(p.Items) < 5 || len(p.Items) > 20 {
			f.Fatalf("first page has %d items of 100 KB, more: %v", len(p.Items), p.More)
		}
		f.wantSorts(table.Query{Prefix: "m/"}, want...)
		f.wantSorts(table.Query{Prefix: "m/", Limit: 25}, want[:25]...)
		items, err := table.QueryAll(background(), f.tbl, table.Query{Partition: f.partition})
		if err != nil {
			f.Fatal(err)
		}
		f.wantPages(table.Query{Limit: 7}, items)
		for i, it := range items {
			f.wantSame("item", it, table.Item{Key: f.key(want[i]), Attrs: table.Attrs{"b": table.Bytes(filled(100<<10, byte(i)))}})
		}
	}},
	{"the same sort keys in other partitions are others", func(f *fixture) {
		other := f.suite.freshPartition()
		f.put("a", table.Attrs{"n": table.Number(1)})
		f.write(table.Op{Action: table.Put, Key: table.Key{Partition: other, Sort: "a"}, Set: table.Attrs{"n": table.Number(2)}})
		f.write(table.Op{Action: table.Put, Key: table.Key{Partition: other, Sort: "b"}})
		f.wantSorts(table.Query{}, "a")
		f.wantSorts(table.Query{Partition: other}, "a", "b")
		f.write(table.Op{Action: table.Delete, Key: table.Key{Partition: other, Sort: "a"}})
		f.wantSorts(table.Query{}, "a")
	}},
}

// wantPages reads page by page and demands that together they are these items
// and that each keeps the promises of Page.
func (f *fixture) wantPages(q table.Query, want []table.Item) {
	f.Helper()
	if q.Partition == "" {
		q.Partition = f.partition
	}
	if problem := pagesProblem(f.tbl, q, want); problem != "" {
		f.Fatal(problem)
	}
}

func pagesProblem(tbl table.Table, q table.Query, want []table.Item) string {
	first := q
	fail := func(format string, args ...any) string {
		return fmt.Sprintf("query %+v, page after %q: ", first, q.After) + fmt.Sprintf(format, args...)
	}
	for pages := 0; ; pages++ {
		if pages > 1000 {
			return fail("no end of pages")
		}
		p, err := tbl.Query(background(), q)
		if err != nil {
			return fail("%v", err)
		}
		if q.Limit > 0 && len(p.Items) > q.Limit {
			return fail("%d items, limit %d", len(p.Items), q.Limit)
		}
		if len(p.Items) > len(want) {
			return fail("found %s, want %s", sorts(p.Items), sorts(want))
		}
		for i, it := range p.Items {
			if describe(it) != describe(want[i]) {
				return fail("item %d is\n  %s, want\n  %s", i, describe(it), describe(want[i]))
			}
		}
		want = want[len(p.Items):]
		if !p.More {
			if len(want) > 0 {
				return fail("no more, but %s are missing", sorts(want))
			}
			return ""
		}
		if p.Next <= q.After {
			return fail("Next is %q", p.Next)
		}
		if n := len(p.Items); n > 0 && p.Next < p.Items[n-1].Key.Sort {
			return fail("Next is %q, before the last item %q", p.Next, p.Items[n-1].Key.Sort)
		}
		q.After = p.Next
	}
}
