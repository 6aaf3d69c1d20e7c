package bolt

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.etcd.io/bbolt"

	"blindpost/shared/table"
)

// gate holds up commits: each waits for one permission. With an error in it the
// commit fails.
type gate chan error

func (g gate) install(tbl *Table) {
	tbl.commit = func(tx *bbolt.Tx) error {
		if err := <-g; err != nil {
			return err
		}
		return tx.Commit()
	}
}

// story runs in a bubble with a table whose commits wait at a gate. Its first
// write is under way when it begins, so that what it asks for is gathered.
func story(t *testing.T, tell func(t *testing.T, tbl *Table, g gate, later func(func() error) *outcome)) {
	synctest.Test(t, func(t *testing.T) {
		tbl := openWith(t, filepath.Join(t.TempDir(), "table.db"), Options{})
		g := make(gate)
		g.install(tbl)
		later := func(do func() error) *outcome {
			o := &outcome{}
			go func() {
				err := do()
				o.mu.Lock()
				defer o.mu.Unlock()
				o.done, o.err = true, err
			}()
			synctest.Wait() // until it is queued
			return o
		}
		first := later(func() error { return tbl.Transact(ctx, []table.Op{put(0)}) })
		first.wantOpen(t)
		tell(t, tbl, g, later)
		synctest.Wait()
		tbl.mu.Lock()
		closed := tbl.closed
		tbl.mu.Unlock()
		if !closed {
			verify(t, tbl)
			closeTable(t, tbl)
		}
	})
}

// outcome is the answer to a call in another goroutine.
type outcome struct {
	mu   sync.Mutex
	done bool
	err  error
}

func (o *outcome) wantOpen(t *testing.T) {
	t.Helper()
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.done {
		t.Fatalf("already answered: %v", o.err)
	}
}

func (o *outcome) want(t *testing.T, err error) {
	t.Helper()
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.done {
		t.Fatal("not answered")
	}
	if !errors.Is(o.err, err) {
		t.Fatalf("error %v, want %v", o.err, err)
	}
}

func wantKeys(t *testing.T, tbl *Table, want ...int) {
	t.Helper()
	items, err := table.QueryAll(ctx, tbl, table.Query{Partition: "p"})
	if err != nil {
		t.Fatal(err)
	}
	got := []int{}
	for _, it := range items {
		got = append(got, int(it.Attrs["i"].Num()))
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Fatalf("items %v, want %v", got, want)
	}
}

func TestGroupCommit(t *testing.T) {
	story(t, func(t *testing.T, tbl *Table, g gate, later func(func() error) *outcome) {
		create := put(1)
		create.Conds = []table.Cond{table.IfAbsent()}
		var outcomes []*outcome
		for range 3 { // the first of them wins
			outcomes = append(outcomes, later(func() error { _, err := tbl.Write(ctx, create); return err }))
		}
		raise := later(func() error {
			old, err := tbl.Write(ctx, table.Op{Action: table.Update, Key: key(1), Add: map[string]int64{"i": 1}, Conds: []table.Cond{table.IfEqual("i", table.Number(1))}})
			if old.Attrs["i"].Num() != 1 {
				t.Errorf("the update saw %v", old.Attrs)
			}
			return err
		})
		half := later(func() error {
			return tbl.Transact(ctx, []table.Op{put(3), {Action: table.Check, Key: key(1), Conds: []table.Cond{table.IfEqual("i", table.Number(1))}}})
		})
		whole := later(func() error {
			return tbl.Transact(ctx, []table.Op{put(4), {Action: table.Check, Key: key(1), Conds: []table.Cond{table.IfEqual("i", table.Number(2))}}})
		})

		before := tbl.commits.Load()
		g <- nil // the first write
		synctest.Wait()
		for _, o := range append(outcomes, raise, half, whole) {
			o.wantOpen(t) // no request is answered before the commit, not even a failed one
		}
		wantKeys(t, tbl, 0)
		g <- nil
		synctest.Wait()
		outcomes[0].want(t, nil)
		outcomes[1].want(t, table.ErrCondition)
		outcomes[2].want(t, table.ErrCondition)
		raise.want(t, nil)
		half.want(t, table.ErrCondition)
		whole.want(t, nil)
		wantKeys(t, tbl, 0, 2, 4)
		if n := tbl.commits.Load() - before; n != 2 {
			t.Errorf("%d commits, want 2", n)
		}
	})
}

