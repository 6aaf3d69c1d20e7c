package relay

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"blindpost/shared/gateway"
	"blindpost/shared/table"
)

const (
	// maxTransient bounds the live frames that wait in the lane of a member that
	// is draining, maxLarge the number of them that are larger than large bytes.
	maxTransient = 64
	maxLarge     = 8
	large        = 64 << 10
	// partSize is how much of a frame one item holds (table.MaxItemSize, less what
	// goes with it); a live frame may take two.
	partSize = 390 << 10
	// transientTTL is when a transient entry expires at the latest. It is only a
	// safety net: the entry is deleted when the connection it is bound to ends. A slow
	// phone may need an hour for a long mailbox.
	transientTTL = 24 * time.Hour

	// transientMark is set in the mark of a transient entry: its confirmation
	// lowers another counter. pairMark is set in the mark of an entry that takes
	// two numbers, its own and the one before.
	transientMark = 1 << 62
	pairMark      = 1 << 61
)

// entry is one frame in a lane.
type entry struct {
	seq    int64
	frame  Frame
	sender string
	// conn is the connection a transient entry is bound to, "" for a stored one,
	// and epoch the epoch of that connection.
	conn  gateway.Conn
	epoch int64
	// live says that the sender is told if the transient entry is dropped.
	live bool
	// pair says that the frame is in two items, of which seq is the second.
	pair bool
}

func (e *entry) mark() uint64 {
	mark := uint64(e.seq)
	if e.conn != "" {
		mark |= transientMark
	}
	if e.pair {
		mark |= pairMark
	}
	return mark
}

// markSeq is the number of the entry that a mark was made from.
func markSeq(mark uint64) int64 { return int64(mark &^ (transientMark | pairMark)) }

func lanePartition(lane string) string { return "l/" + lane }

func laneSort(seq int64) string { return fmt.Sprintf("%016x", seq) }

func laneKey(lane string, seq int64) table.Key {
	return table.Key{Partition: lanePartition(lane), Sort: laneSort(seq)}
}

// putOps makes the operations that write an entry: one, or two for a frame that
// does not fit into one item.
func (e *entry) putOps(lane string, now time.Time, ttl time.Duration) []table.Op {
	if !e.pair {
		return []table.Op{e.putOp(lane, e.seq, e.frame.Data, "", now, ttl)}
	}
	return []table.Op{
		e.putOp(lane, e.seq-1, e.frame.Data[:partSize], entFirst, now, ttl),
		e.putOp(lane, e.seq, e.frame.Data[partSize:], entSecond, now, ttl),
	}
}

func (e *entry) putOp(lane string, seq int64, data []byte, part string, now time.Time, ttl time.Duration) table.Op {
	set := table.Attrs{
		entFrame:  table.Bytes(data),
		entSender: table.String(e.sender),
		entAt:     table.Number(now.UnixMilli()),
	}
	if part != "" {
		set[part] = table.Number(1)
	}
	if e.frame.Text {
		set[entText] = table.Number(1)
	}
	if e.conn != "" {
		set[entConn] = table.String(string(e.conn))
		set[entEpoch] = table.Number(e.epoch)
		ttl = transientTTL
	}
	if e.live {
		set[entLive] = table.Number(1)
	}
	return table.Op{
		Action:  table.Put,
		Key:     laneKey(lane, seq),
		Conds:   []table.Cond{table.IfAbsent()},
		Set:     set,
		Expires: now.Add(ttl),
	}
}

func entryFrom(it table.Item) (*entry, error) {
	seq, err := strconv.ParseInt(it.Key.Sort, 16, 64)
	if err != nil {
		return nil, errors.New("lane holds an entry without a number")
	}
	return &entry{
		seq:    seq,
		frame:  Frame{Data: it.Attrs[entFrame].Raw(), Text: it.Attrs[entText].Num() == 1},
		sender: it.Attrs[entSender].Str(),
		conn:   gateway.Conn(it.Attrs[entConn].Str()),
		epoch:  it.Attrs[entEpoch].Num(),
		live:   it.Attrs[entLive].Num() == 1,
	}, nil
}

// append puts an entry into the lane of m under the next number, on condition
// that lane, tail, connection and fence of m are as they were read.
// table.ErrCondition means: read again. On success e.seq is set.
func (r *Relay) append(ctx context.Context, m *Member, e *entry, sender *Conn) error {
	e.pair = len(e.frame.Data) > partSize
	e.seq = m.tail + 1
	if e.pair {
		e.seq++
	}
	update := m.updateOp(table.Attrs{attrTail: table.Number(e.seq)}, m.ifLane(), m.ifTail(), m.ifConn())
	if m.Conn != "" {
		update.Conds = append(update.Conds, table.IfEqual(attrConnState, table.Number(m.connState)))
	}
	if e.conn != "" {
		update.Add = map[string]int64{attrTransient: 1}
	} else {
		update.Add = map[string]int64{attrStored: 1}
	}
	if sender != nil {
		// On condition that the fence is as it was read: a newer connection of the
		// sender may have raised it since, and it must not fall.
		update.Conds = append(update.Conds, m.ifFence(sender))
		update.Set[fence(sender.lane)] = table.Number(sender.Epoch)
		if sender.frame != "" {
			update.Set[lastFrame(sender.lane)] = table.String(sender.frame)
			update.Set[lastSeq(sender.lane)] = table.Number(e.seq)
		}
	}
	ops := append([]table.Op{update}, e.putOps(m.Lane, r.now(), r.Limits().MessageTTL)...)
	if err := r.table.Transact(ctx, ops); err != nil {
		return fmt.Errorf("failed to append to a lane: %w", err)
	}
	return nil
}

// ifFence holds as long as the fence of a sender is what was read.
func (m *Member) ifFence(sender *Conn) table.Cond {
	name := fence(sender.lane)
	if v, ok := m.attrs[name]; ok {
		return table.IfEqual(name, v)
	}
	return table.IfNone(name)
}

func (m *Member) updateOp(set table.Attrs, conds ...table.Cond) table.Op {
	return table.Op{Action: table.Update, Key: memberKey(m.Group, m.Key), Conds: conds, Set: set}
}

func (m *Member) ifLane() table.Cond { return table.IfEqual(attrLane, table.String(m.Lane)) }

func (m *Member) ifTail() table.Cond {
	if m.tail == 0 {
		return table.IfNone(attrTail)
	}
	return table.IfEqual(attrTail, table.Number(m.tail))
}

func (m *Member) ifConn() table.Cond {
	if m.Conn == "" {
		return table.IfNone(attrConn)
	}
	return table.IfEqual(attrConn, table.String(string(m.Conn)))
}
