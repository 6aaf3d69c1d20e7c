package bolt

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"blindpost/shared/table"
)

// crashWorkers write in the child at the same time, each transaction into three
// partitions: a message, a receipt for it, and a counter of both.
const crashWorkers = 16

func crashOps(worker int, n int64) []table.Op {
	sort := fmt.Sprintf("%08d", n)
	return []table.Op{
		{Action: table.Put, Key: table.Key{Partition: fmt.Sprintf("message/%d", worker), Sort: sort},
			Set: table.Attrs{"b": table.Bytes(make([]byte, 300)), "n": table.Number(n)}, Conds: []table.Cond{table.IfAbsent()}},
		{Action: table.Put, Key: table.Key{Partition: fmt.Sprintf("receipt/%d", worker), Sort: sort}, Conds: []table.Cond{table.IfAbsent()}},
		{Action: table.Update, Key: crashCounter(worker), Set: table.Attrs{"n": table.Number(n + 1)}},
	}
}

func crashCounter(worker int) table.Key {
	return table.Key{Partition: "counter", Sort: fmt.Sprint(worker)}
}

// crashChild writes until it is killed. It goes on where the file ends, and
// prints each transaction after it was acknowledged.
func crashChild(path string) error {
	ctx := context.Background()
	tbl, err := Open(path, Options{})
	if err != nil {
		return err
	}
	var wg sync.WaitGroup
	errs := make(chan error, crashWorkers)
	for worker := range crashWorkers {
		counter, err := tbl.Write(ctx, table.Op{Action: table.Update, Key: crashCounter(worker), Add: map[string]int64{"n": 0}})
		if err != nil {
			return err
		}
		wg.Go(func() {
			for n := counter.Attrs["n"].Num(); ; n++ {
				if err := tbl.Transact(ctx, crashOps(worker, n)); err != nil {
					errs <- err
					return
				}
				// One call, so that a line is printed whole.
				if _, err := fmt.Fprintf(os.Stdout, "%d %d\n", worker, n); err != nil {
					errs <- err
					return
				}
			}
		})
	}
	wg.Wait()
	return <-errs
}

// A process that is killed loses nothing it has acknowledged, and no
// transaction is there in part.
func TestKilled(t *testing.T) {
	path := filepath.Join(t.TempDir(), "table.db")
	acked := make([]int64, crashWorkers) // one beyond the last
	for round := range 6 {
		c := startChild(t, "crash", path)
		for lines := 0; lines < 100+250*round && c.lines.Scan(); lines++ {
			readAck(t, c.lines.Text(), acked)
		}
		if err := c.cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		for c.lines.Scan() { // what it had printed before it died
			readAck(t, c.lines.Text(), acked)
		}
		_ = c.cmd.Wait() // it was killed, of course
		if c.stderr.Len() > 0 {
			t.Fatalf("the child failed: %s", c.stderr.String())
		}

		tbl := openWith(t, path, Options{})
		verify(t, tbl)
		for worker := range crashWorkers {
			verifyCrashed(t, tbl, worker, acked[worker])
		}
		closeTable(t, tbl)
	}
	sum := int64(0)
	for _, n := range acked {
		sum += n
	}
	if sum < 1000 {
		t.Errorf("only %d transactions in all", sum)
	}
}

func readAck(t *testing.T, line string, acked []int64) {
	t.Helper()
	var worker int
	var n int64
	if _, err := fmt.Sscanf(line, "%d %d", &worker, &n); err != nil {
		t.Fatalf("line %q: %v", line, err)
	}
	if n < acked[worker] { // it may jump forward, over what was written and not printed
		t.Fatalf("worker %d acknowledged %d after %d", worker, n, acked[worker]-1)
	}
	acked[worker] = n + 1
}

// verifyCrashed demands that the file has the transactions 0 to some n, with n
// at least what was acknowledged, and all three parts of each.
func verifyCrashed(t *testing.T, tbl *Table, worker int, acked int64) {
	t.Helper()
	it, err := tbl.Get(ctx, crashCounter(worker))
	if err != nil && !errors.Is(err, table.ErrNotFound) {
		t.Fatal(err)
	}
	counted := it.Attrs["n"].Num()
	if counted < acked {
		t.Errorf("worker %d: %d acknowledged, %d in the file", worker, acked, counted)
	}
	for _, kind := range []string{"message", "receipt"} {
		items, err := table.QueryAll(ctx, tbl, table.Query{Partition: fmt.Sprintf("%s/%d", kind, worker)})
		if err != nil {
			t.Fatal(err)
		}
		if int64(len(items)) != counted {
			t.Errorf("worker %d: counter %d, but %d %ss", worker, counted, len(items), kind)
		}
		for i, it := range items {
			if it.Key.Sort != fmt.Sprintf("%08d", i) || (kind == "message" && (it.Attrs["n"].Num() != int64(i) || len(it.Attrs["b"].Raw()) != 300)) {
				t.Fatalf("worker %d: %s %d is not what was written", worker, kind, i)
			}
		}
	}
}