// Failing needs no trip to the disk.
func TestNothingToCommit(t *testing.T) {
	tbl := temporary(t, Options{})
	mustWrite(t, tbl, put(1))
	before := tbl.commits.Load()
	if _, err := tbl.Write(ctx, table.Op{Action: table.Put, Key: key(1), Conds: []table.Cond{table.IfAbsent()}}); !errors.Is(err, table.ErrCondition) {
		t.Error(err)
	}
	check := table.Op{Action: table.Check, Key: key(1), Conds: []table.Cond{table.IfExists()}}
	if err := tbl.Transact(ctx, []table.Op{check}); err != nil {
		t.Error(err)
	}
	mustWrite(t, tbl, table.Op{Action: table.Delete, Key: key(2)})
	if n := tbl.commits.Load() - before; n != 0 {
		t.Errorf("%d commits", n)
	}
}

func TestBatchIsBounded(t *testing.T) {
	story(t, func(t *testing.T, tbl *Table, g gate, later func(func() error) *outcome) {
		const each = 100
		n := maxBatchWrites/each + 1 // one more than fits
		var outcomes []*outcome
		for i := range n {
			var ops []table.Op
			for j := range each {
				ops = append(ops, put(i*each+j))
			}
			outcomes = append(outcomes, later(func() error { return tbl.Transact(ctx, ops) }))
		}
		g <- nil
		g <- nil
		synctest.Wait()
		outcomes[n-2].want(t, nil)
		outcomes[n-1].wantOpen(t)
		g <- nil
		synctest.Wait()
		outcomes[n-1].want(t, nil)
	})
}

func TestFailedCommit(t *testing.T) {
	story(t, func(t *testing.T, tbl *Table, g gate, later func(func() error) *outcome) {
		g <- nil
		synctest.Wait()
		if it, err := tbl.Get(ctx, key(0)); err != nil || it.Attrs["i"].Num() != 0 { // now it is in the cache
			t.Fatalf("%v, %v", it, err)
		}

		full := errors.New("no space left on device")
		blocker := later(func() error { return tbl.Transact(ctx, []table.Op{put(9)}) })
		a := later(func() error { return tbl.Transact(ctx, []table.Op{put(1), put(2)}) })
		b := later(func() error {
			old, err := tbl.Write(ctx, table.Op{Action: table.Update, Key: key(0), Add: map[string]int64{"i": 5}})
			if old.Attrs != nil {
				t.Error("an old item along with the error")
			}
			return err
		})
		c := later(func() error { _, err := tbl.Sweep(ctx, time.Now(), 10); return err })
		g <- full
		synctest.Wait()
		blocker.want(t, full)
		wantKeys(t, tbl, 0)
		g <- full
		synctest.Wait()
		for _, o := range []*outcome{a, b, c} {
			o.want(t, full)
			if errors.Is(o.err, table.ErrCondition) || errors.Is(o.err, table.ErrBusy) {
				t.Errorf("error %v says more than is known", o.err)
			}
		}
		wantKeys(t, tbl, 0)
		if it, err := tbl.Get(ctx, key(0)); err != nil || it.Attrs["i"].Num() != 0 {
			t.Errorf("%v, %v", it, err)
		}
		verify(t, tbl)

		// There is space again.
		a = later(func() error { return tbl.Transact(ctx, []table.Op{put(1), put(2)}) })
		g <- nil
		synctest.Wait()
		a.want(t, nil)
		wantKeys(t, tbl, 0, 1, 2)
	})
}

func TestCloseFinishesWhatIsQueued(t *testing.T) {
	story(t, func(t *testing.T, tbl *Table, g gate, later func(func() error) *outcome) {
		path := tbl.db.Path()
		a := later(func() error { return tbl.Transact(ctx, []table.Op{put(1)}) })
		closing := later(func() error { return tbl.Close(ctx) })
		again := later(func() error { return tbl.Close(ctx) })
		late := later(func() error { return tbl.Transact(ctx, []table.Op{put(2)}) })
		late.want(t, ErrClosed)
		closing.wantOpen(t)
		g <- nil
		synctest.Wait()
		closing.wantOpen(t)
		g <- nil
		synctest.Wait()
		a.want(t, nil)
		closing.want(t, nil)
		again.want(t, nil)
		wantClosed(t, tbl)

		tbl = openWith(t, path, Options{})
		wantKeys(t, tbl, 0, 1)
		closeTable(t, tbl)
	})
}

