package relay

import (
	"context"
	"fmt"
	"math"
	"strings"
	"time"

	"blindpost/shared/gateway"
	"blindpost/shared/table"
)

// States of a member's connection.
const (
	connDraining = 1 // joined; the lane is being posted, others only append
	connOpen     = 2 // others append and post
)

// Member is the item that decides about delivery to one member of a group.
type Member struct {
	Group string
	Key   string

	// Generation is the life of the group this member belongs to. Members of
	// different generations do not know of each other.
	Generation string
	Role       string
	// State belongs to the dialect (Skald: pending or authorised).
	State string
	// Lane names the mailbox; a new incarnation of a member has a new one.
	Lane string

	// Conn is the current connection, "" when offline.
	Conn  gateway.Conn
	Epoch int64
	// Seen is when the member has left; it counts while the member is offline.
	Seen time.Time

	// Token and Platform are the push endpoint; an empty token means no push.
	Token    string
	Platform int64

	connState int64
	tail      int64 // last number given out in the lane
	stored    int64 // stored frames in the lane
	transient int64 // transient frames in the lane

	attrs table.Attrs
}

// Attr returns an attribute of the dialect.
func (m *Member) Attr(name string) table.Value { return m.attrs[attrDialect+name] }

const memberSort = "m/"

func groupPartition(group string) string { return GroupPrefix + group }

func memberKey(group, key string) table.Key {
	return table.Key{Partition: groupPartition(group), Sort: memberSort + key}
}

// fence names the attribute that holds the highest epoch a sender has spoken
// with. A sender is named by its lane: a new incarnation of it has another lane,
// and its epochs start at one again.
func fence(senderLane string) string { return attrFence + senderLane }

// fenceClosed is a fence above every epoch.
const fenceClosed = math.MaxInt64

// lastFrame and lastSeq name the attributes that hold the last frame a sender
// has put into the lane, and its number there: if a front delivers the frame
// again, it is not stored again. They are written only where a front may do so.
func lastFrame(senderLane string) string { return attrLastFrame + senderLane }
func lastSeq(senderLane string) string   { return attrLastSeq + senderLane }

func memberFrom(group string, it table.Item) *Member {
	a := it.Attrs
	m := &Member{
		Group:      group,
		Key:        strings.TrimPrefix(it.Key.Sort, memberSort),
		Generation: a[AttrGeneration].Str(),
		Role:       a[attrRole].Str(),
		State:      a[attrState].Str(),
		Lane:       a[attrLane].Str(),
		Conn:       gateway.Conn(a[attrConn].Str()),
		Epoch:      a[attrEpoch].Num(),
		Token:      a[attrToken].Str(),
		Platform:   a[attrPlatform].Num(),
		connState:  a[attrConnState].Num(),
		tail:       a[attrTail].Num(),
		stored:     a[attrStored].Num(),
		transient:  a[attrTransient].Num(),
		attrs:      a,
	}
	if v, ok := a[attrSeen]; ok {
		m.Seen = time.UnixMilli(v.Num())
	}
	return m
}

// GetMember reads one member, nil if there is none.
func (r *Relay) GetMember(ctx context.Context, group, key string) (*Member, error) {
	it, ok, err := r.Find(ctx, memberKey(group, key), "a member")
	if err != nil || !ok {
		return nil, err
	}
	return memberFrom(group, it), nil
}

// Self reads the member behind a connection, nil if that member was deleted. One
// that was created again under the same key is another member.
func (r *Relay) Self(ctx context.Context, c *Conn) (*Member, error) {
	m, err := r.GetMember(ctx, c.Group, c.Member)
	if err != nil || m == nil || m.Lane != c.lane {
		return nil, err
	}
	return m, nil
}

func (r *Relay) memberItems(ctx context.Context, group string) ([]table.Item, error) {
	items, err := table.QueryAll(ctx, r.table, table.Query{Partition: groupPartition(group), Prefix: memberSort})
	if err != nil {
		return nil, fmt.Errorf("failed to read the members: %w", err)
	}
	return items, nil
}

