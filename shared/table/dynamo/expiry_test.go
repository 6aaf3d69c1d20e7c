package dynamo

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"blindpost/shared/table"
)

// refused is a failed condition, with the item that failed it.
func refused(item attributes) error {
	return failure(400, &types.ConditionalCheckFailedException{Message: aws.String(secret), Item: item})
}

func refusedReason(item attributes) types.CancellationReason {
	return types.CancellationReason{Code: aws.String("ConditionalCheckFailed"), Message: aws.String(secret), Item: item}
}

var (
	gone   = stored("s", table.Attrs{"n": table.Number(7), "x": table.String("old")}, start.Truncate(time.Second))
	fresh  = stored("s", table.Attrs{"n": table.Number(7)}, start.Add(time.Minute))
	addOne = table.Op{Action: table.Update, Key: key("s"), Add: map[string]int64{"n": 1}}
)

const (
	updated  = `update {pk="p" sk="s"} ADD n 1 IF (attribute_not_exists(n) OR n <= 9223372036854775806) AND ` + live
	replaced = `put {n=1 pk="p" sk="s"} IF (attribute_not_exists(pk) OR ttl <= 1893553445)`
)

func TestUpdateOfAnExpiredItem(t *testing.T) {
	capped := addOne
	capped.Conds = []table.Cond{table.IfLess("n", 100)}
	onlyAbsent := addOne
	onlyAbsent.Conds = []table.Cond{table.IfAbsent()}
	for _, c := range []struct {
		name    string
		op      table.Op
		answers []answer
		want    error
		calls   []string // "" for any
		old     bool
	}{
		{"is replaced", addOne, []answer{{err: refused(gone)}, {out: &dynamodb.PutItemOutput{Attributes: gone}}}, nil, []string{updated, replaced}, false},
		{"is replaced after DynamoDB has removed it", addOne, []answer{{err: refused(gone)}, {}}, nil, []string{updated, replaced}, false},
		{"which another writer replaced first", addOne, []answer{{err: refused(gone)}, {err: refused(nil)}, {out: &dynamodb.UpdateItemOutput{Attributes: fresh}}},
			nil, []string{updated, replaced, updated}, true},
		{"which comes and goes", addOne, []answer{{err: refused(gone)}, {err: refused(nil)}, {err: refused(gone)}, {}}, nil,
			[]string{updated, replaced, updated, replaced}, false},
		{"throttled in between", addOne, []answer{{err: refused(gone)}, {err: code(400, "ThrottlingException")}, {}}, nil, []string{updated, replaced, replaced}, false},
		{"lost in between", addOne, []answer{{err: refused(gone)}, {err: lost()}}, ErrUncertain, []string{updated, replaced}, false},
		{"with a condition that needs an item", capped, []answer{{err: refused(gone)}}, table.ErrCondition, []string{""}, false},
		{"with a condition that needs none", onlyAbsent, []answer{{err: refused(gone)}, {}}, nil, []string{"", replaced}, false},
		{"or not: the item is there and fails", onlyAbsent, []answer{{err: refused(fresh)}}, table.ErrCondition, []string{""}, false},
		{"or not: there is none and that fails", capped, []answer{{err: refused(nil)}}, table.ErrCondition, []string{""}, false},
		{"or not: the item has changed since", capped, []answer{{err: refused(fresh)}, {out: &dynamodb.UpdateItemOutput{Attributes: fresh}}}, nil, []string{"", ""}, true},
		{"or not: it is no number", addOne, []answer{{err: refused(stored("s", table.Attrs{"n": table.String("7")}, time.Time{}))}}, table.ErrInvalid, []string{updated}, false},
		{"or not: the sum is too large", addOne, []answer{{err: refused(stored("s", table.Attrs{"n": table.Number(1<<63 - 1)}, time.Time{}))}},
			table.ErrInvalid, []string{updated}, false},
		{"or not: the item is foreign", addOne, []answer{{err: refused(attributes{"pk": text("p")})}}, errForeign, []string{updated}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				tbl, s := scripted(t, c.answers...)
				old, err := tbl.Write(t.Context(), c.op)
				wantError(t, err, c.want)
				var failed *table.ConditionError
				if errors.As(err, &failed) && failed.Op != 0 {
					t.Errorf("operation %d failed", failed.Op)
				}
				if (old.Attrs != nil) != c.old {
					t.Errorf("old item %v", old)
				}
				wantSpelt(t, s, c.calls)
			})
		})
	}
}

