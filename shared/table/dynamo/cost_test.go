//go:build aws

package dynamo

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"blindpost/shared/proof/meter"
	"blindpost/shared/table"
	"blindpost/shared/table/dynamo/layout"
)

// till adds up what requests cost, by their name.
type till struct {
	mu    sync.Mutex
	units map[string]float64
}

func (c *till) ring(r Consumed) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.units[r.Request] += r.Units
}

// take returns what one kind of request has cost and empties the till.
func (c *till) take(request string) float64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	units := c.units[request]
	clear(c.units)
	return units
}

// requestOf is the request that an operation of a kind comes to.
var requestOf = map[meter.Kind]string{meter.Get: "GetItem", meter.Query: "Query", meter.Put: "PutItem",
	meter.Update: "UpdateItem", meter.Delete: "DeleteItem", meter.Transact: "TransactWriteItems"}

// What the meter counts, from the items and AWS's rules, is what DynamoDB says that
// it took, for each of many random operations that are done. (DynamoDB does not
// say what one costs that is refused. For those there is meter's own test.)
func TestMeterAgreesWithDynamoDB(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 1))
	cash := &till{units: map[string]float64{}}
	now := time.Date(2040, 1, 1, 0, 0, 0, 0, time.UTC)
	under := New(standin, Options{Table: freshTable(t), Now: func() time.Time { return now }, OnConsumed: cash.ring})
	tbl := meter.New(under)

	attrs := func() table.Attrs {
		size := []int{r.IntN(300), r.IntN(3000), r.IntN(30_000), 1024*(1+r.IntN(5)) - 60 + r.IntN(60), 4096*(1+r.IntN(3)) - 60 + r.IntN(60)}[r.IntN(5)]
		return table.Attrs{
			"b":                                      table.Bytes(make([]byte, size)),
			[]string{"text", "ttl", "=x"}[r.IntN(3)]: table.String([]string{"", "plain", "жж"}[r.IntN(3)]),
			"n":                                      table.Number([]int64{0, r.Int64(), -r.Int64(), int64(r.IntN(1000)), -int64(r.IntN(1000)), 1_000_000}[r.IntN(6)]),
		}
	}
	draw := func(sort string) table.Op {
		op := table.Op{Key: table.Key{Partition: "partition", Sort: sort}}
		switch r.IntN(4) {
		case 0:
			op.Action = table.Put
			op.Set = attrs()
		case 1:
			op.Action = table.Update
			op.Set = attrs()
			if r.IntN(2) == 0 {
				delete(op.Set, "b")
			}
			delete(op.Set, "n")
			op.Add = map[string]int64{"m": int64(r.IntN(1000))}
			if r.IntN(2) == 0 {
				op.Remove = []string{"n"}
			}
		case 2:
			op.Action = table.Update
			op.Add = map[string]int64{"m": int64(r.IntN(2000) - 1000)}
		case 3:
			op.Action = table.Delete
		}
		if op.Action != table.Delete && r.IntN(3) == 0 {
			op.Expires = now.Add(time.Duration(1+r.IntN(1_000_000)) * time.Second)
		}
		return op
	}
	sort := func() string { return "sort/" + string(rune('a'+r.IntN(6))) }

	for i := range 1500 {
		before := tbl.Usage()
		cash.take("")
		var err error
		switch r.IntN(6) {
		case 0:
			_, err = tbl.Get(context.Background(), table.Key{Partition: "partition", Sort: sort()})
		case 1:
			_, err = tbl.Query(context.Background(), table.Query{Partition: "partition", Prefix: "sort/", Limit: r.IntN(8)})
		case 2:
			ops := []table.Op{draw("sort/a"), draw("sort/b"),
				{Action: table.Check, Key: table.Key{Partition: "partition", Sort: "sort/c"}, Conds: []table.Cond{table.IfNone("never there")}}}
			err = tbl.Transact(context.Background(), ops[r.IntN(2):])
		default:
			_, err = tbl.Write(context.Background(), draw(sort()))
		}
		if err != nil && !errors.Is(err, table.ErrNotFound) {
			t.Fatal(err)
		}
		used := tbl.Usage().Since(before)
		for kind, c := range used {
			if c.Calls == 0 {
				continue
			}
			request := requestOf[meter.Kind(kind)]
			if got := cash.take(request); got != float64(c.Read+c.Write) || got == 0 {
				t.Fatalf("operation %d: the meter counts %d read and %d write units for a %v, DynamoDB %v for %s", i, c.Read, c.Write, meter.Kind(kind), got, request)
			}
		}
	}
	total := tbl.Usage().Total()
	t.Logf("%d operations, %d read units, %d write units", total.Calls, total.Read, total.Write)
}

// What an item weighs beside its content: pk, sk, ttl if it expires, and the marker
// after an update that only removed something.
func TestStoredItem(t *testing.T) {
	name := freshTable(t)
	tbl := New(standin, Options{Table: name})
	k := table.Key{Partition: "p", Sort: "s"}
	for _, c := range []struct {
		op   table.Op
		want string
	}{
		{table.Op{Action: table.Put, Set: table.Attrs{"n": table.Number(1)}}, `{n=1 pk="p" sk="s"}`},
		{table.Op{Action: table.Put, Set: table.Attrs{"ttl": table.Number(1)}, Expires: time.Unix(4_000_000_001, 0)}, `{=ttl=1 pk="p" sk="s" ttl=4000000001}`},
		{table.Op{Action: table.Update, KeepForever: true}, `{=="" =ttl=1 pk="p" sk="s"}`},
	} {
		c.op.Key = k
		if _, err := tbl.Write(context.Background(), c.op); err != nil {
			t.Fatal(err)
		}
		out, err := standin.GetItem(context.Background(), &dynamodb.GetItemInput{TableName: &name, Key: encodeKey(k), ConsistentRead: aws.Bool(true)})
		if err != nil {
			t.Fatal(err)
		}
		if got := spellItem(out.Item); got != c.want {
			t.Errorf("stored is %s, want %s", got, c.want)
		}
	}
}

func TestCreateTableTurnsOnTimeToLive(t *testing.T) {
	name := freshTable(t)
	ttl, err := standin.DescribeTimeToLive(context.Background(), &dynamodb.DescribeTimeToLiveInput{TableName: &name})
	if err != nil {
		t.Fatal(err)
	}
	if got := aws.ToString(ttl.TimeToLiveDescription.AttributeName); got != layout.Expires {
		t.Errorf("time to live is on %q", got)
	}
	desc, err := standin.DescribeTable(context.Background(), &dynamodb.DescribeTableInput{TableName: &name})
	if err != nil {
		t.Fatal(err)
	}
	if b := desc.Table.BillingModeSummary; b == nil || b.BillingMode != "PAY_PER_REQUEST" {
		t.Errorf("billing is %+v", b)
	}
}
