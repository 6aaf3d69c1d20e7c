package bolt

import (
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"blindpost/shared/table"
)

func TestCacheProtocol(t *testing.T) {
	k := []byte("k")
	newOne := func() *cache {
		c := newCache(1 << 20)
		c.admit = 1
		return c
	}
	wantGet := func(t *testing.T, c *cache, want string) ticket {
		t.Helper()
		enc, missed := c.get(k)
		if enc != want {
			t.Fatalf("got %q, want %q", enc, want)
		}
		return missed
	}
	t.Run("what was read is kept", func(t *testing.T) {
		c := newOne()
		c.insert(k, []byte("1"), wantGet(t, c, ""))
		wantGet(t, c, "1")
	})
	t.Run("an old read is not kept after a commit", func(t *testing.T) {
		c := newOne()
		missed := wantGet(t, c, "")
		c.block(k)
		c.settle("k", []byte("2"))
		c.insert(k, []byte("1"), missed)
		wantGet(t, c, "")
	})
	t.Run("nothing is kept during a commit", func(t *testing.T) {
		c := newOne()
		early := wantGet(t, c, "")
		c.block(k)
		during := wantGet(t, c, "")
		c.insert(k, []byte("1"), early)
		c.insert(k, []byte("1"), during)
		wantGet(t, c, "")
		c.settle("k", []byte("2"))
		c.insert(k, []byte("1"), during)
		wantGet(t, c, "")
	})
	t.Run("a kept key is not shown during a commit and has the new value after it", func(t *testing.T) {
		c := newOne()
		c.insert(k, []byte("1"), wantGet(t, c, ""))
		c.block(k)
		c.block(k)
		wantGet(t, c, "")
		c.settle("k", []byte("2"))
		wantGet(t, c, "2")
	})
	t.Run("a deleted or doubtful key is forgotten", func(t *testing.T) {
		c := newOne()
		c.insert(k, []byte("1"), wantGet(t, c, ""))
		c.block(k)
		c.settle("k", nil)
		c.insert(k, []byte("3"), wantGet(t, c, ""))
		wantGet(t, c, "3")
	})
	t.Run("large items are not kept", func(t *testing.T) {
		c := newOne()
		c.insert(k, []byte(strings.Repeat("x", cacheItem+1)), wantGet(t, c, ""))
		wantGet(t, c, "")
		c.insert(k, []byte("1"), wantGet(t, c, ""))
		c.block(k)
		c.settle("k", []byte(strings.Repeat("x", cacheItem+1)))
		wantGet(t, c, "")
	})
	t.Run("one miss in some is kept", func(t *testing.T) {
		c := newCache(1 << 20)
		for range cacheAdmit - 1 {
			c.insert(k, []byte("1"), wantGet(t, c, ""))
		}
		c.insert(k, []byte("1"), wantGet(t, c, ""))
		wantGet(t, c, "1")
	})
	t.Run("no cache", func(t *testing.T) {
		var c *cache
		c.insert(k, []byte("1"), wantGet(t, c, ""))
		c.block(k)
		c.settle("k", []byte("2"))
		wantGet(t, c, "")
	})
	t.Run("is bounded", func(t *testing.T) {
		c := newCache(64 << 10)
		c.admit = 1
		for i := range 5000 {
			k := []byte(fmt.Sprint("key", i))
			_, missed := c.get(k)
			c.insert(k, make([]byte, 200), missed)
		}
		total := 0
		for i := range c.shards {
			s := &c.shards[i]
			total += s.size
			if s.size > s.max || len(s.entries) == 0 {
				t.Fatalf("a shard has %d entries, %d bytes, %d allowed", len(s.entries), s.size, s.max)
			}
		}
		if total < 32<<10 {
			t.Errorf("only %d bytes used", total)
		}
	})
}

// Readers never see a value go back, whichever way they read: Query goes to the
// file and Get mostly to the cache.
func TestCacheNeverGoesBack(t *testing.T) {
	for _, bytes := range []int{1 << 20, 64 * 100} { // the second holds an item or none per shard
		t.Run(fmt.Sprint(bytes), func(t *testing.T) {
			tbl := temporary(t, Options{CacheBytes: bytes})
			const keys, rounds = 8, 100
			for i := range keys {
				mustWrite(t, tbl, table.Op{Action: table.Put, Key: key(i), Set: table.Attrs{"n": table.Number(0)}})
			}
			var done [keys]atomic.Int64
			var stop atomic.Bool
			var writers, readers sync.WaitGroup
			for range 2 {
				writers.Go(func() {
					for round := range rounds {
						var ops []table.Op
						for j := range 3 {
							ops = append(ops, table.Op{Action: table.Update, Key: key((round + j*3) % keys), Add: map[string]int64{"n": 1}})
						}
						if err := tbl.Transact(ctx, ops); err != nil {
							t.Error(err)
							return
						}
						for j := range 3 {
							done[(round+j*3)%keys].Add(1)
						}
					}
				})
			}
			hits := atomic.Int64{}
			for r := range 2 {
				readers.Go(func() {
					var last [keys]int64
					see := func(how string, i int, n, atLeast int64) {
						if n < last[i] || n < atLeast {
							t.Errorf("%s of item %d: %d; seen before %d, written before %d", how, i, n, last[i], atLeast)
							stop.Store(true)
						}
						last[i] = n
					}
					for i := r; !stop.Load(); i = (i + 1) % keys {
						atLeast := done[i].Load()
						if enc, _ := tbl.cache.get(appendStorageKey(nil, key(i))); enc != "" {
							hits.Add(1)
						}
						it, err := tbl.Get(ctx, key(i))
						if err != nil {
							t.Error(err)
							return
						}
						see("get", i, it.Attrs["n"].Num(), atLeast)
						if i%3 != 0 {
							continue
						}
						p, err := tbl.Query(ctx, table.Query{Partition: "p"})
						if err != nil || len(p.Items) != keys {
							t.Error(err)
							return
						}
						for j, it := range p.Items {
							see("query", j, it.Attrs["n"].Num(), 0)
						}
					}
				})
			}
			writers.Wait()
			stop.Store(true)
			readers.Wait()
			if hits.Load() == 0 && bytes > 64*100 {
				t.Error("the cache was never used")
			}
			verify(t, tbl)
		})
	}
}
