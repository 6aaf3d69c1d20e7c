package engine

import (
	"context"
	"maps"
	"slices"

	"blindpost/shared/gateway"
	"blindpost/shared/queue"
	"blindpost/shared/table"
)

// Mutation is a deliberate fault. It stands between the relay and its table, its front
// or its queue and makes of a correct relay one that has made a known mistake; it
// needs nothing in the relay itself. A simulation is worth something if it finds it.
type Mutation struct {
	Name string
	// What says which mistake it stands for.
	What string

	Table func(e *Engine, next table.Table) table.Table
	Front func(e *Engine, next gateway.Front) gateway.Front
	Send  func(e *Engine, j queue.Job) bool // false: the job is lost
}

// MutantTable changes what passes on its way to the table. Nil fields change nothing.
type MutantTable struct {
	table.Table
	OnGet   func(ctx context.Context, k table.Key, it table.Item, err error) (table.Item, error)
	OnQuery func(ctx context.Context, q table.Query, p table.Page) table.Page
	// OnWrite reports false for a write that is not done, and reported as done.
	OnWrite    func(ctx context.Context, o table.Op) (table.Op, bool)
	OnTransact func(ctx context.Context, ops []table.Op) []table.Op
}

// Get implements table.Table, as the other methods do.
func (m *MutantTable) Get(ctx context.Context, k table.Key) (table.Item, error) {
	it, err := m.Table.Get(ctx, k)
	if m.OnGet != nil {
		return m.OnGet(ctx, k, it, err)
	}
	return it, err
}

func (m *MutantTable) Query(ctx context.Context, q table.Query) (table.Page, error) {
	p, err := m.Table.Query(ctx, q)
	if m.OnQuery != nil && err == nil {
		return m.OnQuery(ctx, q, p), nil
	}
	return p, err
}

func (m *MutantTable) Write(ctx context.Context, o table.Op) (table.Item, error) {
	if m.OnWrite != nil {
		var done bool
		if o, done = m.OnWrite(ctx, o); !done {
			return table.Item{}, nil
		}
	}
	return m.Table.Write(ctx, o)
}

func (m *MutantTable) Transact(ctx context.Context, ops []table.Op) error {
	if m.OnTransact != nil {
		if ops = m.OnTransact(ctx, ops); len(ops) == 0 {
			return nil
		}
	}
	return m.Table.Transact(ctx, ops)
}

// MutantFront changes what passes on its way to the front.
type MutantFront struct {
	gateway.Front
	OnPost  func(ctx context.Context, c gateway.Conn, m gateway.Message) (gateway.Outcome, error)
	OnClose func(ctx context.Context, c gateway.Conn, code gateway.CloseCode, reason string) error
}

// Post implements gateway.Front, as Close does.
func (m *MutantFront) Post(ctx context.Context, c gateway.Conn, msg gateway.Message) (gateway.Outcome, error) {
	if m.OnPost != nil {
		return m.OnPost(ctx, c, msg)
	}
	return m.Front.Post(ctx, c, msg)
}

func (m *MutantFront) Close(ctx context.Context, c gateway.Conn, code gateway.CloseCode, reason string) error {
	if m.OnClose != nil {
		return m.OnClose(ctx, c, code, reason)
	}
	return m.Front.Close(ctx, c, code, reason)
}

// Without drops the conditions of an operation on some attributes; "" is that on the
// item itself.
func Without(o table.Op, attrs ...string) table.Op {
	o.Conds = slices.DeleteFunc(slices.Clone(o.Conds), func(c table.Cond) bool { return slices.Contains(attrs, c.Attr) })
	return o
}

// With sets an attribute in addition.
func With(o table.Op, name string, v table.Value) table.Op {
	set := maps.Clone(o.Set)
	if set == nil {
		set = table.Attrs{}
	}
	set[name] = v
	o.Set = set
	return o
}
