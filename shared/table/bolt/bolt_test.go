package bolt

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.etcd.io/bbolt"
	"go.uber.org/goleak"

	"blindpost/shared/proof/tabletest"
	"blindpost/shared/table"
)

func TestMain(m *testing.M) {
	if runChild() {
		return
	}
	goleak.VerifyTestMain(m)
}

var ctx = context.Background()

func openWith(t testing.TB, path string, o Options) *Table {
	t.Helper()
	tbl, err := Open(path, o)
	if err != nil {
		t.Fatal(err)
	}
	if tbl.cache != nil {
		tbl.cache.admit = 1 // everything that is read
	}
	return tbl
}

// temporary opens a table that is closed at the end of the test.
func temporary(t testing.TB, o Options) *Table {
	t.Helper()
	tbl := openWith(t, filepath.Join(t.TempDir(), "table.db"), o)
	t.Cleanup(func() { closeTable(t, tbl) })
	return tbl
}

func closeTable(t testing.TB, tbl *Table) {
	t.Helper()
	if err := tbl.Close(ctx); err != nil {
		t.Error(err)
	}
}

func key(i int) table.Key { return table.Key{Partition: "p", Sort: fmt.Sprintf("s%04d", i)} }

func put(i int) table.Op {
	return table.Op{Action: table.Put, Key: key(i), Set: table.Attrs{"i": table.Number(int64(i))}}
}

func mustWrite(t testing.TB, tbl *Table, op table.Op) {
	t.Helper()
	if _, err := tbl.Write(ctx, op); err != nil {
		t.Fatal(err)
	}
}

// verify checks the file: the trees and lists of bbolt, the expiry index
// against the items, the cache against the items.
func verify(t testing.TB, tbl *Table) {
	t.Helper()
	err := tbl.db.View(func(tx *bbolt.Tx) error {
		for err := range tx.Check() {
			t.Errorf("file is inconsistent: %v", err)
		}
		items, expiry := tx.Bucket(bucketItems), tx.Bucket(bucketExpiry)
		want := map[string]bool{}
		err := items.ForEach(func(k, v []byte) error {
			expires, err := table.DecodeExpires(v)
			if !expires.IsZero() {
				want[string(appendExpiryKey(nil, expires, k))] = true
			}
			return err
		})
		if err != nil {
			return err
		}
		err = expiry.ForEach(func(k, _ []byte) error {
			if !want[string(k)] {
				t.Errorf("the expiry index has an entry too many")
			}
			delete(want, string(k))
			return nil
		})
		if len(want) > 0 {
			t.Errorf("the expiry index lacks %d entries", len(want))
		}
		verifyCache(t, tbl.cache, items)
		return err
	})
	if err != nil {
		t.Errorf("failed to verify: %v", err)
	}
}

func verifyCache(t testing.TB, c *cache, items *bbolt.Bucket) {
	t.Helper()
	if c == nil {
		return
	}
	for i := range c.shards {
		s := &c.shards[i]
		s.mu.Lock()
		size := 0
		for k, entry := range s.entries {
			size += len(k) + len(entry.enc) + cacheOverhead
			if entry.blocked {
				t.Error("a key is blocked while nothing is being committed")
			} else if entry.enc != string(items.Get([]byte(k))) {
				t.Error("the cache differs from the file")
			}
		}
		if size != s.size || size > s.max && len(s.entries) > 1 {
			t.Errorf("a shard has %d bytes, counted %d, allowed %d", size, s.size, s.max)
		}
		s.mu.Unlock()
	}
}

func TestConformance(t *testing.T) {
	cases := []struct {
		name   string
		o      Options
		checks int
	}{
		{"cache", Options{}, 100},
		{"small cache", Options{CacheBytes: 64 << 10}, 30},
		{"no cache", Options{CacheBytes: -1}, 30},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			o := c.o
			path := filepath.Join(t.TempDir(), "table.db")
			var last *Table
			t.Cleanup(func() { closeTable(t, last) })
			tabletest.Run(t, func(t *testing.T, now func() time.Time) table.Table {
				o.Now = now
				last = openWith(t, path, o)
				return last
			}, tabletest.Checks(c.checks), tabletest.Reopen(func(t *testing.T, tbl table.Table) table.Table {
				verify(t, last)
				closeTable(t, last)
				last = openWith(t, path, o)
				return last
			}))
			verify(t, last)
		})
	}
}

