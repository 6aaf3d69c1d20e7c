package sim

import (
	"context"
	"math"
	"slices"
	"strings"
	"time"

	"blindpost/shared/gateway"
	"blindpost/shared/table"
)

func presenceMutations() []Mutation {
	return []Mutation{
		{
			Name: "unconditional-offline",
			What: "the clean-up of a replaced connection takes the member offline",
			table: onWrite(func(o table.Op) (table.Op, bool) {
				if isLeave(o) {
					o.Conds = []table.Cond{table.IfExists()}
				}
				return o, true
			}),
		},
		{
			Name: "gone-too-early",
			What: "a front says that a connection is gone for good although its Disconnect is still to come",
			front: func(s *sim, next gateway.Front) gateway.Front {
				return &mutantFront{Front: next, gone: func(c gateway.Conn) bool {
					k := s.socks[c]
					return s.plan.mode == oneProcess && (k == nil || k.closed)
				}}
			},
		},
		{
			Name: "always-first",
			What: "every admission announces ONLINE, a replacement too",
			table: func(s *sim, next table.Table) table.Table {
				return &forgetful{mutantTable{Table: next, s: s}}
			},
		},
		{
			Name: "never-offline",
			What: "a member whose connection has ended stays online",
			table: onWrite(func(o table.Op) (table.Op, bool) {
				return o, !isLeave(o)
			}),
		},
		{
			Name: "speak-out-of-turn",
			What: "a connection does not wait for the frames of the one that it has replaced",
			table: onWrite(func(o table.Op) (table.Op, bool) {
				if strings.HasPrefix(o.Key.Partition, connPrefix) {
					o = unset(o, "af")
				}
				return o, true
			}),
		},
		{
			Name: "revoked-under-way",
			What: "what a revoked client has under way is stored for the agent",
			table: onTransact(func(ops []table.Op) []table.Op {
				for i, o := range ops {
					for name, v := range o.Set {
						if strings.HasPrefix(name, "f.") && v.Num() == math.MaxInt64 {
							ops = slices.Clone(ops)
							ops[i] = unset(ops[i], name)
						}
					}
				}
				return ops
			}),
		},
		{
			Name: "no-look",
			What: "nobody looks for connections whose end was not reported",
			table: onWrite(func(o table.Op) (table.Op, bool) {
				return o, o.Key.Partition != "due" || o.Action != table.Put
			}),
		},
		{
			Name: "notice-around-the-lane",
			What: "a notice of the relay does not wait its turn behind what is in the mailbox",
			table: func(s *sim, next table.Table) table.Table {
				return &mutantTable{Table: next, s: s, query: func(ctx context.Context, q table.Query, p table.Page) table.Page {
					if q.Prefix == memberSort && taskOf(ctx).what != "sweep" {
						for _, it := range p.Items {
							if it.Attrs["cs"].Num() == 1 {
								it.Attrs["cs"] = table.Number(2)
							}
						}
					}
					return p
				}}
			},
		},
	}
}

// forgetful does not remember who was connected before a join.
type forgetful struct{ mutantTable }

func (f *forgetful) Write(ctx context.Context, o table.Op) (table.Item, error) {
	old, err := f.mutantTable.Write(ctx, o)
	if isJoin(o) {
		delete(old.Attrs, "conn")
	}
	return old, err
}

