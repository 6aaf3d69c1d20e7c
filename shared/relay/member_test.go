package relay

import (
	"strings"
	"testing"

	"blindpost/shared/table"
)

// The names of attributes that contain a lane must differ from those of other senders and
// from those of the member itself.
func TestNamesOfSenderAttributes(t *testing.T) {
	own := (&Relay{newID: func() string { return "lane" }, now: fixedTime}).CreateOp("skald/ns", "key", NewMember{
		Generation: "g", Role: "r", State: "s", Token: "t", Platform: 1, Attrs: map[string]table.Value{"a": table.Number(1)},
	}).Set
	for _, name := range []string{attrConn, attrConnState, attrTail, attrStored, attrTransient, attrSeen, attrLeft, attrPrevious} {
		own[name] = table.Number(1)
	}
	seen := map[string]string{}
	for _, lane := range []string{"01JABC.1", "01JABC.2", "a", "x", "n", "conn"} {
		for what, name := range map[string]string{"fence": fence(lane), "frame": lastFrame(lane), "number": lastSeq(lane)} {
			if before, ok := seen[name]; ok {
				t.Errorf("%s of %s has the name of %s", what, lane, before)
			}
			seen[name] = what + " of " + lane
			if _, ok := own[name]; ok || strings.HasPrefix(name, attrDialect) {
				t.Errorf("%s of %s has the name %s of the member's own", what, lane, name)
			}
			if len(name) > table.MaxName {
				t.Errorf("the name %s is too long", name)
			}
		}
	}
}

// A frame that comes again is known by its id and its sender's lane.
func TestAlreadyStored(t *testing.T) {
	m := &Member{attrs: table.Attrs{
		lastFrame("lane-a"): table.String("frame-7"), lastSeq("lane-a"): table.Number(41),
		lastFrame("lane-b"): table.String("frame-8"), lastSeq("lane-b"): table.Number(42),
	}}
	for _, c := range []struct {
		name        string
		lane, frame string
		want        int64 // 0: not stored
	}{
		{"the last frame of its sender", "lane-a", "frame-7", 41},
		{"another frame of this sender", "lane-a", "frame-9", 0},
		{"the last frame of another sender", "lane-a", "frame-8", 0},
		{"a sender that has sent nothing yet", "lane-c", "frame-7", 0},
		{"a front that never delivers twice", "lane-a", "", 0},
		{"the same, and nothing stored", "lane-c", "", 0},
	} {
		l := &Letter{Sender: &Conn{Member: "sender", lane: c.lane, frame: c.frame}, Frame: Frame{Data: []byte("x"), Text: true}}
		e := m.alreadyStored(l)
		switch {
		case c.want == 0 && e != nil:
			t.Errorf("%s: taken for number %d", c.name, e.seq)
		case c.want != 0 && (e == nil || e.seq != c.want || e.conn != "" || e.sender != "sender" || string(e.frame.Data) != "x" || !e.frame.Text):
			t.Errorf("%s: got %+v, want number %d", c.name, e, c.want)
		}
	}
}

// Numbers of a lane sort as strings, and a mark tells both kinds apart.
func TestLaneNumbers(t *testing.T) {
	numbers := []int64{1, 2, 9, 10, 15, 16, 255, 256, 1 << 31, 1 << 40, 1<<61 - 1}
	for i, n := range numbers {
		e := &entry{seq: n, sender: "s"}
		op := e.putOps("lane", fixedTime(), 0)[0]
		back, err := entryFrom(table.Item{Key: op.Key, Attrs: op.Set})
		if err != nil || back.seq != n || back.mark() != uint64(n) {
			t.Errorf("number %d comes back as %+v, %v", n, back, err)
		}
		if i > 0 && laneSort(numbers[i-1]) >= laneSort(n) {
			t.Errorf("%d does not sort before %d", numbers[i-1], n)
		}
		bound := &entry{seq: n, conn: "c", epoch: 3, live: true}
		op = bound.putOps("lane", fixedTime(), 0)[0]
		back, err = entryFrom(table.Item{Key: op.Key, Attrs: op.Set})
		if err != nil || back.conn != "c" || back.epoch != 3 || !back.live || back.mark() == uint64(n) || markSeq(back.mark()) != n {
			t.Errorf("transient number %d comes back as %+v, %v", n, back, err)
		}
	}
	if _, err := entryFrom(table.Item{Key: table.Key{Partition: "l/lane", Sort: "not a number"}}); err == nil {
		t.Error("an entry without a number is taken")
	}
}
