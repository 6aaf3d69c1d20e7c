package relay

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"blindpost/shared/gateway"
	"blindpost/shared/table"
)

// Register is a table that notes the keys of all writes, so that a test can read all
// items. The contract of a table has no operation for that.
type Register struct {
	mu         sync.Mutex
	inner      table.Table
	partitions map[string]bool
	// Before and After are called around each operation. With an error of Before the
	// operation is not done; an error of After is its answer although it was done.
	Before, After func(Step) error
}

// Step is an operation as a test sees it.
type Step struct {
	Read bool
	Key  table.Key  // of a Get; of a Query the partition and the prefix
	Ops  []table.Op // of a write
}

// Touches reports whether the step reads or writes an item.
func (s Step) Touches(k table.Key) bool {
	return s.Read && s.Key == k || slices.ContainsFunc(s.Ops, func(o table.Op) bool { return o.Key == k })
}

func (g *Register) around(s Step, do func() error) error {
	for _, o := range s.Ops {
		g.note(o.Key)
	}
	if g.Before != nil {
		if err := g.Before(s); err != nil {
			return err
		}
	}
	if err := do(); err != nil {
		return err
	}
	if g.After != nil {
		return g.After(s)
	}
	return nil
}

var _ table.Table = (*Register)(nil)

// NewRegister wraps a table that is empty.
func NewRegister(inner table.Table) *Register {
	return &Register{inner: inner, partitions: map[string]bool{}}
}

// Reset replaces the table by another empty one.
func (g *Register) Reset(inner table.Table) {
	g.inner = inner
	clear(g.partitions)
}

func (g *Register) note(k table.Key) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.partitions[k.Partition] = true
}

func (g *Register) Get(ctx context.Context, k table.Key) (it table.Item, err error) {
	err = g.around(Step{Read: true, Key: k}, func() error {
		it, err = g.inner.Get(ctx, k)
		return err
	})
	return it, err
}

func (g *Register) Query(ctx context.Context, q table.Query) (p table.Page, err error) {
	err = g.around(Step{Read: true, Key: table.Key{Partition: q.Partition, Sort: q.Prefix}}, func() error {
		p, err = g.inner.Query(ctx, q)
		return err
	})
	return p, err
}

func (g *Register) Write(ctx context.Context, op table.Op) (old table.Item, err error) {
	err = g.around(Step{Ops: []table.Op{op}}, func() error {
		old, err = g.inner.Write(ctx, op)
		return err
	})
	return old, err
}

func (g *Register) Transact(ctx context.Context, ops []table.Op) error {
	return g.around(Step{Ops: ops}, func() error { return g.inner.Transact(ctx, ops) })
}

// Everything returns all items whose partition begins with prefix.
func (g *Register) Everything(ctx context.Context, prefix string) ([]table.Item, error) {
	g.mu.Lock()
	var names []string
	for p := range g.partitions {
		if strings.HasPrefix(p, prefix) {
			names = append(names, p)
		}
	}
	g.mu.Unlock()
	slices.Sort(names)
	var all []table.Item
	for _, p := range names {
		items, err := table.QueryAll(ctx, g.inner, table.Query{Partition: p})
		if err != nil {
			return nil, err
		}
		all = append(all, items...)
	}
	return all, nil
}

// CheckInvariants checks that the stored items are consistent, while no handler runs.
// exact says that nothing in a lane has expired yet: the counters include expired entries
// until a recount.
func CheckInvariants(ctx context.Context, g *Register, exact bool) error {
	c := &checker{members: map[string]*Member{}, roots: map[string]table.Item{}, removed: map[string]bool{}, lanes: map[string][]*entry{}}
	if err := c.read(ctx, g); err != nil {
		return err
	}
	for _, m := range c.members {
		c.checkMember(m, exact)
	}
	for lane := range c.lanes {
		if c.members[lane] == nil && !c.removed[lane] {
			c.failf("lane %s with %d entries belongs to no member", lane, len(c.lanes[lane]))
		}
	}
	for _, conn := range c.conns {
		c.checkConn(conn)
	}
	return errors.Join(c.errs...)
}

// checker is all that is stored, in order.
type checker struct {
	members map[string]*Member // by lane
	roots   map[string]table.Item
	removed map[string]bool // lanes of members that are being removed
	lanes   map[string][]*entry
	conns   []*Conn
	errs    []error
}

func (c *checker) failf(format string, args ...any) {
	c.errs = append(c.errs, fmt.Errorf(format, args...))
}

