package mem_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"testing"
	"time"

	"blindpost/shared/proof/tabletest"
	"blindpost/shared/table"
	"blindpost/shared/table/mem"
)

var ctx = context.Background()

func TestConformance(t *testing.T) {
	tabletest.Run(t, func(_ *testing.T, now func() time.Time) table.Table { return mem.New(now) }, tabletest.Checks(200))
}

// connection is an item like the records of open connections.
func connection(i int, expires time.Time) table.Op {
	return table.Op{
		Action: table.Put,
		Key:    table.Key{Partition: fmt.Sprintf("c/%016x", uint64(i)*0x9e3779b97f4a7c15), Sort: "connection"},
		Set: table.Attrs{
			"dialect": table.String("skald"),
			"ns":      table.Bytes(make([]byte, 32)),
			"member":  table.Bytes(make([]byte, 32)),
			"state":   table.Number(3),
			"since":   table.Number(1_900_000_000_000),
			"address": table.String("2001:db8:1:2::"),
		},
		Expires: expires,
	}
}

func mustWrite(t testing.TB, tbl *mem.Table, op table.Op) {
	t.Helper()
	if _, err := tbl.Write(ctx, op); err != nil {
		t.Fatal(err)
	}
}

func TestSweep(t *testing.T) {
	now := time.Date(2040, 1, 1, 0, 0, 0, 0, time.UTC)
	tbl := mem.New(func() time.Time { return now })
	const n = 1000
	var ops []table.Op
	for i := range n {
		ops = append(ops, connection(i, now.Add(time.Duration(1+i%10)*time.Second)))
		mustWrite(t, tbl, ops[i])
	}
	mustWrite(t, tbl, connection(n, time.Time{}))

	sweep := func(at time.Time, want int) {
		t.Helper()
		before := tbl.Len()
		got, err := tbl.Sweep(ctx, at, 7)
		if err != nil || got != want || tbl.Len() != before-want {
			t.Fatalf("swept %d, %v, length from %d to %d; want %d", got, err, before, tbl.Len(), want)
		}
	}
	start := now
	sweep(start.Add(time.Hour), 0) // the table's clock has not come there
	now = start.Add(3 * time.Second)
	if _, err := tbl.Get(ctx, ops[2].Key); !errors.Is(err, table.ErrNotFound) {
		t.Errorf("expired and not swept: %v", err)
	}
	sweep(start, 0)
	sweep(now, 300)
	if _, err := tbl.Get(ctx, ops[3].Key); err != nil {
		t.Errorf("not expired: %v", err)
	}
	now = start.Add(time.Hour)
	sweep(now, 700)
	sweep(now, 0)
	if _, err := tbl.Get(ctx, connection(n, now).Key); err != nil {
		t.Errorf("without expiry: %v", err)
	}
	ended, cancel := context.WithCancel(ctx)
	cancel()
	if _, err := tbl.Sweep(ended, now, 7); !errors.Is(err, context.Canceled) {
		t.Errorf("with an ended context: %v", err)
	}
}

// Nobody sweeps, items come and expire: what is kept stays in proportion to
// what is live.
func TestWritesSweep(t *testing.T) {
	for _, batch := range []int{1, 50} {
		t.Run(fmt.Sprint(batch), func(t *testing.T) {
			now := time.Date(2040, 1, 1, 0, 0, 0, 0, time.UTC)
			tbl := mem.New(func() time.Time { return now })
			const live = 1000 // written in 100 s
			most := 0
			for i := 0; i < 30*live; i += batch {
				now = now.Add(time.Duration(batch) * 100 * time.Millisecond)
				var ops []table.Op
				for j := range batch {
					ops = append(ops, connection(i+j, now.Add(100*time.Second)))
				}
				if err := tbl.Transact(ctx, ops); err != nil {
					t.Fatal(err)
				}
				most = max(most, tbl.Len())
			}
			if most > 2*live+live/2 {
				t.Errorf("up to %d items were kept while %d are live", most, live)
			}
		})
	}
}

func TestMemoryPerItem(t *testing.T) {
	if testing.Short() {
		t.Skip("measures memory")
	}
	const n = 50_000
	heap := func() uint64 {
		runtime.GC()
		var stats runtime.MemStats
		runtime.ReadMemStats(&stats)
		return stats.HeapAlloc
	}
	tbl := mem.New(time.Now)
	expires := time.Now().Add(time.Hour)
	before := heap()
	for i := range n {
		mustWrite(t, tbl, connection(i, expires))
	}
	for i := range n { // as when connections change their state
		mustWrite(t, tbl, table.Op{Action: table.Update, Key: connection(i, expires).Key, Add: map[string]int64{"state": 1}})
	}
	perItem := float64(heap()-before) / n
	content := table.Size(connection(0, expires).Key, connection(0, expires).Set)
	t.Logf("%.0f bytes for each item of %d", perItem, content)
	if perItem > 2*float64(content)+64 {
		t.Errorf("an item of %d bytes takes %.0f", content, perItem)
	}
	runtime.KeepAlive(tbl)
}

func BenchmarkGet(b *testing.B) {
	tbl := mem.New(time.Now)
	const n = 50_000
	keys := make([]table.Key, n)
	for i := range keys {
		op := connection(i, time.Now().Add(time.Hour))
		keys[i] = op.Key
		mustWrite(b, tbl, op)
	}
	b.Run("serial", func(b *testing.B) {
		b.ReportAllocs()
		i := 0
		for b.Loop() {
			i += 7919
			if _, err := tbl.Get(ctx, keys[i%n]); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("hot", func(b *testing.B) {
		b.ReportAllocs()
		i := 0
		for b.Loop() {
			i++
			if _, err := tbl.Get(ctx, keys[i%100]); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("parallel", func(b *testing.B) {
		b.ReportAllocs()
		b.RunParallel(func(pb *testing.PB) {
			i := 0
			for pb.Next() {
				i += 7919
				if _, err := tbl.Get(ctx, keys[i%n]); err != nil {
					b.Error(err)
					return
				}
			}
		})
	})
}

func BenchmarkWrite(b *testing.B) {
	tbl := mem.New(time.Now)
	const n = 50_000
	expires := time.Now().Add(time.Hour)
	ops := make([]table.Op, n)
	for i := range ops {
		ops[i] = connection(i, expires)
		mustWrite(b, tbl, ops[i])
	}
	b.Run("put", func(b *testing.B) {
		b.ReportAllocs()
		i := 0
		for b.Loop() {
			i += 7919
			mustWrite(b, tbl, ops[i%n])
		}
	})
	b.Run("update", func(b *testing.B) {
		b.ReportAllocs()
		add := map[string]int64{"state": 1}
		i := 0
		for b.Loop() {
			i += 7919
			mustWrite(b, tbl, table.Op{Action: table.Update, Key: ops[i%n].Key, Add: add, Conds: []table.Cond{table.IfExists()}})
		}
	})
}
