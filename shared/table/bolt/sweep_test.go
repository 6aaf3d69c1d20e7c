package bolt

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"go.etcd.io/bbolt"

	"blindpost/shared/table"
)

// stored counts the items in the file, expired or not.
func stored(t *testing.T, tbl *Table) int {
	t.Helper()
	n := 0
	err := tbl.db.View(func(tx *bbolt.Tx) error {
		return tx.Bucket(bucketItems).ForEach(func(_, _ []byte) error { n++; return nil })
	})
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func TestSweep(t *testing.T) {
	now := time.Date(2040, 1, 1, 0, 0, 0, 0, time.UTC)
	tbl := temporary(t, Options{Now: func() time.Time { return now }})
	at := func(i, seconds int) table.Op {
		op := put(i)
		op.Expires = now.Add(time.Duration(seconds) * time.Second)
		return op
	}
	for i := range 50 {
		mustWrite(t, tbl, at(i, 50-i)) // 49 expires first
	}
	mustWrite(t, tbl, put(50))
	// Item 45 was to expire in 5 s. It is moved away, 46 is kept forever, 47 is
	// replaced, 48 deleted; 44 comes sooner.
	mustWrite(t, tbl, table.Op{Action: table.Update, Key: key(45), Expires: now.Add(time.Hour)})
	mustWrite(t, tbl, table.Op{Action: table.Update, Key: key(46), KeepForever: true})
	mustWrite(t, tbl, put(47))
	mustWrite(t, tbl, table.Op{Action: table.Delete, Key: key(48)})
	mustWrite(t, tbl, at(44, 1))
	verify(t, tbl)
	if n := stored(t, tbl); n != 50 {
		t.Fatalf("%d items", n)
	}

	sweep := func(now time.Time, limit, want, left int) {
		t.Helper()
		n, err := tbl.Sweep(ctx, now, limit)
		if err != nil || n != want {
			t.Fatalf("swept %d, %v; want %d", n, err, want)
		}
		if n := stored(t, tbl); n != left {
			t.Fatalf("%d items left, want %d", n, left)
		}
		verify(t, tbl)
	}
	start := now
	sweep(now.Add(time.Hour), 10, 0, 50) // the table's clock has not come there
	now = start.Add(5*time.Second - 1)
	for _, i := range []int{44, 49} { // absent, whether swept or not
		if _, err := tbl.Get(ctx, key(i)); !errors.Is(err, table.ErrNotFound) {
			t.Errorf("item %d: %v", i, err)
		}
	}
	sweep(start, 10, 0, 50) // nor has the given one
	sweep(now, 10, 2, 48)   // 44 and 49
	now = start.Add(10 * time.Second)
	before := tbl.commits.Load()
	sweep(now, 2, 4, 44) // 40 to 43, two at a time
	if n := tbl.commits.Load() - before; n != 2 {
		t.Errorf("%d commits, want 2", n)
	}
	now = start.Add(2 * time.Hour)
	sweep(now, 0, 41, 3)
	wantKeys(t, tbl, 46, 47, 50)

	if _, err := tbl.Get(ctx, key(46)); err != nil {
		t.Error(err)
	}
	ended, cancel := context.WithCancel(ctx)
	cancel()
	if _, err := tbl.Sweep(ended, now, 1); !errors.Is(err, context.Canceled) {
		t.Errorf("with an ended context: %v", err)
	}
}

// A sweep in the same batch as the write that saves an item comes after it.
func TestSweepSeesTheBatch(t *testing.T) {
	story(t, func(t *testing.T, tbl *Table, g gate, later func(func() error) *outcome) {
		op := put(0)
		op.Expires = time.Now().Add(time.Minute)
		expiring := later(func() error { _, err := tbl.Write(ctx, op); return err })
		g <- nil
		g <- nil
		synctest.Wait()
		expiring.want(t, nil)
		time.Sleep(time.Minute)

		blocker := later(func() error { _, err := tbl.Write(ctx, put(9)); return err })
		revived := later(func() error { _, err := tbl.Write(ctx, put(0)); return err })
		swept := later(func() error {
			n, err := tbl.Sweep(ctx, time.Now(), 10)
			if n != 0 {
				t.Errorf("swept %d", n)
			}
			return err
		})
		g <- nil
		g <- nil
		synctest.Wait()
		blocker.want(t, nil)
		revived.want(t, nil)
		swept.want(t, nil)
		wantKeys(t, tbl, 0, 9)
	})
}

// An entry of the index that is not true, which only a bug could leave, costs
// no item and does not stay.
func TestSweepDistrustsTheIndex(t *testing.T) {
	tbl := temporary(t, Options{})
	mustWrite(t, tbl, put(1))
	past := time.Unix(1, 0)
	err := tbl.db.Update(func(tx *bbolt.Tx) error {
		index := tx.Bucket(bucketExpiry)
		return errors.Join(
			index.Put(appendExpiryKey(nil, past, appendStorageKey(nil, key(1))), nil),
			index.Put(appendExpiryKey(nil, past, appendStorageKey(nil, key(2))), nil),
			index.Put([]byte{0}, nil),
		)
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tbl.Sweep(ctx, time.Now(), 10); err != nil {
		t.Fatal(err)
	}
	wantKeys(t, tbl, 1)
	verify(t, tbl)
}
