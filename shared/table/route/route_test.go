package route_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"blindpost/shared/proof/tabletest"
	"blindpost/shared/table"
	"blindpost/shared/table/mem"
	"blindpost/shared/table/route"
)

var prefixes = []string{"c/", "ip/"}

func TestConformance(t *testing.T) {
	// Partitions of the suite that live in the one table, the other, and
	// partitions whose key is shorter than a prefix.
	for name, prefix := range map[string]string{"special": "ip/", "rest": "ns/", "short": ""} {
		t.Run(name, func(t *testing.T) {
			tabletest.Run(t, func(_ *testing.T, now func() time.Time) table.Table {
				return route.New(mem.New(now), prefixes, mem.New(now))
			}, tabletest.PartitionPrefix(prefix), tabletest.Checks(30))
		})
	}
}

func TestRouting(t *testing.T) {
	ctx := context.Background()
	special, rest := mem.New(time.Now), mem.New(time.Now)
	tbl := route.New(special, prefixes, rest)
	cases := []struct {
		partition string
		special   bool
	}{
		{"c/1", true}, {"c/", true}, {"ip/2001:db8::", true},
		{"c", false}, {"cc/1", false}, {"ns/c/1", false}, {"C/1", false}, {"ip", false}, {"i", false},
	}
	for _, c := range cases {
		k := table.Key{Partition: c.partition, Sort: "written"}
		if _, err := tbl.Write(ctx, table.Op{Action: table.Put, Key: k}); err != nil {
			t.Fatal(err)
		}
		k.Sort = "transacted"
		if err := tbl.Transact(ctx, []table.Op{{Action: table.Put, Key: k}}); err != nil {
			t.Fatal(err)
		}
		here, there := special, rest
		if !c.special {
			here, there = rest, special
		}
		for _, sort := range []string{"written", "transacted"} {
			k.Sort = sort
			if _, err := here.Get(ctx, k); err != nil {
				t.Errorf("%s %s: not where it belongs: %v", c.partition, sort, err)
			}
			if _, err := there.Get(ctx, k); !errors.Is(err, table.ErrNotFound) {
				t.Errorf("%s %s: in the other table: %v", c.partition, sort, err)
			}
			if _, err := tbl.Get(ctx, k); err != nil {
				t.Errorf("%s %s: get: %v", c.partition, sort, err)
			}
		}
		p, err := tbl.Query(ctx, table.Query{Partition: c.partition})
		if err != nil || len(p.Items) != 2 {
			t.Errorf("%s: query found %d, %v", c.partition, len(p.Items), err)
		}
	}
}

func TestTransactionOverBoth(t *testing.T) {
	ctx := context.Background()
	special, rest := mem.New(time.Now), mem.New(time.Now)
	tbl := route.New(special, prefixes, rest)
	op := func(partition string) table.Op {
		return table.Op{Action: table.Put, Key: table.Key{Partition: partition, Sort: "s"}}
	}
	for _, ops := range [][]table.Op{
		{op("c/1"), op("ns/1")},
		{op("ns/1"), op("ip/1")},
		{op("ns/1"), op("ns/2"), op("ns/3"), op("c/1")},
	} {
		if err := tbl.Transact(ctx, ops); !errors.Is(err, table.ErrInvalid) {
			t.Errorf("error %v", err)
		}
		if special.Len()+rest.Len() > 0 {
			t.Fatal("something was written")
		}
	}
	if err := tbl.Transact(ctx, []table.Op{op("c/1"), op("ip/1")}); err != nil {
		t.Errorf("over two prefixes of one table: %v", err)
	}
	if special.Len() != 2 || rest.Len() != 0 {
		t.Errorf("%d and %d items", special.Len(), rest.Len())
	}
}
