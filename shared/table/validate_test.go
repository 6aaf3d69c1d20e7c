package table

import (
	"errors"
	"strings"
	"testing"
	"time"
)

func TestValidateKey(t *testing.T) {
	long := strings.Repeat("k", MaxKey)
	good := []Key{
		{"p", "s"}, {long, long}, {"ns/ä€😀", " ~"}, {"\u00a0", "\ufffd"},
	}
	for _, k := range good {
		if err := k.Validate(); err != nil {
			t.Errorf("%q: %v", k, err)
		}
	}
	bad := []string{"", long + "k", "a\x00b", "a\x1f", "a\x7f", "ä\u0085", "\u009f", "\xff", "ab\xc3", "ä\x01"}
	for _, part := range bad {
		for _, k := range []Key{{part, "s"}, {"p", part}} {
			err := k.Validate()
			if !errors.Is(err, ErrInvalid) {
				t.Errorf("%q: %v", k, err)
			}
			if err != nil && len(part) > 1 && strings.Contains(err.Error(), part) {
				t.Errorf("the message tells the key: %v", err)
			}
		}
	}
}

func TestValidateQuery(t *testing.T) {
	long := strings.Repeat("k", MaxKey)
	for _, q := range []Query{
		{Partition: "p"}, {Partition: "p", Prefix: long, After: long, Before: long, Limit: 1},
		{Partition: "p", Before: "a\x00"},
	} {
		if err := q.Validate(); err != nil {
			t.Errorf("%+v: %v", q, err)
		}
	}
	for _, q := range []Query{
		{}, {Partition: "\n"}, {Partition: "p", Limit: -1}, {Partition: "p", Prefix: long + "k"},
		{Partition: "p", After: "\xff"}, {Partition: "p", Before: "a\xe2\x82"},
	} {
		if err := q.Validate(); !errors.Is(err, ErrInvalid) {
			t.Errorf("%+v: %v", q, err)
		}
	}
}

