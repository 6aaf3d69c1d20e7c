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
					for name := range o.Set {
						if strings.HasPrefix(name, "f.") {
							o = without(o, name)
						}
					}
					return o, true
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

func tailIs(it table.Item) table.Cond {
	if v, ok := it.Attrs["tail"]; ok {
		return table.IfEqual("tail", v)
	}
	return table.IfNone("tail")
}

func presenceMutations() []Mutation {
	return []Mutation{
		{
			Name: "unconditional-offline",
			What: "the clean-up of a replaced connection takes the member offline",
			table: onWrite(func(o table.Op) (table.Op, bool) {
				if isLeave(o) {
					o = without(o, "conn")
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