func TestCloseOutOfTime(t *testing.T) {
	story(t, func(t *testing.T, tbl *Table, g gate, later func(func() error) *outcome) {
		path := tbl.db.Path()
		a := later(func() error { return tbl.Transact(ctx, []table.Op{put(1)}) })
		closing := later(func() error {
			limited, cancel := context.WithTimeout(ctx, time.Second)
			defer cancel()
			return tbl.Close(limited)
		})
		time.Sleep(2 * time.Second)
		synctest.Wait()
		closing.wantOpen(t) // a commit is under way and cannot be left alone
		g <- nil
		synctest.Wait()
		a.want(t, ErrClosed)
		closing.want(t, context.DeadlineExceeded)
		wantClosed(t, tbl)

		tbl = openWith(t, path, Options{})
		wantKeys(t, tbl, 0)
		closeTable(t, tbl)
	})
}

func wantClosed(t *testing.T, tbl *Table) {
	t.Helper()
	_, get := tbl.Get(ctx, key(0))
	_, query := tbl.Query(ctx, table.Query{Partition: "p"})
	_, write := tbl.Write(ctx, put(1))
	_, sweep := tbl.Sweep(ctx, time.Now(), 1)
	for i, err := range []error{get, query, write, sweep, tbl.Transact(ctx, []table.Op{put(1)})} {
		if !errors.Is(err, ErrClosed) {
			t.Errorf("call %d after close: %v", i, err)
		}
	}
	if err := tbl.Close(ctx); err != nil {
		t.Errorf("another close: %v", err)
	}
}

func TestContextTakesBack(t *testing.T) {
	story(t, func(t *testing.T, tbl *Table, g gate, later func(func() error) *outcome) {
		limited, cancel := context.WithCancel(ctx)
		a := later(func() error { return tbl.Transact(limited, []table.Op{put(1)}) })
		b := later(func() error { return tbl.Transact(ctx, []table.Op{put(2)}) })
		cancel()
		synctest.Wait()
		a.want(t, context.Canceled)
		g <- nil
		synctest.Wait()
		b.wantOpen(t)
		g <- nil
		synctest.Wait()
		b.want(t, nil)
		wantKeys(t, tbl, 0, 2)

		// Once the commit is under way the answer is awaited.
		limited, cancel = context.WithCancel(ctx)
		c := later(func() error { return tbl.Transact(limited, []table.Op{put(3)}) })
		cancel()
		synctest.Wait()
		c.wantOpen(t)
		g <- nil
		synctest.Wait()
		c.want(t, nil)
		wantKeys(t, tbl, 0, 2, 3)

		if err := tbl.Transact(limited, []table.Op{put(4)}); !errors.Is(err, context.Canceled) {
			t.Errorf("with an ended context: %v", err)
		}
		if _, err := tbl.Get(limited, key(0)); !errors.Is(err, context.Canceled) {
			t.Errorf("get with an ended context: %v", err)
		}
	})
}

// Closing while many write: each write is either acknowledged and in the file,
// or refused and not.
func TestCloseAmidWrites(t *testing.T) {
	path := filepath.Join(t.TempDir(), "table.db")
	tbl := openWith(t, path, Options{})
	const workers = 32
	acked := make([]int, workers)
	var started, wg sync.WaitGroup
	started.Add(workers)
	for w := range workers {
		wg.Go(func() {
			for i := 0; ; i++ {
				_, err := tbl.Write(ctx, put(w*1_000_000+i))
				if i == 0 {
					started.Done()
				}
				if err != nil {
					if !errors.Is(err, ErrClosed) {
						t.Errorf("write: %v", err)
					}
					return
				}
				acked[w] = i + 1
			}
		})
	}
	started.Wait()
	closeTable(t, tbl)
	wg.Wait()
	tbl = openWith(t, path, Options{})
	defer closeTable(t, tbl)
	items, err := table.QueryAll(ctx, tbl, table.Query{Partition: "p"})
	if err != nil {
		t.Fatal(err)
	}
	found := make([]int, workers)
	for _, it := range items {
		found[it.Attrs["i"].Num()/1_000_000]++
	}
	if fmt.Sprint(found) != fmt.Sprint(acked) {
		t.Errorf("found %v, acknowledged %v", found, acked)
	}
}
