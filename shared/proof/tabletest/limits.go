package tabletest

import (
	"errors"
	"strings"
	"testing"
	"time"

	"blindpost/shared/table"
)

// invalidKeys break the rules of keys.
func (f *fixture) invalidKeys() []table.Key {
	var keys []table.Key
	for _, part := range []string{"", "a\x00", "\n", "a\x7f", "\u0085", "\xff", "a\xe2\x82", strings.Repeat("k", table.MaxKey+1)} {
		keys = append(keys, table.Key{Partition: f.partition, Sort: part}, table.Key{Partition: part, Sort: "s"})
	}
	return keys
}

var limitCases = []testCase{
	{"keys of the largest size", func(f *fixture) {
		k := table.Key{Partition: f.partition + strings.Repeat("k", table.MaxKey-len(f.partition)), Sort: strings.Repeat("ж", table.MaxKey/2)}
		f.write(table.Op{Action: table.Put, Key: k, Set: table.Attrs{"a": table.Number(1)}})
		it, err := f.tbl.Get(background(), k)
		if err != nil {
			f.Fatal(err)
		}
		f.wantSame("item", it, table.Item{Key: k, Attrs: table.Attrs{"a": table.Number(1)}})
		f.wantSorts(table.Query{Partition: k.Partition, Prefix: k.Sort}, k.Sort)
		f.wantSorts(table.Query{Partition: k.Partition, After: k.Sort})
		f.write(table.Op{Action: table.Delete, Key: k})
	}},
	{"invalid keys are refused everywhere", func(f *fixture) {
		for _, k := range f.invalidKeys() {
			if _, err := f.tbl.Get(background(), k); !errors.Is(err, table.ErrInvalid) {
				f.Errorf("get: %v", err)
			}
			f.wantWriteError(table.Op{Action: table.Put, Key: k}, table.ErrInvalid)
			f.wantWriteError(table.Op{Action: table.Update, Key: k}, table.ErrInvalid)
			f.wantWriteError(table.Op{Action: table.Delete, Key: k}, table.ErrInvalid)
			f.wantTransactError(table.ErrInvalid, table.Op{Action: table.Put, Key: f.key("s")}, table.Op{Action: table.Put, Key: k})
		}
		f.wantSorts(table.Query{})
	}},
	{"invalid queries are refused", func(f *fixture) {
		for name, q := range map[string]table.Query{
			"no partition":   {Prefix: "a"},
			"control":        {Partition: "a\x00"},
			"long partition": {Partition: strings.Repeat("k", table.MaxKey+1)},
			"negative limit": {Partition: f.partition, Limit: -1},
			"broken prefix":  {Partition: f.partition, Prefix: "\xff"},
			"broken after":   {Partition: f.partition, After: "\xff"},
			"broken before":  {Partition: f.partition, Before: "\xff"},
		} {
			if _, err := f.tbl.Query(background(), q); !errors.Is(err, table.ErrInvalid) {
				f.Errorf("%s: %v", name, err)
			}
		}
	}},
	{"invalid operations are refused and change nothing", func(f *fixture) {
		before := table.Attrs{"a": table.Number(1)}
		f.put("s", before)
		soon := f.soon(10)
		for name, op := range map[string]table.Op{
			"no action":          {},
			"unknown action":     {Action: 99},
			"check outside":      {Action: table.Check, Conds: []table.Cond{table.IfExists()}},
			"put with add":       {Action: table.Put, Add: map[string]int64{"n": 1}},
			"put with remove":    {Action: table.Put, Remove: []string{"a"}},
			"put forever":        {Action: table.Put, KeepForever: true},
			"delete with set":    {Action: table.Delete, Set: before},
			"delete with expiry": {Action: table.Delete, Expires: soon},
			"set and add":        {Action: table.Update, Set: before, Add: map[string]int64{"a": 1}},
			"set and remove":     {Action: table.Update, Set: before, Remove: []string{"a"}},
			"add and remove":     {Action: table.Update, Add: map[string]int64{"a": 1}, Remove: []string{"a"}},
			"removed twice":      {Action: table.Update, Remove: []string{"a", "a"}},
			"two expiries":       {Action: table.Update, Expires: soon, KeepForever: true},
			"zero value":         {Action: table.Update, Set: table.Attrs{"a": {}}},
			"empty name":         {Action: table.Update, Set: table.Attrs{"": table.Number(1)}},
			"long name":          {Action: table.Update, Set: table.Attrs{strings.Repeat("n", table.MaxName+1): table.Number(1)}},
			"broken name":        {Action: table.Update, Set: table.Attrs{"\xff": table.Number(1)}},
			"broken string":      {Action: table.Update, Set: table.Attrs{"b": table.String("\xff")}},
			"empty added name":   {Action: table.Update, Add: map[string]int64{"": 1}},
			"empty removed name": {Action: table.Update, Remove: []string{""}},
			"unknown test":       {Action: table.Put, Conds: []table.Cond{{Test: 99, Attr: "a", Value: table.Number(1)}}},
			"less, no number":    {Action: table.Put, Conds: []table.Cond{{Test: table.Less, Attr: "a", Value: table.String("z")}}},
			"at most, no value":  {Action: table.Put, Conds: []table.Cond{{Test: table.AtMost, Attr: "a"}}},
			"equal, no value":    {Action: table.Put, Conds: []table.Cond{{Test: table.Equal, Attr: "a"}}},
			"unnamed condition":  {Action: table.Put, Conds: []table.Cond{table.IfNone("")}},
			"expiry before 1970": {Action: table.Put, Expires: time.Unix(-100, 0)},
			"expiry after 9999":  {Action: table.Put, Expires: time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC)},
		} {
			f.Run(name, func(t *testing.T) {
				inner := *f
				inner.T = t
				op.Key = f.key("s")
				inner.wantWriteError(op, table.ErrInvalid)
				if op.Action != table.Check {
					inner.wantTransactError(table.ErrInvalid, table.Op{Action: table.Put, Key: f.key("t")}, op)
				} else {
					op.Conds = nil
					inner.wantTransactError(table.ErrInvalid, table.Op{Action: table.Put, Key: f.key("t")}, op)
				}
				inner.wantSorts(table.Query{}, "s")
				inner.wantItem("s", before, time.Time{})
			})
		}
	}},
	{"names of the largest size", func(f *fixture) {
		attrs := table.Attrs{strings.Repeat("n", table.MaxName): table.Number(1)}
		f.put("s", attrs)
		f.wantItem("s", attrs, time.Time{})
	}},
	// Implementations may count a little beside the content, so these stay 1 KB away from
	// the edge.
	{"an item of nearly the largest size", func(f *fixture) {
		attrs := table.Attrs{"b": table.Bytes(filled(table.MaxItemSize-2<<10-len(f.partition), 1))}
		f.put("s", attrs)
		f.wantItem("s", attrs, time.Time{})
		f.write(table.Op{Action: table.Update, Key: f.key("s"), Set: table.Attrs{"c": table.Bytes(filled(512, 2))}})
	}},
	{"a larger item is ErrTooLarge and changes nothing", func(f *fixture) {
		before := table.Attrs{"a": table.Bytes(filled(210<<10, 1))}
		f.put("s", before)
		large := table.Attrs{"a": table.Bytes(filled(table.MaxItemSize, 2))}
		text := table.Attrs{"a": table.String(strings.Repeat("€", table.MaxItemSize/3+1))}
		growing := table.Attrs{"b": table.Bytes(filled(200<<10, 3))}
		for _, op := range []table.Op{
			{Action: table.Put, Set: large}, {Action: table.Put, Set: text}, {Action: table.Update, Set: large}, {Action: table.Update, Set: growing},
		} {
			op.Key = f.key("s")
			f.wantWriteError(op, table.ErrTooLarge)
			f.wantTransactError(table.ErrTooLarge, table.Op{Action: table.Put, Key: f.key("t")}, op)
			f.wantItem("s", before, time.Time{})
			f.wantAbsent("t")
		}
		f.write(table.Op{Action: table.Update, Key: f.key("s"), Set: growing, Remove: []string{"a"}})
		f.wantItem("s", growing, time.Time{})
	}},
}