func TestFileIsPrivate(t *testing.T) {
	tbl := temporary(t, Options{})
	info, err := os.Stat(tbl.db.Path())
	if err != nil {
		t.Fatal(err)
	}
	if runtime.GOOS != "windows" && info.Mode().Perm() != 0o600 {
		t.Errorf("file mode is %v", info.Mode())
	}
}

// Another process holds the lock exactly like another table in this one.
func TestSecondOpenSaysWhy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "table.db")
		first := openWith(t, path, Options{})
		before := time.Now()
		_, err := Open(path, Options{LockTimeout: 5 * time.Second})
		if err == nil || !strings.Contains(err.Error(), "another process is using it") || !strings.Contains(err.Error(), path) {
			t.Errorf("error %v", err)
		}
		if waited := time.Since(before); waited < 4*time.Second || waited > 6*time.Second {
			t.Errorf("waited %v", waited)
		}
		closeTable(t, first)
		closeTable(t, openWith(t, path, Options{}))
	})
}

func TestOpenRefusesOtherFiles(t *testing.T) {
	dir := t.TempDir()
	garbage := filepath.Join(dir, "garbage")
	if err := os.WriteFile(garbage, []byte(strings.Repeat("no table ", 10_000)), 0o600); err != nil {
		t.Fatal(err)
	}
	newer := filepath.Join(dir, "newer")
	closeTable(t, openWith(t, newer, Options{}))
	db, err := bbolt.Open(newer, 0o600, nil)
	if err != nil {
		t.Fatal(err)
	}
	err = db.Update(func(tx *bbolt.Tx) error { return tx.Bucket(bucketMeta).Put(keyFormat, []byte{format + 1}) })
	if err := errors.Join(err, db.Close()); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{garbage, newer, dir, filepath.Join(dir, "none", "table.db")} {
		if tbl, err := Open(path, Options{}); err == nil {
			closeTable(t, tbl)
			t.Errorf("%s: opened", filepath.Base(path))
		} else if !strings.Contains(err.Error(), "failed to open") {
			t.Errorf("%s: %v", filepath.Base(path), err)
		}
	}
}

// What is corrupt in the file is an error for those who touch it and for nobody
// else.
func TestCorruptItem(t *testing.T) {
	tbl := temporary(t, Options{})
	err := tbl.db.Update(func(tx *bbolt.Tx) error {
		return tx.Bucket(bucketItems).Put(appendStorageKey(nil, key(1)), []byte{1, 0, 9, 9, 9})
	})
	if err != nil {
		t.Fatal(err)
	}
	mustWrite(t, tbl, put(2))
	if _, err := tbl.Get(ctx, key(1)); err == nil || errors.Is(err, table.ErrNotFound) {
		t.Errorf("get: %v", err)
	}
	if _, err := tbl.Query(ctx, table.Query{Partition: "p"}); err == nil {
		t.Error("query: no error")
	}
	if _, err := tbl.Write(ctx, table.Op{Action: table.Update, Key: key(1)}); err == nil {
		t.Error("update: no error")
	}
	if _, err := tbl.Get(ctx, key(2)); err != nil {
		t.Errorf("get of another: %v", err)
	}
	if err := tbl.Transact(ctx, []table.Op{put(1)}); err != nil { // the way out
		t.Errorf("put: %v", err)
	}
	if it, err := tbl.Get(ctx, key(1)); err != nil || it.Attrs["i"].Num() != 1 {
		t.Errorf("get after put: %v", err)
	}
}

func TestInBubble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tbl := openWith(t, filepath.Join(t.TempDir(), "table.db"), Options{})
		op := put(1)
		op.Expires = time.Now().Add(time.Minute)
		mustWrite(t, tbl, op)
		time.Sleep(time.Minute - 1)
		if _, err := tbl.Get(ctx, key(1)); err != nil {
			t.Errorf("before: %v", err)
		}
		time.Sleep(time.Nanosecond)
		if _, err := tbl.Get(ctx, key(1)); !errors.Is(err, table.ErrNotFound) {
			t.Errorf("after: %v", err)
		}
		if n, err := tbl.Sweep(ctx, time.Now(), 10); n != 1 || err != nil {
			t.Errorf("swept %d, %v", n, err)
		}
		closeTable(t, tbl)
		synctest.Wait() // the writer is gone, or the bubble would not end
	})
}
