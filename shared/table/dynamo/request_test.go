package dynamo

import (
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"blindpost/shared/table"
)

// live is the guard of an item that must not have expired at the start.
const live = "(attribute_not_exists(ttl) OR ttl > 1893553445)"

// requests are operations and what they ask of DynamoDB, with names and values in
// the place of their placeholders.
var requests = []struct {
	name string
	op   table.Op
	want string
}{
	{"put", table.Op{Action: table.Put, Set: table.Attrs{"a": table.String(""), "n": table.Number(-3), "b": table.Bytes(nil)}},
		`put {a="" b=0x n=-3 pk="p" sk="s"}`},
	{"put, names like ours", table.Op{Action: table.Put, Set: table.Attrs{"pk": table.Number(1), "ttl": table.Number(2), "=": table.Number(3)}},
		`put {===3 =pk=1 =ttl=2 pk="p" sk="s"}`},
	{"put, expiring", table.Op{Action: table.Put, Expires: start.Add(time.Second)},
		`put {pk="p" sk="s" ttl=1893553447}`},
	{"put if absent", table.Op{Action: table.Put, Conds: []table.Cond{table.IfAbsent()}},
		`put {pk="p" sk="s"} IF (attribute_not_exists(pk) OR ttl <= 1893553445)`},
	{"put if it exists", table.Op{Action: table.Put, Conds: []table.Cond{table.IfExists()}},
		`put {pk="p" sk="s"} IF attribute_exists(pk) AND ` + live},
	{"put if it has no such attribute", table.Op{Action: table.Put, Conds: []table.Cond{table.IfNone("a")}},
		`put {pk="p" sk="s"} IF (attribute_not_exists(a) OR ttl <= 1893553445)`},
	{"delete", table.Op{Action: table.Delete}, `delete {pk="p" sk="s"}`},
	{"delete if", table.Op{Action: table.Delete, Conds: []table.Cond{table.IfEqual("ttl", table.String("x")), table.IfLess("n", 4), table.IfAtMost("n", -4)}},
		`delete {pk="p" sk="s"} IF =ttl = "x" AND n < 4 AND n <= -4 AND ` + live},
	{"update", table.Op{Action: table.Update, Set: table.Attrs{"b": table.Number(2), "a": table.String("x")}, Remove: []string{"r", "q"}, Add: map[string]int64{"n": 5}},
		`update {pk="p" sk="s"} SET a = "x", b = 2 REMOVE r, q ADD n 5 IF (attribute_not_exists(n) OR n <= 9223372036854775802) AND ` + live},
	{"update, less", table.Op{Action: table.Update, Add: map[string]int64{"n": -5, "m": 0}},
		`update {pk="p" sk="s"} ADD m 0, n -5 IF (attribute_not_exists(m) OR m <= 9223372036854775807) AND (attribute_not_exists(n) OR n >= -9223372036854775803) AND ` + live},
	{"update, a counter below its cap", table.Op{Action: table.Update, Add: map[string]int64{"n": 1}, Conds: []table.Cond{table.IfLess("n", 200)}},
		`update {pk="p" sk="s"} ADD n 1 IF n < 200 AND (attribute_not_exists(n) OR n <= 9223372036854775806) AND ` + live},
	{"update, expiring", table.Op{Action: table.Update, Set: table.Attrs{"a": table.Number(1)}, Expires: start},
		`update {pk="p" sk="s"} SET a = 1, ttl = 1893553446 IF ` + live},
	{"update, forever", table.Op{Action: table.Update, Set: table.Attrs{"a": table.Number(1)}, KeepForever: true},
		`update {pk="p" sk="s"} SET a = 1 REMOVE ttl IF ` + live},
	{"update that sets nothing", table.Op{Action: table.Update, Remove: []string{"r"}},
		`update {pk="p" sk="s"} SET = = "" REMOVE r IF ` + live},
	{"update of nothing", table.Op{Action: table.Update}, `update {pk="p" sk="s"} SET = = "" IF ` + live},
}