// wantSpelt compares what was asked for.
func wantSpelt(t *testing.T, s *script, want []string) {
	t.Helper()
	if len(s.calls) != len(want) {
		t.Fatalf("the requests were %q, want %d", s.names(), len(want))
	}
	for i, c := range s.calls {
		if got := spellCall(t, c); want[i] != "" && got != want[i] {
			t.Errorf("request %d asks\n  %s, want\n  %s", i, got, want[i])
		}
	}
}

// The first request after an item turned out to have expired follows at once;
// what comes after that does not, so that no writer retries without a pause.
func TestReplacingIsOneTurnWithoutAPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		tbl, s := scripted(t, answer{err: refused(gone)}, answer{})
		if _, err := tbl.Write(t.Context(), addOne); err != nil || time.Since(begin) != 0 {
			t.Errorf("took %v, %v", time.Since(begin), err)
		}
		tbl, _ = scripted(t, answer{err: refused(gone)})
		_, err := tbl.Write(t.Context(), addOne) // neither request ever succeeds
		wantError(t, err, table.ErrBusy)
		if len(s.calls) > maxTries+1 {
			t.Errorf("%d requests", len(s.calls))
		}
	})
}

func TestTransactionWithExpiredItems(t *testing.T) {
	none := reason("None")
	second := table.Op{Action: table.Put, Key: key("t"), Conds: []table.Cond{table.IfAbsent()}}
	other := `put {pk="p" sk="t"} IF (attribute_not_exists(pk) OR ttl <= 1893553445)`
	first, again := updated+"; "+other, replaced+"; "+other
	for _, c := range []struct {
		name    string
		answers []answer
		want    error
		failed  int
		calls   []string
	}{
		{"is done with a replacement", []answer{{err: canceled(refusedReason(gone), none)}, {}}, nil, 0, []string{first, again}},
		{"fails at once where another operation fails", []answer{{err: canceled(refusedReason(gone), refusedReason(nil))}}, table.ErrCondition, 1, []string{first}},
		{"fails at the first of two", []answer{{err: canceled(refusedReason(stored("s", table.Attrs{"n": table.String("7")}, time.Time{})), refusedReason(nil))}},
			table.ErrInvalid, 0, []string{first}},
		{"is asked again where an earlier operation was not looked at", []answer{
			{err: canceled(reason("TransactionConflict"), refusedReason(nil))},
			{err: canceled(none, refusedReason(nil))},
		}, table.ErrCondition, 1, []string{first, first}},
		{"goes back where another writer replaced the item", []answer{
			{err: canceled(refusedReason(gone), none)}, {err: canceled(refusedReason(nil), none)}, {},
		}, nil, 0, []string{first, again, first}},
		{"keeps the replacement over a conflict", []answer{
			{err: canceled(refusedReason(gone), none)}, {err: canceled(none, reason("TransactionConflict"))}, {},
		}, nil, 0, []string{first, again, again}},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				tbl, s := scripted(t, c.answers...)
				err := tbl.Transact(t.Context(), []table.Op{addOne, second})
				wantError(t, err, c.want)
				var failed *table.ConditionError
				if errors.As(err, &failed) && failed.Op != c.failed {
					t.Errorf("operation %d failed, want %d", failed.Op, c.failed)
				}
				wantSpelt(t, s, c.calls)
			})
		})
	}
}

// A replacement can be too large where the update would not have been sent.
func TestReplacementThatIsTooLarge(t *testing.T) {
	big := table.Op{Action: table.Update, Key: key("s"), Add: map[string]int64{strings.Repeat("n", table.MaxName): 1},
		Set: table.Attrs{"b": table.Bytes(make([]byte, table.MaxItemSize-10))}}
	tbl, s := scripted(t, answer{err: refused(gone)})
	_, err := tbl.Write(t.Context(), big)
	wantError(t, err, table.ErrTooLarge)
	wantCalls(t, s, "UpdateItem")
}

// What expires while the answer is on its way is absent already.
func TestExpiryCountsWhenTheAnswerIsThere(t *testing.T) {
	expires := start.Truncate(time.Second).Add(time.Second)
	item := stored("s", table.Attrs{"n": table.Number(1)}, expires)
	now := start
	late := func(out any) (*Table, *script) {
		tbl, s := scripted(t, answer{out: out, do: func() { now = expires }})
		tbl.now = func() time.Time { return now }
		return tbl, s
	}
	tbl, _ := late(&dynamodb.GetItemOutput{Item: item})
	_, err := tbl.Get(t.Context(), key("s"))
	wantError(t, err, table.ErrNotFound)

	now = start
	tbl, _ = late(&dynamodb.QueryOutput{Items: []map[string]types.AttributeValue{item}})
	page, err := tbl.Query(t.Context(), table.Query{Partition: "p"})
	if err != nil || len(page.Items) != 0 || page.More {
		t.Errorf("page %v, %v", page, err)
	}
}
