package tabletest

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"blindpost/shared/table"
)

const goroutines = 50

// together runs do in many goroutines that start at the same moment and waits
// for them. They report errors with f.Errorf, which may be called from anywhere.
func together(do func(worker int)) {
	var wg sync.WaitGroup
	start := make(chan struct{})
	for worker := range goroutines {
		wg.Go(func() {
			<-start
			do(worker)
		})
	}
	close(start)
	wg.Wait()
}

var concurrencyCases = []testCase{
	{"a conditional counter stops exactly at its cap", func(f *fixture) {
		const limit, attempts = 200, 8 // 400 in all
		f.put("n", table.Attrs{"n": table.Number(0)})
		var done atomic.Int64
		together(func(int) {
			for range attempts {
				_, err := persistWrite(f.tbl, table.Op{Action: table.Update, Key: f.key("n"), Add: map[string]int64{"n": 1},
					Conds: []table.Cond{table.IfLess("n", limit)}})
				switch {
				case err == nil:
					done.Add(1)
				case !errors.Is(err, table.ErrCondition):
					f.Errorf("write: %v", err)
				}
			}
		})
		if done.Load() != limit {
			f.Errorf("%d writes succeeded, want %d", done.Load(), limit)
		}
		f.wantItem("n", table.Attrs{"n": table.Number(limit)}, time.Time{})
	}},
	{"messages and their counter are stored together, up to the cap", func(f *fixture) {
		const limit, attempts = 200, 5 // 250 in all
		f.put("n", table.Attrs{"n": table.Number(0)})
		var done atomic.Int64
		together(func(worker int) {
			for i := range attempts {
				err := persistTransact(f.tbl,
					table.Op{Action: table.Update, Key: f.key("n"), Add: map[string]int64{"n": 1}, Conds: []table.Cond{table.IfLess("n", limit)}},
					table.Op{Action: table.Put, Key: f.key(fmt.Sprintf("m/%02d/%d", worker, i)), Set: table.Attrs{"b": table.Bytes(filled(200, 1))},
						Conds: []table.Cond{table.IfAbsent()}},
				)
				switch {
				case err == nil:
					done.Add(1)
				case errors.Is(err, table.ErrCondition):
					var condition *table.ConditionError
					if !errors.As(err, &condition) || condition.Op != 0 {
						f.Errorf("transact: %v", err)
					}
				default:
					f.Errorf("transact: %v", err)
				}
			}
		})
		items, err := table.QueryAll(background(), f.tbl, table.Query{Partition: f.partition, Prefix: "m/"})
		if err != nil || len(items) != limit || done.Load() != limit {
			f.Errorf("%d transactions succeeded, %d messages, %v; want %d", done.Load(), len(items), err, limit)
		}
		f.wantItem("n", table.Attrs{"n": table.Number(limit)}, time.Time{})
	}},
	{"only one of many creates an item", func(f *fixture) {
		for round := range 10 {
			var winner, winners atomic.Int64
			together(func(worker int) {
				_, err := persistWrite(f.tbl, table.Op{Action: table.Put, Key: f.key(fmt.Sprint(round)), Set: table.Attrs{"by": table.Number(int64(worker))},
					Conds: []table.Cond{table.IfAbsent()}})
				switch {
				case err == nil:
					winners.Add(1)
					winner.Store(int64(worker))
				case !errors.Is(err, table.ErrCondition):
					f.Errorf("write: %v", err)
				}
			})
			if winners.Load() != 1 {
				f.Fatalf("%d winners", winners.Load())
			}
			f.wantItem(fmt.Sprint(round), table.Attrs{"by": table.Number(winner.Load())}, time.Time{})
		}
	}},
	{"transactions that race on a version form one history", func(f *fixture) {
		const each = 4
		f.put("head", table.Attrs{"version": table.Number(0)})
		together(func(worker int) {
			for wins := 0; wins < each; {
				it, err := f.tbl.Get(background(), f.key("head"))
				if err != nil {
					f.Errorf("get: %v", err)
					return
				}
				version := it.Attrs["version"].Num()
				err = persistTransact(f.tbl,
					table.Op{Action: table.Update, Key: f.key("head"), Set: table.Attrs{"version": table.Number(version + 1), "by": table.Number(int64(worker))},
						Conds: []table.Cond{table.IfEqual("version", table.Number(version))}},
					// No condition: if two won the same version, one would overwrite
					// the other and a worker would miss a win below.
					table.Op{Action: table.Put, Key: f.key(fmt.Sprintf("log/%06d", version)), Set: table.Attrs{"by": table.Number(int64(worker))}},
				)
				switch {
				case err == nil:
					wins++
				case !errors.Is(err, table.ErrCondition):
					f.Errorf("transact: %v", err)
					return
				}
			}
		})
		log, err := table.QueryAll(background(), f.tbl, table.Query{Partition: f.partition, Prefix: "log/"})
		if err != nil || len(log) != goroutines*each {
			f.Fatalf("%d entries, %v; want %d", len(log), err, goroutines*each)
		}
		wins := map[int64]int{}
		for i, it := range log {
			if it.Key.Sort != fmt.Sprintf("log/%06d", i) {
				f.Fatalf("entry %d is %s", i, describe(it))
			}
			wins[it.Attrs["by"].Num()]++
		}
		for worker := range goroutines {
			if wins[int64(worker)] != each {
				f.Errorf("worker %d has %d entries, want %d", worker, wins[int64(worker)], each)
			}
		}
		f.wantItem("head", table.Attrs{"version": table.Number(goroutines * each), "by": log[len(log)-1].Attrs["by"]}, time.Time{})
	}},
	{"a counter is linearizable", func(f *fixture) {
		const each = 10
		f.put("n", table.Attrs{"n": table.Number(0)})
		var begun, done atomic.Int64
		seen := make([]atomic.Int64, goroutines*each)
		together(func(worker int) {
			last := int64(-1)
			for range each {
				begun.Add(1)
				atLeast := done.Load()
				old, err := persistWrite(f.tbl, table.Op{Action: table.Update, Key: f.key("n"), Add: map[string]int64{"n": 1}})
				if err != nil {
					f.Errorf("write: %v", err)
					return
				}
				done.Add(1)
				n := old.Attrs["n"].Num()
				if n < atLeast || n <= last || n >= begun.Load() {
					f.Errorf("counted from %d; %d were done before, %d begun, my last was %d", n, atLeast, begun.Load(), last)
					return
				}
				last = n
				seen[n].Add(1)

				// A read sees at least what had returned, at most what has begun.
				atLeast = done.Load()
				it, err := f.tbl.Get(background(), f.key("n"))
				if n := it.Attrs["n"].Num(); err != nil || n < atLeast || n > begun.Load() {
					f.Errorf("get: %d, %v; %d were done before, %d begun", n, err, atLeast, begun.Load())
					return
				}
			}
		})
		for n := range seen {
			if seen[n].Load() != 1 {
				f.Errorf("%d writes counted from %d", seen[n].Load(), n)
			}
		}
	}},
	{"each reads what it wrote", func(f *fixture) {
		together(func(worker int) {
			prefix := fmt.Sprintf("w/%02d/", worker)
			for i := range 6 {
				attrs := table.Attrs{"i": table.Number(int64(i))}
				k := f.key(prefix + fmt.Sprint(i))
				var err error
				if i%2 == 0 {
					_, err = persistWrite(f.tbl, table.Op{Action: table.Put, Key: k, Set: attrs})
				} else {
					err = persistTransact(f.tbl, table.Op{Action: table.Put, Key: k, Set: attrs})
				}
				if err != nil {
					f.Errorf("put: %v", err)
					return
				}
				it, err := f.tbl.Get(background(), k)
				if err != nil || it.Attrs["i"].Num() != int64(i) {
					f.Errorf("get after put: %s, %v", describe(it), err)
					return
				}
				p, err := f.tbl.Query(background(), table.Query{Partition: f.partition, Prefix: prefix})
				if err != nil || len(p.Items) != i+1 {
					f.Errorf("query after %d puts: %s, %v", i+1, sorts(p.Items), err)
					return
				}
			}
			k := f.key(prefix + "0")
			if _, err := persistWrite(f.tbl, table.Op{Action: table.Delete, Key: k}); err != nil {
				f.Errorf("delete: %v", err)
			}
			if _, err := f.tbl.Get(background(), k); !errors.Is(err, table.ErrNotFound) {
				f.Errorf("get after delete: %v", err)
			}
		})
	}},
	{"transfers neither make nor lose anything", func(f *fixture) {
		const accounts, start = 5, 20
		account := func(i int) table.Key {
			return table.Key{Partition: f.partition + fmt.Sprint(i%accounts), Sort: "account"}
		}
		for i := range accounts {
			f.write(table.Op{Action: table.Put, Key: account(i), Set: table.Attrs{"credit": table.Number(start), "debt": table.Number(0)}})
		}
		together(func(worker int) {
			for i := range 6 {
				from, to := worker+i, worker+i+1+i%(accounts-1)
				err := persistTransact(f.tbl,
					table.Op{Action: table.Update, Key: account(from), Add: map[string]int64{"credit": -1, "debt": 1}, Conds: []table.Cond{table.IfLess("debt", start)}},
					table.Op{Action: table.Update, Key: account(to), Add: map[string]int64{"credit": 1}},
				)
				if err != nil && !errors.Is(err, table.ErrCondition) {
					f.Errorf("transact: %v", err)
				}
			}
		})
		sum, debts := int64(0), int64(0)
		for i := range accounts {
			it, err := f.tbl.Get(background(), account(i))
			if err != nil {
				f.Fatal(err)
			}
			sum += it.Attrs["credit"].Num()
			debts += it.Attrs["debt"].Num()
			if it.Attrs["debt"].Num() > start {
				f.Errorf("account overdrawn: %s", describe(it))
			}
		}
		if sum != accounts*start || debts != accounts*start {
			f.Errorf("sum of credits %d, of debts %d; want %d both", sum, debts, accounts*start)
		}
	}},
}
