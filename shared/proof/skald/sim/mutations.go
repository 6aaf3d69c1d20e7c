package sim

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"blindpost/shared/gateway"
	"blindpost/shared/table"
)

// Mutations are the faults that the simulation has to find.
func Mutations() []Mutation {
	return slices.Concat(mailboxMutations(), presenceMutations(), admissionMutations(), frontMutations())
}

type (
	writes    = func(o table.Op) (table.Op, bool)
	transacts = func(ops []table.Op) []table.Op
)

func onWrite(fn writes) func(*sim, table.Table) table.Table {
	return func(s *sim, next table.Table) table.Table {
		return &mutantTable{Table: next, s: s, write: func(_ context.Context, o table.Op) (table.Op, bool) { return fn(o) }}
	}
}

func onTransact(fn transacts) func(*sim, table.Table) table.Table {
	return func(s *sim, next table.Table) table.Table {
		return &mutantTable{Table: next, s: s, transact: func(_ context.Context, ops []table.Op) []table.Op { return fn(ops) }}
	}
}

// onAppend changes the update of the member in an append.
func onAppend(fn func(o table.Op) table.Op) func(*sim, table.Table) table.Table {
	return onTransact(func(ops []table.Op) []table.Op {
		if isAppend(ops) {
			ops = slices.Clone(ops)
			ops[0] = fn(ops[0])
		}
		return ops
	})
}

func frontMutations() []Mutation {
	return []Mutation{
		{
			Name: "skip-the-ping",
			What: "what was handed to the socket counts as delivered",
			front: func(s *sim, next gateway.Front) gateway.Front {
				return &mutantFront{Front: next, post: func(ctx context.Context, c gateway.Conn, m gateway.Message) (gateway.Outcome, error) {
					out, err := next.Post(ctx, c, m)
					if k := s.socks[c]; err == nil && out == gateway.Pending && m.Mark != 0 {
						k.up = append(k.up, &upEvent{kind: upPong, marks: []uint64{m.Mark}, what: "a mark without a pong"})
					}
					return out, err
				}}
			},
		},
		{
			Name: "pong-for-all",
			What: "a pong confirms also what was sent after its ping",
			front: func(s *sim, next gateway.Front) gateway.Front {
				s.pongForAll = true
				return next
			},
		},
		{
			Name: "post-into-nothing",
			What: "a post to a connection that is no more is taken for delivered",
			front: func(_ *sim, next gateway.Front) gateway.Front {
				return &mutantFront{Front: next, post: func(ctx context.Context, c gateway.Conn, m gateway.Message) (gateway.Outcome, error) {
					out, err := next.Post(ctx, c, m)
					if errors.Is(err, gateway.ErrGone) {
						return gateway.Sent, nil
					}
					return out, err
				}}
			},
		},
		{
			Name: "failed-post-ignored",
			What: "a post that has failed is not tried again",
			front: func(_ *sim, next gateway.Front) gateway.Front {
				return &mutantFront{Front: next, post: func(ctx context.Context, c gateway.Conn, m gateway.Message) (gateway.Outcome, error) {
					out, err := next.Post(ctx, c, m)
					if errors.Is(err, errInjected) {
						return gateway.Pending, nil
					}
					return out, err
				}}
			},
		},
		{
			Name: "chatty-error",
			What: "an error quotes what could not be stored",
			table: func(s *sim, next table.Table) table.Table {
				return &mutantTable{Table: next, s: s, instead: func(ctx context.Context, ops []table.Op) (bool, error) {
					err := next.Transact(ctx, ops)
					if err != nil && isAppend(ops) && !errors.Is(err, table.ErrCondition) {
						err = fmt.Errorf("failed to store %q: %w", ops[1].Set["f"].Raw(), err)
					}
					return true, err
				}}
			},
		},
		{
			Name: "frame-trimmed",
			What: "trailing bytes of a frame that look empty are dropped",
			table: onTransact(func(ops []table.Op) []table.Op {
				if isAppend(ops) {
					ops = slices.Clone(ops)
					if f := ops[1].Set["f"].Raw(); len(f) > 200 {
						ops[1] = with(ops[1], "f", table.Bytes(f[:len(f)-1]))
					}
				}
				return ops
			}),
		},
	}
}