func TestRequests(t *testing.T) {
	for _, c := range requests {
		t.Run(c.name, func(t *testing.T) {
			c.op.Key = key("s")
			tbl, s := scripted(t, answer{})
			if _, err := tbl.Write(t.Context(), c.op); err != nil {
				t.Fatal(err)
			}
			if got := spellCall(t, s.calls[0]); got != c.want {
				t.Errorf("write asks\n  %s, want\n  %s", got, c.want)
			}
			if err := tbl.Transact(t.Context(), []table.Op{c.op}); err != nil {
				t.Fatal(err)
			}
			if got := spellCall(t, s.calls[1]); got != c.want {
				t.Errorf("a transaction of one operation asks\n  %s, want\n  %s", got, c.want)
			}
			other := table.Op{Action: table.Check, Key: key("o"), Conds: []table.Cond{table.IfExists()}}
			if err := tbl.Transact(t.Context(), []table.Op{other, c.op}); err != nil {
				t.Fatal(err)
			}
			want := `check {pk="p" sk="o"} IF attribute_exists(pk) AND ` + live + "; " + c.want
			if got := spellCall(t, s.calls[2]); got != want {
				t.Errorf("a transaction asks\n  %s, want\n  %s", got, want)
			}
			if len(s.calls) != 3 {
				t.Errorf("%s", s.names())
			}
		})
	}
}

func TestReadsAreStronglyConsistent(t *testing.T) {
	tbl, s := scripted(t, answer{out: &dynamodb.GetItemOutput{Item: stored("s", nil, time.Time{})}}, answer{})
	if _, err := tbl.Get(t.Context(), key("s")); err != nil {
		t.Fatal(err)
	}
	if _, err := tbl.Query(t.Context(), table.Query{Partition: "p"}); err != nil {
		t.Fatal(err)
	}
	if !aws.ToBool(s.calls[0].in.(*dynamodb.GetItemInput).ConsistentRead) || !aws.ToBool(s.calls[1].in.(*dynamodb.QueryInput).ConsistentRead) {
		t.Error("a read is not strongly consistent")
	}
}

// A transaction of one Check is a look at the item: one read unit, not two write
// units.
func TestSingleCheckIsARead(t *testing.T) {
	check := table.Op{Action: table.Check, Key: key("s"), Conds: []table.Cond{table.IfEqual("a", table.Number(1))}}
	for _, c := range []struct {
		name string
		item attributes
		ok   bool
	}{
		{"holds", stored("s", table.Attrs{"a": table.Number(1)}, time.Time{}), true},
		{"differs", stored("s", table.Attrs{"a": table.Number(2)}, time.Time{}), false},
		{"expired", stored("s", table.Attrs{"a": table.Number(1)}, start.Truncate(time.Second)), false},
		{"absent", nil, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			tbl, s := scripted(t, answer{out: &dynamodb.GetItemOutput{Item: c.item}})
			err := tbl.Transact(t.Context(), []table.Op{check})
			if c.ok {
				wantError(t, err, nil)
			} else {
				wantError(t, err, table.ErrCondition)
			}
			wantCalls(t, s, "GetItem")
		})
	}
}

func TestNothingIsSentThatBreaksARule(t *testing.T) {
	tbl, s := scripted(t, answer{})
	if _, err := tbl.Get(t.Context(), table.Key{}); err == nil {
		t.Error("get of an empty key")
	}
	if _, err := tbl.Query(t.Context(), table.Query{}); err == nil {
		t.Error("query of no partition")
	}
	if _, err := tbl.Write(t.Context(), table.Op{Action: table.Check, Key: key("s"), Conds: []table.Cond{table.IfExists()}}); err == nil {
		t.Error("check outside of a transaction")
	}
	twice := table.Op{Action: table.Put, Key: key("s")}
	if err := tbl.Transact(t.Context(), []table.Op{twice, twice}); err == nil {
		t.Error("transaction with a key twice")
	}
	if err := tbl.Transact(t.Context(), nil); err != nil {
		t.Error(err)
	}
	wantCalls(t, s, "")
}

