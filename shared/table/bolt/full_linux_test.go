package bolt

import (
	"context"
	"errors"
	"fmt"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"blindpost/shared/table"
)

func init() { roles["full"] = fullChild }

// A file that the system refuses to let grow, or to write beyond a place, is
// what a full disk looks like from inside.
func TestDiskFull(t *testing.T) {
	path := filepath.Join(t.TempDir(), "table.db")
	c := startChild(t, "full", path)
	for c.lines.Scan() {
		t.Log(c.lines.Text())
	}
	if err := c.cmd.Wait(); err != nil {
		t.Fatalf("%v: %s", err, c.stderr.String())
	}
	tbl := openWith(t, path, Options{})
	verify(t, tbl)
	closeTable(t, tbl)
}

// fullChild writes until the limit is reached, again and again, and each time
// compares the file with what was acknowledged.
func fullChild(path string) error {
	signal.Ignore(syscall.SIGXFSZ)
	ctx := context.Background()
	tbl, err := Open(path, Options{})
	if err != nil {
		return err
	}
	want := 0
	// In turn less than the file has by then, so that single pages cannot be
	// written, and more, so that it cannot grow.
	for round, size := range []int64{128 << 10, 20 << 20, 256 << 10, 36 << 20, 512 << 10, 52 << 20} {
		if err := limitFiles(size); err != nil {
			return err
		}
		failures := 0
		for failures < 3 {
			// Two items of 50 KB, both or none.
			err := tbl.Transact(ctx, []table.Op{fullPut("a", want), fullPut("b", want)})
			switch {
			case err == nil:
				want++
			case strings.Contains(err.Error(), syscall.EFBIG.Error()): // bbolt does not wrap it everywhere
				failures++
			default:
				return fmt.Errorf("another error than that of the system: %w", err)
			}
			if want > 2000 {
				return errors.New("the limit was never reached")
			}
		}
		if err := fullCompare(ctx, tbl, want); err != nil {
			return fmt.Errorf("round %d, while full: %w", round, err)
		}
		fmt.Printf("round %d: full after %d\n", round, want)
		if err := limitFiles(-1); err != nil {
			return err
		}
		for range 10 {
			if err := tbl.Transact(ctx, []table.Op{fullPut("a", want), fullPut("b", want)}); err != nil {
				return fmt.Errorf("round %d, with space again: %w", round, err)
			}
			want++
		}
		if err := fullCompare(ctx, tbl, want); err != nil {
			return fmt.Errorf("round %d, with space again: %w", round, err)
		}
	}
	if err := tbl.Close(ctx); err != nil {
		return err
	}
	if tbl, err = Open(path, Options{}); err != nil {
		return err
	}
	if err := fullCompare(ctx, tbl, want); err != nil {
		return fmt.Errorf("opened again: %w", err)
	}
	return tbl.Close(ctx)
}

func fullPut(partition string, i int) table.Op {
	return table.Op{Action: table.Put, Key: table.Key{Partition: partition, Sort: fmt.Sprintf("%06d", i)},
		Set: table.Attrs{"b": table.Bytes(make([]byte, 50<<10)), "i": table.Number(int64(i))}}
}

// fullCompare demands the items 0 to n-1 in both partitions.
func fullCompare(ctx context.Context, tbl *Table, n int) error {
	for _, partition := range []string{"a", "b"} {
		items, err := table.QueryAll(ctx, tbl, table.Query{Partition: partition})
		if err != nil {
			return err
		}
		if len(items) != n {
			return fmt.Errorf("%d items, want %d", len(items), n)
		}
		for i, it := range items {
			if it.Attrs["i"].Num() != int64(i) || len(it.Attrs["b"].Raw()) != 50<<10 {
				return fmt.Errorf("item %d is not what was written", i)
			}
		}
	}
	return nil
}

// limitFiles limits how large a file this process may write; -1 lifts the
// limit.
func limitFiles(size int64) error {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_FSIZE, &limit); err != nil {
		return err
	}
	limit.Cur = limit.Max
	if size >= 0 {
		limit.Cur = uint64(size)
	}
	return syscall.Setrlimit(syscall.RLIMIT_FSIZE, &limit)
}
