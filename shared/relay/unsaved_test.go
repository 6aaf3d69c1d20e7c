package relay

import (
	"context"
	"fmt"
	"strconv"
	"testing"
	"time"

	"blindpost/shared/table"
	"blindpost/shared/table/mem"
)

// countedTable counts writes.
type countedTable struct {
	table.Table
	writes int
}

func (c *countedTable) Write(ctx context.Context, op table.Op) (table.Item, error) {
	c.writes++
	return c.Table.Write(ctx, op)
}

// counter is a process of a relay that counts the messages of one connection, whose
// record it reads again for each.
func counter(t *testing.T, tbl table.Table, limit int64, now func() time.Time) (take func() bool, r *Relay) {
	r = &Relay{table: tbl, distributed: true, now: now}
	r.SetLimits(Limits{MessagesPerMinute: limit})
	frames := 0
	return func() bool {
		t.Helper()
		c, err := r.LoadConn(t.Context(), "conn")
		if err != nil {
			t.Fatal(err)
		}
		frames++
		c.frame = fmt.Sprintf("%p %d", r, frames)
		ok, err := r.TakeMessage(t.Context(), c)
		if err != nil {
			t.Fatal(err)
		}
		return ok
	}, r
}

func connTable(t *testing.T, now func() time.Time) *countedTable {
	tbl := &countedTable{Table: mem.New(now)}
	if err := (&Relay{table: tbl}).SaveConn(t.Context(), &Conn{ID: "conn", Dialect: "d", At: now()}); err != nil {
		t.Fatal(err)
	}
	tbl.writes = 0
	return tbl
}

func TestOneProcessCountsExactlyAndWritesSeldom(t *testing.T) {
	for _, limit := range []int64{1, 2, 7, 8, 60, 61} {
		at := time.Date(2026, 1, 2, 3, 4, 5, 678_912_345, time.UTC)
		now := func() time.Time { return at }
		tbl := connTable(t, now)
		take, r := counter(t, tbl, limit, now)
		for minute := range 3 {
			tbl.writes = 0
			for i := range limit {
				if !take() {
					t.Errorf("limit %d, minute %d: message %d is refused", limit, minute, i+1)
				}
			}
			if one, two := take(), take(); one || two {
				t.Errorf("limit %d, minute %d: one more than the limit passes", limit, minute)
			}
			if most := int(limit/saveEvery + limit - limit/2); limit >= batchFrom && tbl.writes > most {
				t.Errorf("limit %d: %d writes, want at most %d", limit, tbl.writes, most)
			}
			at = at.Add(limitWindow)
		}
		if err := r.deleteConn(t.Context(), "conn"); err != nil {
			t.Fatal(err)
		}
		if len(r.unsaved.windows) != 0 {
			t.Errorf("limit %d: something is left of a connection that has ended", limit)
		}
	}
}

// A frame that is no message counts by itself.
func TestWindowsAreApart(t *testing.T) {
	now := func() time.Time { return time.Unix(1000, 0) }
	tbl := connTable(t, now)
	r := &Relay{table: tbl, distributed: true, now: now}
	r.SetLimits(Limits{MessagesPerMinute: 40, ControlPerMinute: 3})
	control := 0
	for i := range 40 {
		c, err := r.LoadConn(t.Context(), "conn")
		if err != nil {
			t.Fatal(err)
		}
		c.frame = strconv.Itoa(i)
		if ok, err := r.TakeMessage(t.Context(), c); err != nil || !ok {
			t.Fatal("a message is refused", err)
		}
		c.frame += "+"
		if ok, err := r.TakeControl(t.Context(), c); err != nil {
			t.Fatal(err)
		} else if ok {
			control++
		}
	}
	if control != 3 {
		t.Errorf("%d other frames pass, want 3", control)
	}
}

func TestProcessesTogetherCountNearly(t *testing.T) {
	now := func() time.Time { return time.Unix(1000, 0) }
	const processes = 4
	for _, c := range []struct{ limit, most int }{
		{60, 60 + (processes-1)*(saveEvery-1)},
		{batchFrom, batchFrom + (processes-1)*(saveEvery-1)},
		{batchFrom - 1, batchFrom - 1}, // exactly
		{5, 5},
	} {
		tbl := connTable(t, now)
		passed := 0
		var takes []func() bool
		for range processes {
			take, _ := counter(t, tbl, int64(c.limit), now)
			takes = append(takes, take)
		}
		for i := range 10 * c.limit {
			if takes[i%processes]() {
				passed++
			}
		}
		if passed < c.limit || passed > c.most {
			t.Errorf("limit %d: %d pass, want at most %d", c.limit, passed, c.most)
		}
	}
}
