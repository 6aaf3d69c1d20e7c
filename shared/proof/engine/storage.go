package engine

import (
	"context"
	"time"

	"blindpost/shared/table"
	"blindpost/shared/table/mem"
)

// open puts the steps between the relay and what is below it, after a crash over a new
// memory.
func (e *Engine) open() {
	e.memory = mem.New(time.Now)
	e.table, e.front = table.Table(stepTable{e}), stepFront{e}
	if m := e.mutation; m != nil {
		if m.Table != nil {
			e.table = m.Table(e, e.table)
		}
		if m.Front != nil {
			e.front = m.Front(e, e.front)
		}
	}
}

// base is the table that holds a partition.
func (e *Engine) base(partition string) table.Table {
	if e.isVolatile(partition) {
		return e.memory
	}
	return e.durable
}

// Peek reads an item, past everything; false if there is none.
func (e *Engine) Peek(k table.Key) (table.Item, bool) {
	it, err := e.base(k.Partition).Get(context.Background(), k)
	return it, err == nil
}

// PeekAll reads the items of a partition, past everything.
func (e *Engine) PeekAll(partition, prefix string) []table.Item {
	items, err := table.QueryAll(context.Background(), e.base(partition), table.Query{Partition: partition, Prefix: prefix})
	if err != nil {
		e.Violate("storage", "failed to read %s: %v", partition, err)
	}
	return items
}

// tableOfTask is what a relay gets, so that a mutation can stand in between.
type tableOfTask struct{ e *Engine }

var _ table.Table = tableOfTask{}

func (t tableOfTask) Get(ctx context.Context, k table.Key) (table.Item, error) {
	return t.e.table.Get(ctx, k)
}

func (t tableOfTask) Query(ctx context.Context, q table.Query) (table.Page, error) {
	return t.e.table.Query(ctx, q)
}

func (t tableOfTask) Write(ctx context.Context, o table.Op) (table.Item, error) {
	return t.e.table.Write(ctx, o)
}

func (t tableOfTask) Transact(ctx context.Context, ops []table.Op) error {
	return t.e.table.Transact(ctx, ops)
}

// stepTable makes every operation a step and shows the world what was written.
type stepTable struct{ e *Engine }

var _ table.Table = stepTable{}

// background is the context of the table itself: what a task does is ended by the
// scheduler, not by its context.
var background = context.Background()

func (st stepTable) Get(ctx context.Context, k table.Key) (it table.Item, err error) {
	err = taskOf(ctx).step(ctx, op{kind: opRead, name: "get", key: k}, func() error {
		it, err = st.e.base(k.Partition).Get(background, k)
		return err
	})
	return it, err
}

func (st stepTable) Query(ctx context.Context, q table.Query) (p table.Page, err error) {
	o := op{kind: opRead, name: "query", key: table.Key{Partition: q.Partition, Sort: q.Prefix}}
	err = taskOf(ctx).step(ctx, o, func() error {
		p, err = st.e.base(q.Partition).Query(background, q)
		return err
	})
	return p, err
}

func (st stepTable) Write(ctx context.Context, o table.Op) (old table.Item, err error) {
	t := taskOf(ctx)
	err = t.step(ctx, op{kind: opWrite, name: "write", ops: []table.Op{o}}, func() error {
		old, err = st.e.base(o.Key.Partition).Write(background, o)
		if err == nil {
			st.e.world.Wrote(t, []table.Op{o})
		}
		return err
	})
	return old, err
}

func (st stepTable) Transact(ctx context.Context, ops []table.Op) (err error) {
	t := taskOf(ctx)
	return t.step(ctx, op{kind: opWrite, name: "transact", ops: ops}, func() error {
		base := st.e.base(ops[0].Key.Partition)
		for _, o := range ops {
			if st.e.base(o.Key.Partition) != base {
				st.e.Violate("storage", "a transaction is over two tables: %v", o.Key)
			}
		}
		err := base.Transact(background, ops)
		if err == nil {
			st.e.world.Wrote(t, ops)
		}
		return err
	})
}