func admissionMutations() []Mutation {
	return []Mutation{
		{
			Name: "token-compare-then-set",
			What: "a pairing token is compared first and marked as used afterwards",
			table: onTransact(func(ops []table.Op) []table.Op {
				out := slices.Clone(ops)
				for i := range out {
					if out[i].Key.Sort == windowSort && out[i].Action == table.Update {
						out[i] = without(out[i], "u")
					}
				}
				return out
			}),
		},
		{
			Name: "token-of-any-age",
			What: "a pairing window is open for an hour longer than it should",
			table: onTransact(func(ops []table.Op) []table.Op {
				out := slices.Clone(ops)
				for i, o := range out {
					if o.Key.Sort == windowSort && o.Action == table.Put {
						out[i] = with(o, "end", table.Number(o.Set["end"].Num()+3_600_000))
						out[i].Expires = o.Expires.Add(time.Hour)
					}
				}
				return out
			}),
		},
		{
			Name: "token-kept-after-stop",
			What: "PairingStop answers but leaves the window open",
			table: onTransact(func(ops []table.Op) []table.Op {
				return slices.DeleteFunc(slices.Clone(ops), func(o table.Op) bool {
					return o.Key.Sort == windowSort && o.Action == table.Delete
				})
			}),
		},
		{
			Name: "revoke-without-purge",
			What: "revocation deletes the client but not its mailbox",
			table: onTransact(func(ops []table.Op) []table.Op {
				return slices.DeleteFunc(slices.Clone(ops), func(o table.Op) bool {
					return isLane(o.Key) && o.Action == table.Delete && len(o.Conds) == 0
				})
			}),
		},
		{
			Name: "revoke-without-closing",
			What: "revocation leaves the client's connection open",
			front: func(_ *sim, next gateway.Front) gateway.Front {
				return &mutantFront{Front: next, close: func(ctx context.Context, c gateway.Conn, code gateway.CloseCode, reason string) error {
					if reason == "revoked" {
						return nil
					}
					return next.Close(ctx, c, code, reason)
				}}
			},
		},
		{
			Name: "revoke-whoever-it-was",
			What: "revocation does not look whether the client has connected since it was read",
			table: onTransact(func(ops []table.Op) []table.Op {
				out := slices.Clone(ops)
				for i, o := range out {
					if isMember(o.Key) && o.Action == table.Delete {
						out[i] = without(o, "conn", "ep")
					}
				}
				return out
			}),
		},
		{
			Name: "revoke-by-flag",
			What: "revocation takes the authorisation but leaves the client's item, mailbox and token",
			table: onTransact(func(ops []table.Op) []table.Op {
				out := slices.Clone(ops)
				for i, o := range out {
					if isMember(o.Key) && o.Action == table.Delete {
						o.Action, o.Set = table.Update, table.Attrs{"st": table.String("pending")}
						out[i] = o
					}
				}
				return out
			}),
		},
		{
			Name: "join-blindly",
			What: "a connection joins without a look at whether the member is still the one that was admitted",
			table: onWrite(func(o table.Op) (table.Op, bool) {
				if isJoin(o) {
					o.Conds = nil
				}
				return o, true
			}),
		},
		{
			Name: "no-generation",
			What: "clients of a deleted namespace are clients of the one that is made after it",
			table: func(s *sim, next table.Table) table.Table {
				return &mutantTable{Table: next, s: s,
					get: func(_ context.Context, k table.Key, it table.Item, err error) (table.Item, error) {
						s.sameGeneration(k, it)
						return it, err
					},
					query: func(_ context.Context, _ table.Query, p table.Page) table.Page {
						for _, it := range p.Items {
							s.sameGeneration(it.Key, it)
						}
						return p
					},
					write: func(ctx context.Context, o table.Op) (table.Op, bool) {
						// The clean-up knows the root only.
						root := s.ghost.group(strings.TrimPrefix(o.Key.Partition, groupPrefix)).root
						return o, !(isMember(o.Key) && o.Action == table.Delete && o.Key != root)
					},
				}
			},
		},
	}
}

// sameGeneration makes a member look as if it was of the generation of its
// group.
func (s *sim) sameGeneration(k table.Key, it table.Item) {
	if isMember(k) && it.Attrs != nil {
		if gr := s.ghost.groups[strings.TrimPrefix(k.Partition, groupPrefix)]; gr != nil {
			it.Attrs["gen"] = table.String(gr.gen)
		}
	}
}