func TestForeignItemsAreAnError(t *testing.T) {
	for name, item := range map[string]attributes{
		"list":             {"pk": text("p"), "sk": text("s"), "a": &types.AttributeValueMemberL{}},
		"fraction":         {"pk": text("p"), "sk": text("s"), "a": &types.AttributeValueMemberN{Value: "1.5"}},
		"beyond 64 bits":   {"pk": text("p"), "sk": text("s"), "a": &types.AttributeValueMemberN{Value: "9223372036854775808"}},
		"expiry as string": {"pk": text("p"), "sk": text("s"), "ttl": text("5")},
		"no sort key":      {"pk": text("p"), "a": text("s")},
		"numeric key":      {"pk": text("p"), "sk": number(1)},
		"nothing known":    {"a": nil},
	} {
		t.Run(name, func(t *testing.T) {
			tbl, _ := scripted(t, answer{out: &dynamodb.GetItemOutput{Item: item}})
			_, err := tbl.Get(t.Context(), key("s"))
			wantError(t, err, errForeign)
			tbl, _ = scripted(t, answer{out: &dynamodb.QueryOutput{Items: []map[string]types.AttributeValue{item}}})
			_, err = tbl.Query(t.Context(), table.Query{Partition: "p"})
			wantError(t, err, errForeign)
			tbl, _ = scripted(t, answer{out: &dynamodb.PutItemOutput{Attributes: item}})
			_, err = tbl.Write(t.Context(), table.Op{Action: table.Put, Key: key("s")})
			wantError(t, err, errForeign)
		})
	}
}

func TestConsumedIsReported(t *testing.T) {
	cost := func(units float64) *types.ConsumedCapacity { return &types.ConsumedCapacity{CapacityUnits: &units} }
	s := &script{t: t, answers: []answer{
		{out: &dynamodb.GetItemOutput{ConsumedCapacity: cost(1)}},
		{out: &dynamodb.QueryOutput{ConsumedCapacity: cost(2)}},
		{out: &dynamodb.PutItemOutput{ConsumedCapacity: cost(3)}},
		{out: &dynamodb.UpdateItemOutput{ConsumedCapacity: cost(4)}},
		{out: &dynamodb.DeleteItemOutput{ConsumedCapacity: cost(5)}},
		{out: &dynamodb.TransactWriteItemsOutput{ConsumedCapacity: []types.ConsumedCapacity{*cost(6)}}},
		{out: &dynamodb.PutItemOutput{}},
	}}
	var got []Consumed
	tbl := New(s, Options{Table: "T", OnConsumed: func(c Consumed) { got = append(got, c) }})
	tbl.Get(t.Context(), key("s"))
	tbl.Query(t.Context(), table.Query{Partition: "p"})
	for _, action := range []table.Action{table.Put, table.Update, table.Delete} {
		tbl.Write(t.Context(), table.Op{Action: action, Key: key("s")})
	}
	tbl.Transact(t.Context(), []table.Op{{Action: table.Put, Key: key("s")}, {Action: table.Put, Key: key("t")}})
	tbl.Write(t.Context(), table.Op{Action: table.Put, Key: key("s")})
	want := []Consumed{{"GetItem", 1}, {"Query", 2}, {"PutItem", 3}, {"UpdateItem", 4}, {"DeleteItem", 5}, {"TransactWriteItems", 6}, {"PutItem", 0}}
	if len(got) != len(want) {
		t.Fatalf("reported %v", got)
	}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("reported %v, want %v", got[i], want[i])
		}
	}
	if c := s.calls[2].in.(*dynamodb.PutItemInput).ReturnConsumedCapacity; c != types.ReturnConsumedCapacityTotal {
		t.Errorf("asked for %q", c)
	}
	plainTable, plainScript := scripted(t, answer{})
	plainTable.Write(t.Context(), table.Op{Action: table.Put, Key: key("s")})
	if c := plainScript.calls[0].in.(*dynamodb.PutItemInput).ReturnConsumedCapacity; c != types.ReturnConsumedCapacityNone {
		t.Errorf("asked for %q without anybody to tell", c)
	}
}