func (c *checker) read(ctx context.Context, g *Register) error {
	items, err := g.Everything(ctx, "")
	if err != nil {
		return err
	}
	for _, it := range items {
		p := it.Key.Partition
		switch {
		case strings.HasPrefix(p, GroupPrefix):
			c.readGroupItem(strings.TrimPrefix(p, GroupPrefix), it)
		case strings.HasPrefix(p, "l/"):
			e, err := entryFrom(it)
			if err != nil {
				return err
			}
			lane := strings.TrimPrefix(p, "l/")
			c.lanes[lane] = append(c.lanes[lane], e)
		case strings.HasPrefix(p, ConnPartition):
			c.conns = append(c.conns, connFrom(gateway.Conn(strings.TrimPrefix(p, ConnPartition)), it))
		case p == duePartition, strings.HasPrefix(p, AddressPartition):
		default:
			c.failf("an item in the unknown partition %q", p)
		}
	}
	return nil
}

func (c *checker) readGroupItem(group string, it table.Item) {
	switch sort := it.Key.Sort; {
	case strings.HasPrefix(sort, memberSort):
		m := memberFrom(group, it)
		if c.members[m.Lane] != nil {
			c.failf("two members have the lane %s", m.Lane)
		}
		c.members[m.Lane] = m
	case it.Key == rootItem(group):
		c.roots[group] = it
	case strings.HasPrefix(sort, "x/"+removalItem):
		c.removed[it.Attrs[attrLane].Str()] = !told(it)
	}
}

func (c *checker) checkMember(m *Member, exact bool) {
	name := ShortGroup(m.Group) + " " + Short(m.Key)
	root := c.roots[m.Group]
	switch {
	case m.Lane == "" || m.Role == "" || m.Generation == "":
		c.failf("%s lacks lane, role or generation", name)
	case root.Attrs[AttrGeneration].Str() != m.Generation:
		c.failf("%s is of a generation that has no root", name)
	case (m.Conn != "") != (m.connState == connDraining || m.connState == connOpen):
		c.failf("%s has connection %q in state %d", name, m.Conn, m.connState)
	}
	var stored, transient int64
	last := int64(0)
	for _, e := range c.lanes[m.Lane] {
		if e.seq <= last || e.seq > m.tail {
			c.failf("%s has number %d after %d, the last that was given out is %d", name, e.seq, last, m.tail)
		}
		last = e.seq
		if e.conn == "" {
			stored++
			continue
		}
		transient++
		switch {
		case e.epoch < 1 || e.epoch > m.Epoch:
			c.failf("%s has an entry of epoch %d in epoch %d", name, e.epoch, m.Epoch)
		case m.connState == connOpen && e.conn != m.Conn:
			c.failf("%s is open and has an entry for a connection of before", name)
		case m.Conn == "":
			c.failf("%s is offline and has an entry for a connection", name)
		}
	}
	if m.stored < stored || m.transient < transient || (exact && (m.stored != stored || m.transient != transient)) {
		c.failf("%s counts %d stored and %d transient entries, there are %d and %d", name, m.stored, m.transient, stored, transient)
	}
	for attr, v := range m.attrs {
		if lane, ok := strings.CutPrefix(attr, attrFence); ok {
			if sender := c.members[lane]; sender != nil && v.Num() > sender.Epoch {
				c.failf("%s has a fence at epoch %d for a sender in epoch %d", name, v.Num(), sender.Epoch)
			}
		}
	}
	if m.Conn != "" && !slices.ContainsFunc(c.conns, func(x *Conn) bool {
		return x.ID == m.Conn && x.Group == m.Group && x.Member == m.Key && x.lane == m.Lane && x.Epoch == m.Epoch
	}) {
		c.failf("%s points to connection %q, whose record knows nothing of it", name, m.Conn)
	}
}

func (c *checker) checkConn(x *Conn) {
	m := c.members[x.lane]
	switch {
	case x.Joined() != (x.Member != "" && x.lane != "" && x.Role != "" && x.Epoch > 0):
		c.failf("connection %s has joined only in part", x.ID)
	case x.pausedAt > x.posted:
		c.failf("connection %s waits for number %d and has posted up to %d", x.ID, x.pausedAt, x.posted)
	case m == nil:
	case x.Epoch > m.Epoch || (x.Epoch == m.Epoch && m.Conn != "" && m.Conn != x.ID):
		c.failf("connection %s has epoch %d, its member %d with %q", x.ID, x.Epoch, m.Epoch, m.Conn)
	case x.posted > m.tail:
		c.failf("connection %s has posted up to %d of %d", x.ID, x.posted, m.tail)
	case m.Conn == x.ID && m.connState == connOpen && x.pausedAt != 0:
		c.failf("connection %s is open and waits for number %d", x.ID, x.pausedAt)
	}
}

func fixedTime() time.Time { return time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC) }