func TestValidateOp(t *testing.T) {
	one := Attrs{"a": Number(1)}
	soon := time.Unix(2_000_000_000, 0)
	good := map[string]Op{
		"put":               {Action: Put, Set: one, Expires: soon},
		"put of nothing":    {Action: Put},
		"update":            {Action: Update, Set: one, Add: map[string]int64{"b": 1}, Remove: []string{"c"}, Expires: soon},
		"update of nothing": {Action: Update},
		"keep forever":      {Action: Update, KeepForever: true},
		"delete":            {Action: Delete, Conds: []Cond{IfExists()}},
		"check":             {Action: Check, Conds: []Cond{IfAbsent()}},
		"all conditions": {Action: Delete, Conds: []Cond{
			IfExists(), IfAbsent(), IfNone("a"), IfEqual("a", String("")), IfEqual("a", Bytes(nil)), IfLess("a", -1), IfAtMost("a", 0),
		}},
		"largest":    {Action: Put, Set: Attrs{"a": Bytes(make([]byte, MaxItemSize-len("a")-len("ps")))}},
		"last hour":  {Action: Put, Expires: time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC)},
		"first hour": {Action: Put, Expires: time.Unix(0, 1)},
	}
	for name, op := range good {
		op.Key = Key{"p", "s"}
		if err := Validate(op); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if err := ValidateWrite(op); (err != nil) != (op.Action == Check) {
			t.Errorf("%s as a write: %v", name, err)
		}
	}
	bad := map[string]Op{
		"no action":          {},
		"unknown action":     {Action: Check + 1, Conds: []Cond{IfExists()}},
		"put with add":       {Action: Put, Add: map[string]int64{"a": 1}},
		"put with remove":    {Action: Put, Remove: []string{"a"}},
		"put forever":        {Action: Put, KeepForever: true},
		"delete with set":    {Action: Delete, Set: one},
		"delete with add":    {Action: Delete, Add: map[string]int64{"a": 1}},
		"delete with remove": {Action: Delete, Remove: []string{"a"}},
		"delete with expiry": {Action: Delete, Expires: soon},
		"delete forever":     {Action: Delete, KeepForever: true},
		"check with set":     {Action: Check, Set: one, Conds: []Cond{IfExists()}},
		"check of nothing":   {Action: Check},
		"set and add":        {Action: Update, Set: one, Add: map[string]int64{"a": 1}},
		"set and remove":     {Action: Update, Set: one, Remove: []string{"a"}},
		"add and remove":     {Action: Update, Add: map[string]int64{"a": 1}, Remove: []string{"a"}},
		"remove twice":       {Action: Update, Remove: []string{"a", "a"}},
		"two expiries":       {Action: Update, Expires: soon, KeepForever: true},
		"no value":           {Action: Put, Set: Attrs{"a": {}}},
		"no name":            {Action: Put, Set: Attrs{"": Number(1)}},
		"long name":          {Action: Put, Set: Attrs{strings.Repeat("n", MaxName+1): Number(1)}},
		"broken name":        {Action: Update, Add: map[string]int64{"\xff": 1}},
		"broken removal":     {Action: Update, Remove: []string{""}},
		"broken string":      {Action: Put, Set: Attrs{"a": String("\xff")}},
		"unknown test":       {Action: Put, Conds: []Cond{{Test: AtMost + 1, Attr: "a", Value: Number(1)}}},
		"no test":            {Action: Put, Conds: []Cond{{}}},
		"less than a string": {Action: Put, Conds: []Cond{{Test: Less, Attr: "a", Value: String("x")}}},
		"at most nothing":    {Action: Put, Conds: []Cond{{Test: AtMost, Attr: "a"}}},
		"equal to nothing":   {Action: Put, Conds: []Cond{{Test: Equal, Attr: "a"}}},
		"condition unnamed":  {Action: Put, Conds: []Cond{IfNone("")}},
		"before 1970":        {Action: Put, Expires: time.Unix(-5, 0)},
		"after 9999":         {Action: Update, Expires: time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC)},
	}
	for name, op := range bad {
		op.Key = Key{"p", "s"}
		if err := Validate(op); !errors.Is(err, ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
	tooLarge := Op{Action: Put, Key: Key{"p", "s"}, Set: Attrs{"a": Bytes(make([]byte, MaxItemSize))}}
	if err := Validate(tooLarge); !errors.Is(err, ErrTooLarge) {
		t.Errorf("too large: %v", err)
	}
}

func TestValidateTransaction(t *testing.T) {
	ops := func(n int, size int) []Op {
		var list []Op
		for i := range n {
			k := Key{"p", "s" + string(rune('a'+i/26)) + string(rune('a'+i%26))}
			list = append(list, Op{Action: Put, Key: k, Set: Attrs{"a": Bytes(make([]byte, size))}})
		}
		return list
	}
	for _, n := range []int{0, 1, 8, 9, MaxTransaction} {
		list := ops(n, 1)
		if err := ValidateTransaction(list); err != nil {
			t.Errorf("%d operations: %v", n, err)
		}
		if n > 1 {
			list[n-1].Key = list[0].Key
			if err := ValidateTransaction(list); !errors.Is(err, ErrInvalid) {
				t.Errorf("%d operations, one key twice: %v", n, err)
			}
			list[n-1].Key = Key{}
			if err := ValidateTransaction(list); !errors.Is(err, ErrInvalid) {
				t.Errorf("%d operations, one without key: %v", n, err)
			}
		}
	}
	if err := ValidateTransaction(ops(MaxTransaction+1, 1)); !errors.Is(err, ErrInvalid) {
		t.Errorf("too many operations: %v", err)
	}
	if err := ValidateTransaction(ops(11, 390<<10)); !errors.Is(err, ErrTooLarge) {
		t.Errorf("too many bytes: %v", err)
	}
}
