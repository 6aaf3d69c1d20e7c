package sim

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"blindpost/shared/gateway"
	"blindpost/shared/queue"
	"blindpost/shared/table"
)

func mailboxMutations() []Mutation {
	return []Mutation{
		{
			Name: "count-then-insert",
			What: "the cap is checked first and the frame inserted afterwards, under a number of its own",
			table: func(s *sim, next table.Table) table.Table {
				return &mutantTable{Table: next, s: s, instead: func(ctx context.Context, ops []table.Op) (bool, error) {
					if !isAppend(ops) {
						return false, nil
					}
					for {
						it, err := next.Get(ctx, ops[0].Key)
						if err != nil {
							return true, err
						}
						seq := it.Attrs["tail"].Num() + 1
						update := with(without(ops[0], "tail"), "tail", table.Number(seq))
						update.Conds = append(update.Conds, tailIs(it))
						put := ops[1]
						put.Key.Sort = fmt.Sprintf("%016x", seq)
						if err = next.Transact(ctx, []table.Op{update, put}); !errors.Is(err, table.ErrCondition) {
							return true, err
						}
						if it, err = next.Get(ctx, ops[0].Key); err != nil || it.Attrs["tail"].Num() < seq {
							return true, table.ErrCondition
						}
					}
				}}
			},
		},
		{
			Name:  "append-to-whoever",
			What:  "a frame is stored on the word of a member that may have connected since",
			table: onAppend(func(o table.Op) table.Op { return without(o, "conn", "cs") }),
		},
		{
			Name: "append-in-two-writes",
			What: "the counters are written first, the frame after them",
			table: func(s *sim, next table.Table) table.Table {
				return &mutantTable{Table: next, s: s, instead: func(ctx context.Context, ops []table.Op) (bool, error) {
					if !isAppend(ops) {
						return false, nil
					}
					if _, err := next.Write(ctx, ops[0]); err != nil {
						return true, err
					}
					_, err := next.Write(ctx, ops[1])
					return true, err
				}}
			},
		},
		{
			Name: "delete-before-post",
			What: "a frame leaves the mailbox when it is handed over, not when it has arrived",
			front: func(s *sim, next gateway.Front) gateway.Front {
				return &mutantFront{Front: next, post: func(ctx context.Context, c gateway.Conn, m gateway.Message) (gateway.Outcome, error) {
					if k := s.socks[c]; k != nil && m.Mark != 0 && m.Mark&transientMark == 0 {
						key := table.Key{Partition: lanePrefix + k.lane, Sort: fmt.Sprintf("%016x", m.Mark)}
						if _, err := s.table.Write(ctx, table.Op{Action: table.Delete, Key: key}); err != nil {
							return 0, err
						}
					}
					return next.Post(ctx, c, m)
				}}
			},
		},
		{
			Name: "confirm-up-to",
			What: "a confirmed frame takes all earlier ones with it",
			table: func(s *sim, next table.Table) table.Table {
				return &mutantTable{Table: next, s: s, instead: func(ctx context.Context, ops []table.Op) (bool, error) {
					if !isConfirm(ops) {
						return false, nil
					}
					if err := next.Transact(ctx, ops); err != nil {
						return true, err
					}
					first := slices.MinFunc(ops[:len(ops)-1], func(a, b table.Op) int { return strings.Compare(a.Key.Sort, b.Key.Sort) })
					p, err := next.Query(ctx, table.Query{Partition: first.Key.Partition, Before: first.Key.Sort})
					if err != nil {
						return true, err
					}
					for _, it := range p.Items {
						count := "n"
						if it.Attrs["c"].Kind() != 0 {
							count = "tn"
						}
						err := next.Transact(ctx, []table.Op{
							{Action: table.Delete, Key: it.Key, Conds: []table.Cond{table.IfExists()}},
							{Action: table.Update, Key: ops[len(ops)-1].Key, Conds: ops[len(ops)-1].Conds, Add: map[string]int64{count: -1}},
						})
						if err != nil && !errors.Is(err, table.ErrCondition) {
							return true, err
						}
					}
					return true, nil
				}}
			},
		},
		{
			Name: "confirm-without-counting",
			What: "a confirmed frame is deleted but goes on counting against the cap",
			table: onTransact(func(ops []table.Op) []table.Op {
				if isConfirm(ops) {
					return ops[:len(ops)-1]
				}
				return ops
			}),
		},
		{
			Name: "confirm-what-is-there",
			What: "a frame that has expired before it is confirmed is left to the table",
			table: func(s *sim, next table.Table) table.Table {
				return &mutantTable{Table: next, s: s, instead: func(ctx context.Context, ops []table.Op) (bool, error) {
					return taskOf(ctx).what == "confirmed" && !isConfirm(ops) && isLane(ops[0].Key), nil
				}}
			},
		},
		{
			Name: "open-before-drain",
			What: "a member is open for others as soon as it has joined",
			table: onWrite(func(o table.Op) (table.Op, bool) {
				if isJoin(o) {
					o = with(o, "cs", table.Number(2))
				}
				return o, true
			}),
		},
		{
			Name: "open-without-looking",
			What: "a drained member is opened although something was appended since",
			table: onWrite(func(o table.Op) (table.Op, bool) {
				if isOpen(o) {
					o = without(o, "tail")
				}
				return o, true
			}),
		},
		{
			Name: "drain-newest-first",
			What: "the mailbox is read from its end",
			table: func(s *sim, next table.Table) table.Table {
				return &mutantTable{Table: next, s: s, query: func(_ context.Context, q table.Query, p table.Page) table.Page {
					if strings.HasPrefix(q.Partition, lanePrefix) {
						slices.Reverse(p.Items)
					}
					return p
				}}
			},
		},
		{
			Name: "no-fence",
			What: "what an older connection of a sender still brings is taken like anything else",
			table: func(s *sim, next table.Table) table.Table {
				return &mutantTable{Table: next, s: s, get: func(_ context.Context, k table.Key, it table.Item, err error) (table.Item, error) {
					if isMember(k) {
						for name := range it.Attrs {
							if strings.HasPrefix(name, "f.") {
								it.Attrs[name] = table.Number(0)
							}
						}
					}
					return it, err
				}, write: func(_ context.Context, o table.Op) (table.Op, bool) {
					return withoutFence(o), true
				}, transact: func(_ context.Context, ops []table.Op) []table.Op {
					ops = slices.Clone(ops)
					for i := range ops {
						ops[i] = withoutFence(ops[i])
					}
					return ops
				}}
			},
		},
		{
			Name:   "expired-when-swept",
			What:   "what has expired is there until somebody sweeps it, as with DynamoDB's TTL",
			behind: 36 * time.Hour,
		},
		{
			Name: "lost-jobs",
			What: "the queue forgets the job that empties a mailbox after a failed post",
			send: func(_ *sim, j queue.Job) bool { return j.Kind != "pump" },
		},
		{
			Name:  "no-hold",
			What:  "handlers of one member run side by side in one process",
			alone: true,
		},
	}
}

// withoutFence drops the conditions on the fences that an operation sets.
func withoutFence(o table.Op) table.Op {
	for name := range o.Set {
		if strings.HasPrefix(name, "f.") {
			o = without(o, name)
		}
	}
	return o
}

func tailIs(it table.Item) table.Cond {
	if v, ok := it.Attrs["tail"]; ok {
		return table.IfEqual("tail", v)
	}
	return table.IfNone("tail")
}
