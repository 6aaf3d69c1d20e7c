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
	// is draining, maxLarge those of them that are larger than large bytes.
	maxTransient = 64
	maxLarge     = 8
	large        = 64 << 10
	// partSize is how much of a frame one item holds (table.MaxItemSize, less what
	// goes with it); a live frame may take two.
	partSize = 390 << 10
	// transientTTL is when a transient entry is forgotten at the latest. It is only
	// a safety net: the end of the connection it is bound to takes it out, and a
	// long mailbox may take a slow phone an hour.
	transientTTL = 24 * time.Hour

	// transientMark is set in the mark of a transient entry, so that its
	// confirmation knows which counter to take it off; pairMark in that of an
	// entry that takes two numbers, its own and the one before.
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
	// live says that the sender wants to hear if a transient entry is dropped.
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

// markSeq is the number of the entry with a mark.
func markSeq(mark uint64) int64 { return int64(mark &^ (transientMark | pairMark)) }

func lanePartition(lane string) string { return "l/" + lane }

func laneSort(seq int64) string { return fmt.Sprintf("%016x", seq) }

func laneKey(lane string, seq int64) table.Key {
	return table.Key{Partition: lanePartition(lane), Sort: laneSort(seq)}
}

// Attributes of an item that holds a part of a frame.
const (
	partFirst  = "p1"
	partSecond = "p2"
)

// putOps makes the operations that write an entry: one, or two for a frame that
// does not fit into one item.
func (e *entry) putOps(lane string, now time.Time, ttl time.Duration) []table.Op {
	if !e.pair {
		return []table.Op{e.putOp(lane, e.seq, e.frame.Data, "", now, ttl)}
	}
	return []table.Op{
		e.putOp(lane, e.seq-1, e.frame.Data[:partSize], partFirst, now, ttl),
		e.putOp(lane, e.seq, e.frame.Data[partSize:], partSecond, now, ttl),
	}
}

func (e *entry) putOp(lane string, seq int64, data []byte, part string, now time.Time, ttl time.Duration) table.Op {
	set := table.Attrs{
		"f":  table.Bytes(data),
		"s":  table.String(e.sender),
		"at": table.Number(now.UnixMilli()),
	}
	if part != "" {
		set[part] = table.Number(1)
	}
	if e.frame.Text {
		set["t"] = table.Number(1)
	}
	if e.conn != "" {
		set["c"] = table.String(string(e.conn))
		set["e"] = table.Number(e.epoch)
		ttl = transientTTL
	}
	if e.live {
		set["l"] = table.Number(1)
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
		frame:  Frame{Data: it.Attrs["f"].Raw(), Text: it.Attrs["t"].Num() == 1},
		sender: it.Attrs["s"].Str(),
		conn:   gateway.Conn(it.Attrs["c"].Str()),
		epoch:  it.Attrs["e"].Num(),
		live:   it.Attrs["l"].Num() == 1,
	}, nil
}

// append puts an entry into the lane of m under the next number, on condition
// that nothing about m has changed since it was read that matters here.
// table.ErrCondition means: read again. On success e.seq is set.
func (r *Relay) append(ctx context.Context, m *Member, e *entry, sender *Conn) error {
	e.pair = len(e.frame.Data) > partSize
	e.seq = m.tail + 1
	if e.pair {
		e.seq++
	}
	update := table.Op{
		Action: table.Update,
		Key:    memberKey(m.Group, m.Key),
		Conds: []table.Cond{
			table.IfEqual("lane", table.String(m.Lane)),
			m.ifTail(), m.ifConn(),
		},
		Set: table.Attrs{"tail": table.Number(e.seq)},
	}
	if m.Conn != "" {
		update.Conds = append(update.Conds, table.IfEqual("cs", table.Number(m.connState)))
	}
	if e.conn != "" {
		update.Add = map[string]int64{"tn": 1}
	} else {
		update.Add = map[string]int64{"n": 1}
	}
	if sender != nil {
		// As it was read: a newer connection of the sender may have raised it
		// since, and it must not go back.
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

func (m *Member) ifTail() table.Cond {
	if m.tail == 0 {
		return table.IfNone("tail")
	}
	return table.IfEqual("tail", table.Number(m.tail))
}

func (m *Member) ifConn() table.Cond {
	if m.Conn == "" {
		return table.IfNone("conn")
	}
	return table.IfEqual("conn", table.String(string(m.Conn)))
}
