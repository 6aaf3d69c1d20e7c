package sim

import (
	"context"
	"strings"
	"time"

	"blindpost/shared/gateway"
	"blindpost/shared/queue"
	"blindpost/shared/table"
)

// Mutation is a deliberate fault. Most stand between the relay and its table or
// its front and make of a correct relay one that has made a known mistake; none
// of them needs anything in the relay itself. The simulation is worth something
// if it finds every one of them; see Mutations.
type Mutation struct {
	Name string
	// What says which mistake it stands for.
	What string

	table  func(s *sim, next table.Table) table.Table
	front  func(s *sim, next gateway.Front) gateway.Front
	send   func(s *sim, j queue.Job) bool // false: the job is lost
	behind time.Duration                  // how far the table's clock is behind
	alone  bool                           // handlers of one process share no locks
}

func (m *Mutation) install(s *sim) {
	if m.table != nil {
		s.table = m.table(s, s.table)
	}
	if m.front != nil {
		s.front = m.front(s, s.front)
	}
}

// mutantTable changes what passes on its way to the table. Nil fields change
// nothing.
type mutantTable struct {
	table.Table
	s        *sim
	get      func(ctx context.Context, k table.Key, it table.Item, err error) (table.Item, error)
	query    func(ctx context.Context, q table.Query, p table.Page) table.Page
	write    func(ctx context.Context, o table.Op) (table.Op, bool) // false: not done
	transact func(ctx context.Context, ops []table.Op) []table.Op
	// instead replaces a transaction; it reports false to leave it as it is.
	instead func(ctx context.Context, ops []table.Op) (bool, error)
}

func (m *mutantTable) Get(ctx context.Context, k table.Key) (table.Item, error) {
	it, err := m.Table.Get(ctx, k)
	if m.get != nil {
		return m.get(ctx, k, it, err)
	}
	return it, err
}

func (m *mutantTable) Query(ctx context.Context, q table.Query) (table.Page, error) {
	p, err := m.Table.Query(ctx, q)
	if m.query != nil && err == nil {
		return m.query(ctx, q, p), nil
	}
	return p, err
}

func (m *mutantTable) Write(ctx context.Context, o table.Op) (table.Item, error) {
	if m.write != nil {
		changed, ok := m.write(ctx, o)
		if !ok {
			return table.Item{}, nil
		}
		o = changed
	}
	return m.Table.Write(ctx, o)
}

func (m *mutantTable) Transact(ctx context.Context, ops []table.Op) error {
	if m.instead != nil {
		if done, err := m.instead(ctx, ops); done {
			return err
		}
	}
	if m.transact != nil {
		if ops = m.transact(ctx, ops); len(ops) == 0 {
			return nil
		}
	}
	return m.Table.Transact(ctx, ops)
}

// mutantFront changes what passes on its way to the front.
type mutantFront struct {
	gateway.Front
	post  func(ctx context.Context, c gateway.Conn, m gateway.Message) (gateway.Outcome, error)
	close func(ctx context.Context, c gateway.Conn, code gateway.CloseCode, reason string) error
	gone  func(c gateway.Conn) bool
}

func (m *mutantFront) Post(ctx context.Context, c gateway.Conn, msg gateway.Message) (gateway.Outcome, error) {
	if m.post != nil {
		return m.post(ctx, c, msg)
	}
	return m.Front.Post(ctx, c, msg)
}

func (m *mutantFront) Close(ctx context.Context, c gateway.Conn, code gateway.CloseCode, reason string) error {
	if m.close != nil {
		return m.close(ctx, c, code, reason)
	}
	return m.Front.Close(ctx, c, code, reason)
}

func (m *mutantFront) Gone(c gateway.Conn) bool {
	if m.gone != nil {
		return m.gone(c)
	}
	return m.Front.Gone(c)
}

// What the operations of the core look like.

func isMember(k table.Key) bool { return strings.HasPrefix(k.Sort, memberSort) }

func isLane(k table.Key) bool { return strings.HasPrefix(k.Partition, lanePrefix) }

// isAppend: a frame is put into a lane under the next number.
func isAppend(ops []table.Op) bool {
	return len(ops) == 2 && isMember(ops[0].Key) && ops[0].Set["tail"].Kind() != 0 && isLane(ops[1].Key)
}

// isConfirm: frames leave a lane and the counter goes down.
func isConfirm(ops []table.Op) bool {
	last := ops[len(ops)-1]
	return isMember(last.Key) && len(last.Add) > 0 && isLane(ops[0].Key)
}

// isJoin: a connection becomes that of a member.
func isJoin(o table.Op) bool { return isMember(o.Key) && o.Set["conn"].Kind() != 0 }

// isLeave: a member goes offline.
func isLeave(o table.Op) bool {
	return isMember(o.Key) && o.Action == table.Update && len(o.Remove) > 0 && o.Remove[0] == "conn"
}

// isOpen: a member has been drained.
func isOpen(o table.Op) bool { return isMember(o.Key) && o.Set["cs"].Num() == 2 }

// without drops the conditions on some attributes.
func without(o table.Op, attrs ...string) table.Op {
	var conds []table.Cond
	for _, c := range o.Conds {
		drop := false
		for _, a := range attrs {
			drop = drop || c.Attr == a
		}
		if !drop {
			conds = append(conds, c)
		}
	}
	o.Conds = conds
	return o
}

// with sets an attribute in addition.
func with(o table.Op, name string, v table.Value) table.Op {
	set := make(table.Attrs, len(o.Set)+1)
	for n, old := range o.Set {
		set[n] = old
	}
	set[name] = v
	o.Set = set
	return o
}

// unset leaves an attribute as it is.
func unset(o table.Op, name string) table.Op {
	set := make(table.Attrs, len(o.Set))
	for n, v := range o.Set {
		if n != name {
			set[n] = v
		}
	}
	o.Set = set
	return o
}
