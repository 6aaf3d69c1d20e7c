package relay

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"blindpost/shared/queue"
	"blindpost/shared/table"
	"blindpost/shared/table/mem"
)

// jobList keeps jobs.
type jobList []queue.Job

func (l *jobList) Send(_ context.Context, j queue.Job) error { *l = append(*l, j); return nil }

// Of many members, more than fit into one transaction, each with a connection is offline
// afterwards, each with a stored message gets a push where it should, and nothing else
// changes.
func TestRecovery(t *testing.T) {
	const each = 130
	for _, unclean := range []bool{true, false} {
		t.Run(fmt.Sprint("unclean ", unclean), func(t *testing.T) {
			ctx, now := t.Context(), fixedTime()
			clock := func() time.Time { return now }
			jobs, tab := &jobList{}, mem.New(clock)
			r := New(Options{
				Table: tab, Queue: jobs, Log: slog.New(slog.DiscardHandler), Now: clock,
				Random: bytes.NewReader(make([]byte, 64)), NewID: func() string { return "id" },
			})
			attrs := func(conn, token string, stored int64) table.Attrs {
				a := table.Attrs{attrLane: table.String("lane"), AttrGeneration: table.String("g"), attrSeen: table.Number(1), attrTail: table.Number(9)}
				if conn != "" {
					a[attrConn], a[attrConnState] = table.String(conn), table.Number(connOpen)
				}
				if token != "" {
					a[attrToken] = table.String(token)
				}
				if stored > 0 {
					a[attrStored] = table.Number(stored)
				}
				return a
			}
			kinds := map[string]table.Attrs{
				"connected":         attrs("c", "token", 0),
				"connected waiting": attrs("c", "token", 2),
				"asleep waiting":    attrs("", "token", 3),
				"no token waiting":  attrs("", "", 5),
				"asleep":            attrs("", "token", 0),
			}
			for kind, a := range kinds {
				for i := range each {
					key := memberKey("skald/ns", fmt.Sprint(kind, " ", i))
					if _, err := tab.Write(ctx, table.Op{Action: table.Put, Key: key, Set: a}); err != nil {
						t.Fatal(err)
					}
				}
			}
			if _, err := tab.Write(ctx, RootOp("skald/ns", "g", "root")); err != nil {
				t.Fatal(err)
			}
			now = now.Add(time.Hour)
			items, err := table.QueryAll(ctx, tab, table.Query{Partition: groupPartition("skald/ns")})
			if err != nil {
				t.Fatal(err)
			}
			y := r.NewRecovery(unclean)
			for _, it := range items {
				if err := y.Visit(ctx, it); err != nil {
					t.Fatal(err)
				}
			}
			if err := y.Finish(ctx); err != nil {
				t.Fatal(err)
			}

			woken := each // the pointer alone says that something was not confirmed
			if unclean {
				woken = 2 * each
			}
			if y.Stored != (2+3+5)*each || y.Lost != 2*each || y.Woken != woken || len(*jobs) != woken {
				t.Errorf("found %d stored, %d lost, %d woken with %d jobs", y.Stored, y.Lost, y.Woken, len(*jobs))
			}
			for _, j := range *jobs {
				if j.Kind != JobPush || !j.At.IsZero() || !strings.Contains(string(j.Body), "waiting") {
					t.Errorf("asked for %s of %s", j.Kind, j.Body)
				}
			}
			for kind := range kinds {
				for i := range each {
					m, err := r.GetMember(ctx, "skald/ns", fmt.Sprint(kind, " ", i))
					if err != nil || m == nil {
						t.Fatal("a member is gone", err)
					}
					seen := time.UnixMilli(1)
					if strings.HasPrefix(kind, "connected") {
						seen = now
					}
					if m.Conn != "" || m.connState != 0 || !m.Seen.Equal(seen) || m.tail != 9 {
						t.Fatalf("%s is %+v", kind, m)
					}
				}
			}
		})
	}
}

// dropCounter counts the stored frames that were dropped.
type dropCounter struct {
	nopObserver
	stored int
}

func (c *dropCounter) Dropped(class Class, _ string, n int) {
	if class == ClassStored {
		c.stored += n
	}
}

// The process dies after a member was removed and before its mailbox is purged: the frames
// in it are counted at the next start, and taken off that number by the purge.
func TestRecoveryCountsWhatIsStillToBePurged(t *testing.T) {
	ctx, now := t.Context(), fixedTime()
	clock := func() time.Time { return now }
	tab, dropped := mem.New(clock), &dropCounter{}
	r := New(Options{
		Table: tab, Queue: &jobList{}, Log: slog.New(slog.DiscardHandler), Now: clock, Observer: dropped,
		Random: bytes.NewReader(make([]byte, 64)), NewID: func() string { return "id" },
		Limits: Limits{MessageTTL: time.Hour},
	})
	if _, err := tab.Write(ctx, r.CreateOp("skald/ns", "phone", NewMember{Generation: "g"})); err != nil {
		t.Fatal(err)
	}
	member := func() *Member {
		m, err := r.GetMember(ctx, "skald/ns", "phone")
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	for range 3 {
		if err := r.append(ctx, member(), &entry{frame: Frame{Data: []byte("x")}}, nil); err != nil {
			t.Fatal(err)
		}
	}
	recovered := func() int {
		items, err := table.QueryAll(ctx, tab, table.Query{Partition: groupPartition("skald/ns")})
		if err != nil {
			t.Fatal(err)
		}
		y := r.NewRecovery(true)
		for _, it := range items {
			if err := y.Visit(ctx, it); err != nil {
				t.Fatal(err)
			}
		}
		return y.Stored
	}
	if n := recovered(); n != 3 {
		t.Fatalf("%d frames are stored before the removal, want 3", n)
	}
	if err := tab.Transact(ctx, RemoveOps(member(), Removal{})); err != nil {
		t.Fatal(err)
	}
	found := recovered()
	if err := r.FinishRemovals(ctx, "skald/ns"); err != nil {
		t.Fatal(err)
	}
	if found != 3 || found-dropped.stored != 0 || recovered() != 0 {
		t.Errorf("found %d frames to purge, purged %d, and then found %d", found, dropped.stored, recovered())
	}
}
