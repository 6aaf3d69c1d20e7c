package bolt

import (
	"errors"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"go.etcd.io/bbolt"

	"blindpost/shared/table"
)

var errDisk = errors.New("input/output error")

// halfway has the first commit fail in its last step, when it is there already,
// and the next ones, up to count, before they have begun.
func halfway(tbl *Table, count int) {
	commits := 0
	tbl.commit = func(tx *bbolt.Tx) error {
		commits++
		switch {
		case commits == 1:
			return errors.Join(tx.Commit(), errDisk)
		case commits <= count:
			return errDisk
		default:
			return tx.Commit()
		}
	}
}

func TestCommitFailsInItsLastStep(t *testing.T) {
	for _, c := range []struct {
		name  string
		fails int
		takes time.Duration
	}{
		{"and the next commit confirms it", 1, 0},
		{"and the disk answers after a while", 31, 30 * confirmEvery},
		{"and the disk answers at the last moment", 101, confirmFor},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				tbl := openWith(t, filepath.Join(t.TempDir(), "table.db"), Options{})
				halfway(tbl, c.fails)
				began := time.Now()
				if _, err := tbl.Write(ctx, put(1)); err != nil {
					t.Fatalf("a write that is there is answered with %v", err)
				}
				if took := time.Since(began); took != c.takes {
					t.Errorf("answered after %v, want %v", took, c.takes)
				}
				wantKeys(t, tbl, 1)
				if _, err := tbl.Write(ctx, put(2)); err != nil {
					t.Fatal(err)
				}
				wantKeys(t, tbl, 1, 2)
				verify(t, tbl)
				closeTable(t, tbl)
			})
		})
	}
}

// When it is uncertain whether a commit will be there after a loss of power, no
// write may build on it.
func TestCommitThatIsNeverConfirmed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "table.db")
		tbl := openWith(t, path, Options{})
		halfway(tbl, 102)
		if _, err := tbl.Write(ctx, put(1)); !errors.Is(err, ErrBroken) || !errors.Is(err, errDisk) {
			t.Fatalf("answered with %v", err)
		}
		select {
		case <-tbl.Failed():
		default:
			t.Error("the owner is not told")
		}
		if _, err := tbl.Write(ctx, put(2)); !errors.Is(err, ErrBroken) {
			t.Errorf("a later write is answered with %v", err)
		}
		if err := tbl.Transact(ctx, []table.Op{put(3), put(4)}); !errors.Is(err, ErrBroken) {
			t.Errorf("a later transaction is answered with %v", err)
		}
		closeTable(t, tbl)
		tbl = openWith(t, path, Options{})
		wantKeys(t, tbl, 1)
		verify(t, tbl)
		closeTable(t, tbl)
	})
}

// A commit that fails before its last step is not there and costs no waiting.
func TestCommitFailsEarly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tbl := openWith(t, filepath.Join(t.TempDir(), "table.db"), Options{})
		fail := true
		tbl.commit = func(tx *bbolt.Tx) error {
			if fail {
				return errDisk
			}
			return tx.Commit()
		}
		began := time.Now()
		if _, err := tbl.Write(ctx, put(1)); !errors.Is(err, errDisk) || errors.Is(err, ErrBroken) {
			t.Errorf("answered with %v", err)
		}
		if time.Since(began) != 0 {
			t.Error("it was waited for")
		}
		fail = false
		wantKeys(t, tbl)
		if _, err := tbl.Write(ctx, put(2)); err != nil {
			t.Error(err)
		}
		wantKeys(t, tbl, 2)
		closeTable(t, tbl)
	})
}
