package bolt

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"blindpost/shared/table"
)

func TestScan(t *testing.T) {
	now := time.Unix(1_000_000, 0)
	tbl, err := Open(filepath.Join(t.TempDir(), "scan.db"), Options{Now: func() time.Time { return now }})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tbl.Close(context.Background()) }()
	ctx := t.Context()
	put := func(partition, sort string, expires time.Time) {
		t.Helper()
		_, err := tbl.Write(ctx, table.Op{
			Action: table.Put, Key: table.Key{Partition: partition, Sort: sort}, Expires: expires,
			// Large, so that the scan needs several pages.
			Set: table.Attrs{"v": table.String(strings.Repeat("x", 100<<10))},
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	var want []string
	for i := range 40 {
		put(fmt.Sprintf("g/%02d", i), "a", time.Time{})
		put(fmt.Sprintf("g/%02d", i), "b", time.Time{})
		want = append(want, fmt.Sprintf("g/%02d a", i), fmt.Sprintf("g/%02d b", i))
	}
	put("f/0", "before", time.Time{})
	put("h/0", "after", time.Time{})
	put("g/05", "expired", now)

	var got []string
	scan := func() error {
		got = nil
		return tbl.Scan(ctx, "g/", func(it table.Item) error {
			got = append(got, it.Key.Partition+" "+it.Key.Sort)
			if len(it.Attrs["v"].Str()) != 100<<10 {
				t.Error("item without its value")
			}
			return nil
		})
	}
	if err := scan(); err != nil || strings.Join(got, ",") != strings.Join(want, ",") {
		t.Errorf("scan visited %d items, want %d, error %v", len(got), len(want), err)
	}
	stop := errors.New("enough")
	if err := tbl.Scan(ctx, "g/", func(table.Item) error { return stop }); !errors.Is(err, stop) {
		t.Errorf("scan went on after its visitor failed: %v", err)
	}
	if err := tbl.Close(ctx); err != nil {
		t.Fatal(err)
	}
	if err := scan(); !errors.Is(err, ErrClosed) {
		t.Errorf("scan of a closed table: %v", err)
	}
}
