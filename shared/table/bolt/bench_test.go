package bolt

import (
	"fmt"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"blindpost/shared/table"
)

// BenchmarkTransact is the way of a stored message: raise the counter of a
// mailbox if it is below its cap, and put the message. Each goroutine has a
// partition of its own.
func BenchmarkTransact(b *testing.B) {
	for _, goroutines := range []int{1, 64, 128, 256} {
		b.Run(fmt.Sprint(goroutines), func(b *testing.B) {
			tbl := temporary(b, Options{})
			expires := time.Now().Add(7 * 24 * time.Hour)
			body := make([]byte, 300)
			for g := range goroutines {
				_, err := tbl.Write(ctx, table.Op{Action: table.Put, Key: mailbox(g), Set: table.Attrs{"n": table.Number(0), "seq": table.Number(0)}})
				if err != nil {
					b.Fatal(err)
				}
			}
			before := tbl.commits.Load()
			var next atomic.Int64
			b.ReportAllocs()
			b.ResetTimer()
			var wg sync.WaitGroup
			for g := range goroutines {
				wg.Go(func() {
					for {
						i := next.Add(1)
						if i > int64(b.N) {
							return
						}
						err := tbl.Transact(ctx, []table.Op{
							{Action: table.Update, Key: mailbox(g), Add: map[string]int64{"n": 1, "seq": 1}, Conds: []table.Cond{table.IfLess("n", 1<<40)}},
							{Action: table.Put, Key: table.Key{Partition: mailbox(g).Partition, Sort: fmt.Sprintf("m/%012d", i)},
								Set: table.Attrs{"c": table.Bytes(body), "seq": table.Number(i)}, Expires: expires.Add(time.Duration(i) * time.Millisecond)},
						})
						if err != nil {
							b.Error(err)
							return
						}
					}
				})
			}
			wg.Wait()
			b.StopTimer()
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "tx/s")
			b.ReportMetric(float64(b.N)/float64(tbl.commits.Load()-before), "tx/commit")
		})
	}
}

func mailbox(g int) table.Key {
	return table.Key{Partition: fmt.Sprintf("mbox/%064x/%d", g*7919, g), Sort: "head"}
}

// BenchmarkGet reads items of 400 bytes out of 100,000.
func BenchmarkGet(b *testing.B) {
	for _, cache := range []int{-1, 32 << 20, 128 << 20} {
		b.Run(fmt.Sprintf("cache=%dMB", cache>>20), func(b *testing.B) { benchmarkGet(b, cache) })
	}
}

func benchmarkGet(b *testing.B, cache int) {
	tbl, err := Open(filepath.Join(b.TempDir(), "table.db"), Options{CacheBytes: cache})
	if err != nil {
		b.Fatal(err)
	}
	defer closeTable(b, tbl)
	keys := fill(b, tbl, 100_000)
	for i := range 20 * len(keys) { // warm
		if _, err := tbl.Get(ctx, keys[i*7919%len(keys)]); err != nil {
			b.Fatal(err)
		}
	}
	b.Run("serial", func(b *testing.B) {
		b.ReportAllocs()
		i := 0
		for b.Loop() {
			i += 7919
			if _, err := tbl.Get(ctx, keys[i%len(keys)]); err != nil {
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
				if _, err := tbl.Get(ctx, keys[i%len(keys)]); err != nil {
					b.Error(err)
					return
				}
			}
		})
	})
}

func fill(b *testing.B, tbl *Table, n int) []table.Key {
	keys := make([]table.Key, n)
	for i := range keys {
		keys[i] = table.Key{Partition: fmt.Sprintf("ns/%032x", i*7919), Sort: "client"}
	}
	for at := 0; at < n; at += 100 {
		var ops []table.Op
		for i := at; i < at+100 && i < n; i++ {
			ops = append(ops, table.Op{Action: table.Put, Key: keys[i], Set: table.Attrs{
				"name":   table.String("some device name"),
				"key":    table.Bytes(make([]byte, 32)),
				"x25519": table.Bytes(make([]byte, 32)),
				"token":  table.Bytes(make([]byte, 160)),
				"since":  table.Number(1_900_000_000),
				"conn":   table.String("abcdefghijklmnop"),
				"rest":   table.Bytes(make([]byte, 100)),
			}})
		}
		if err := tbl.Transact(ctx, ops); err != nil {
			b.Fatal(err)
		}
	}
	return keys
}
