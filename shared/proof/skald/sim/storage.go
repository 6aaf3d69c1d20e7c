package sim

import (
	"context"
	"os"
	"strings"
	"time"

	"blindpost/shared/relay"
	"blindpost/shared/table"
	"blindpost/shared/table/mem"
)

// Store is the kind of table that a schedule runs over.
type Store struct {
	Name string
	// Open opens the table that is kept in a folder, with its way to close it.
	Open func(dir string, now func() time.Time) (table.Table, func() error, error)
	// Durable says that the table keeps what is in it when it is closed. After a
	// crash of the process it is then closed and opened again; otherwise it
	// stays as it is.
	Durable bool
}

// Mem is a table in memory.
func Mem() Store {
	return Store{
		Name: "mem",
		Open: func(_ string, now func() time.Time) (table.Table, func() error, error) {
			return mem.New(now), func() error { return nil }, nil
		},
	}
}

func (s *sim) open() error {
	s.memory = mem.New(s.now)
	if s.durable != nil && !s.store.Durable {
		return nil
	}
	if s.dir == "" && s.store.Durable {
		dir, err := os.MkdirTemp("", "blindpost-sim-")
		if err != nil {
			return err
		}
		s.dir = dir
	}
	now := s.now
	if m := s.mutation; m != nil && m.behind != 0 {
		now = func() time.Time { return s.now().Add(-m.behind) }
	}
	t, closing, err := s.store.Open(s.dir, now)
	if err != nil {
		return err
	}
	s.durable, s.closing = t, closing
	s.table, s.front = table.Table(stepTable{s}), stepFront{s}
	if s.mutation != nil {
		s.mutation.install(s)
	}
	return nil
}

// base is the table that holds an item. Connection records and counters live in
// the memory of the single binary, as they do in production.
func (s *sim) base(partition string) table.Table {
	if s.plan.mode == oneProcess &&
		(strings.HasPrefix(partition, relay.ConnPartition) || strings.HasPrefix(partition, relay.AddressPartition)) {
		return s.memory
	}
	return s.durable
}

// tableOfTask is what a relay gets: it finds its schedule by the context.
type tableOfTask struct{}

var _ table.Table = tableOfTask{}

func (tableOfTask) Get(ctx context.Context, k table.Key) (table.Item, error) {
	return taskOf(ctx).sim.table.Get(ctx, k)
}

func (tableOfTask) Query(ctx context.Context, q table.Query) (table.Page, error) {
	return taskOf(ctx).sim.table.Query(ctx, q)
}

func (tableOfTask) Write(ctx context.Context, o table.Op) (table.Item, error) {
	return taskOf(ctx).sim.table.Write(ctx, o)
}

func (tableOfTask) Transact(ctx context.Context, ops []table.Op) error {
	return taskOf(ctx).sim.table.Transact(ctx, ops)
}

// stepTable makes every operation a step and shows the model what was written.
type stepTable struct{ s *sim }

var _ table.Table = stepTable{}

// background is the context of the table itself: what a task does is ended by the
// scheduler, not by its context.
var background = context.Background()

func (st stepTable) Get(ctx context.Context, k table.Key) (it table.Item, err error) {
	t := taskOf(ctx)
	err = t.step(op{kind: opRead, name: "get", key: k}, func() error {
		it, err = st.s.base(k.Partition).Get(background, k)
		st.s.observeGet(t, k, it, err)
		return err
	})
	return it, err
}

func (st stepTable) Query(ctx context.Context, q table.Query) (p table.Page, err error) {
	t := taskOf(ctx)
	err = t.step(op{kind: opRead, name: "query", key: table.Key{Partition: q.Partition, Sort: q.Prefix + q.After}}, func() error {
		p, err = st.s.base(q.Partition).Query(background, q)
		st.s.observeQuery(t, q)
		return err
	})
	return p, err
}

func (st stepTable) Write(ctx context.Context, o table.Op) (old table.Item, err error) {
	t := taskOf(ctx)
	err = t.step(op{kind: opWrite, name: "write", ops: []table.Op{o}}, func() error {
		old, err = st.s.base(o.Key.Partition).Write(background, o)
		if err == nil {
			st.s.observeCommit(t, []table.Op{o})
		}
		return err
	})
	return old, err
}

func (st stepTable) Transact(ctx context.Context, ops []table.Op) (err error) {
	t := taskOf(ctx)
	return t.step(op{kind: opWrite, name: "transact", ops: ops}, func() error {
		base := st.s.durable
		for _, o := range ops {
			if st.s.base(o.Key.Partition) != base {
				st.s.violate("storage", "a transaction touches what lives in memory: %v", o.Key)
			}
		}
		err := base.Transact(background, ops)
		if err == nil {
			st.s.observeCommit(t, ops)
		}
		return err
	})
}
