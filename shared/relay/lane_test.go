package relay

import (
	"bytes"
	"context"
	"fmt"
	"testing"
	"time"

	"blindpost/shared/gateway"
	"blindpost/shared/table"
	"blindpost/shared/table/mem"
)

// TestLaneOfLargeFrames puts frames of all sizes into the lane of a member that is
// draining and reads them back, in pages that end anywhere.
func TestLaneOfLargeFrames(t *testing.T) {
	ctx := t.Context()
	tbl := mem.New(time.Now)
	ids := 0
	r := New(Options{
		Table: tbl, Now: time.Now, Random: bytes.NewReader(make([]byte, 64)),
		NewID:  func() string { ids++; return fmt.Sprint("id", ids) },
		Limits: Limits{MessageTTL: time.Hour},
	})
	group, key, conn := "test/g", "m", gateway.Conn("c1")
	create := r.CreateOp(group, key, NewMember{Generation: "1"})
	create.Set[attrConn], create.Set[attrConnState] = table.String(string(conn)), table.Number(connDraining)
	if _, err := tbl.Write(ctx, create); err != nil {
		t.Fatal(err)
	}
	member := func() *Member {
		m, err := r.GetMember(ctx, group, key)
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	var want [][]byte
	for i, size := range []int{10, partSize, partSize + 1, 512 << 10, 5, 2 * partSize, 7} {
		data := bytes.Repeat([]byte{byte(i + 1)}, size)
		want = append(want, data)
		if err := r.append(ctx, member(), &entry{frame: Frame{Data: data}, conn: conn, epoch: 1, live: true}, nil); err != nil {
			t.Fatal(err)
		}
	}
	lane := member().Lane
	for limit := 1; limit <= 12; limit++ {
		var got []*entry
		for after := int64(0); ; {
			page, err := r.readLane(ctx, lane, after, limit)
			if err != nil {
				t.Fatal(err)
			}
			if len(page) == 0 {
				break
			}
			got = append(got, page...)
			after = page[len(page)-1].seq
		}
		if len(got) != len(want) {
			t.Fatalf("pages of %d: read %d frames, want %d", limit, len(got), len(want))
		}
		for i, e := range got {
			if !bytes.Equal(e.frame.Data, want[i]) {
				t.Errorf("pages of %d: frame %d is not what was put in", limit, i)
			}
		}
	}
	if n := member().transient; n != int64(len(want)) {
		t.Errorf("the counter says %d, want %d", n, len(want))
	}
	all, err := r.readAll(ctx, lane)
	if err != nil {
		t.Fatal(err)
	}
	var marks []uint64
	for _, e := range all {
		marks = append(marks, e.mark())
	}
	for range 2 { // the second time there is nothing left to confirm
		if err := r.confirm(context.WithoutCancel(ctx), group, key, lane, marks); err != nil {
			t.Fatal(err)
		}
	}
	if left, err := table.QueryAll(ctx, tbl, table.Query{Partition: lanePartition(lane)}); err != nil || len(left) != 0 {
		t.Errorf("%d items are left in the lane, error %v", len(left), err)
	}
	if n := member().transient; n != 0 {
		t.Errorf("the counter says %d after all was confirmed", n)
	}
}