// Members reads all members of one generation of a group, in the order of
// their keys.
func (r *Relay) Members(ctx context.Context, group, generation string) ([]*Member, error) {
	items, err := r.memberItems(ctx, group)
	if err != nil {
		return nil, err
	}
	var out []*Member
	for _, it := range items {
		if m := memberFrom(group, it); m.Generation == generation {
			out = append(out, m)
		}
	}
	return out, nil
}

// Online reports whether the member has a connection, as far as this process knows.
func (r *Relay) Online(m *Member) bool {
	return m != nil && m.Conn != "" && !r.front.Gone(m.Conn)
}

// NewMember describes a member that is to be created.
type NewMember struct {
	Generation string
	Role       string
	State      string
	Token      string
	Platform   int64
	// Attrs are attributes of the dialect.
	Attrs map[string]table.Value
}

// CreateOp makes the operation that creates a member without a connection, with
// an empty lane of its own. It replaces an earlier incarnation, unless conds
// forbid that.
func (r *Relay) CreateOp(group, key string, n NewMember, conds ...table.Cond) table.Op {
	set := table.Attrs{
		AttrGeneration: table.String(n.Generation),
		attrRole:       table.String(n.Role),
		attrLane:       table.String(r.newID()),
		attrEpoch:      table.Number(0),
		attrSeen:       table.Number(r.now().UnixMilli()),
	}
	if n.State != "" {
		set[attrState] = table.String(n.State)
	}
	if n.Token != "" {
		set[attrToken] = table.String(n.Token)
	}
	if n.Platform != 0 {
		set[attrPlatform] = table.Number(n.Platform)
	}
	for name, v := range n.Attrs {
		set[attrDialect+name] = v
	}
	return table.Op{Action: table.Put, Key: memberKey(group, key), Conds: conds, Set: set}
}

// IfUnchanged holds as long as the member has neither been recreated nor joined
// again since it was read.
func (m *Member) IfUnchanged() []table.Cond {
	return []table.Cond{
		m.ifLane(),
		table.IfEqual(attrEpoch, table.Number(m.Epoch)),
	}
}

// IfAttr holds as long as an attribute of the dialect has this value.
func IfAttr(name string, v table.Value) table.Cond { return table.IfEqual(attrDialect+name, v) }

// IfNoAttr holds as long as the dialect has set no such attribute.
func IfNoAttr(name string) table.Cond { return table.IfNone(attrDialect + name) }

// IfState holds as long as the dialect's state is this one.
func IfState(state string) table.Cond { return table.IfEqual(attrState, table.String(state)) }

// StillCurrent makes an operation that lets its transaction succeed only while c is
// the current connection of its member. The same operation closes the fences of
// removed senders: their frames under way no longer reach this member.
func StillCurrent(c *Conn, removed ...*Member) table.Op {
	op := table.Op{
		Action: table.Check,
		Key:    memberKey(c.Group, c.Member),
		Conds:  []table.Cond{table.IfEqual(attrConn, table.String(string(c.ID)))},
	}
	for _, m := range removed {
		if op.Action == table.Check {
			op.Action, op.Set = table.Update, table.Attrs{}
		}
		op.Set[fence(m.Lane)] = table.Number(fenceClosed)
		op.Remove = append(op.Remove, lastFrame(m.Lane), lastSeq(m.Lane))
	}
	return op
}

// UpdateOp makes the operation that changes the dialect's part of a member.
func UpdateOp(group, key string, ch MemberChange, conds ...table.Cond) table.Op {
	op := table.Op{Action: table.Update, Key: memberKey(group, key), Conds: conds, Set: table.Attrs{}}
	ch.apply(&op)
	return op
}

// MemberChange is what a dialect may change of a member. Nil fields stay.
type MemberChange struct {
	State    *string
	Token    *string
	Platform *int64
	Attrs    map[string]table.Value
}

func (ch MemberChange) apply(op *table.Op) {
	if ch.State != nil {
		op.Set[attrState] = table.String(*ch.State)
	}
	if ch.Token != nil {
		if *ch.Token == "" {
			op.Remove = append(op.Remove, attrToken)
		} else {
			op.Set[attrToken] = table.String(*ch.Token)
		}
	}
	if ch.Platform != nil {
		op.Set[attrPlatform] = table.Number(*ch.Platform)
	}
	for name, v := range ch.Attrs {
		op.Set[attrDialect+name] = v
	}
}
