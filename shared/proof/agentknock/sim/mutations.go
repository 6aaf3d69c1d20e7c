package sim

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"blindpost/shared/gateway"
	"blindpost/shared/proof/engine"
	"blindpost/shared/queue"
	"blindpost/shared/table"
)

// Mutations are the faults that the simulation has to find.
func Mutations() []engine.Mutation {
	return slices.Concat(storeMutations(), connectionMutations(), frontMutations())
}

func isItem(k table.Key, sort string) bool {
	return strings.HasPrefix(k.Partition, devicePartition) && strings.HasPrefix(k.Sort, sort)
}

// onOps changes the operations of transactions; what it reports false for is left out.
func onOps(change func(o table.Op) (table.Op, bool)) func(*engine.Engine, table.Table) table.Table {
	return func(_ *engine.Engine, next table.Table) table.Table {
		return &engine.MutantTable{Table: next, OnTransact: func(_ context.Context, ops []table.Op) []table.Op {
			var out []table.Op
			for _, o := range ops {
				if o, keep := change(o); keep {
					out = append(out, o)
				}
			}
			return out
		}}
	}
}

// onItem changes what is read of items with a sort key, by Get and by Query.
func onItem(sort string, change func(a table.Attrs)) func(*engine.Engine, table.Table) table.Table {
	changed := func(it table.Item) table.Item {
		if it.Attrs != nil && isItem(it.Key, sort) {
			it.Attrs = maps.Clone(it.Attrs)
			change(it.Attrs)
		}
		return it
	}
	return func(_ *engine.Engine, next table.Table) table.Table {
		return &engine.MutantTable{
			Table: next,
			OnGet: func(_ context.Context, _ table.Key, it table.Item, err error) (table.Item, error) {
				return changed(it), err
			},
			OnQuery: func(_ context.Context, _ table.Query, p table.Page) table.Page {
				for i := range p.Items {
					p.Items[i] = changed(p.Items[i])
				}
				return p
			},
		}
	}
}

func storeMutations() []engine.Mutation {
	return []engine.Mutation{
		{
			Name: "payload-not-stored",
			What: "a message is accepted without its payload",
			Table: onOps(func(o table.Op) (table.Op, bool) {
				return o, !isItem(o.Key, payloadSort) || o.Action != table.Put
			}),
		},
		{
			Name: "begin-without-looking",
			What: "two requests that come at once both begin the exchange",
			Table: onOps(func(o table.Op) (table.Op, bool) {
				if isItem(o.Key, exchangeSort) {
					o = engine.Without(o, "")
				}
				return engine.Without(o, "q", "nw", "w"), true
			}),
		},
		{
			Name: "lost-update",
			What: "an exchange is written though it has changed since it was read",
			Table: onOps(func(o table.Op) (table.Op, bool) {
				if isItem(o.Key, exchangeSort) {
					o = engine.Without(o, "v")
				}
				return o, true
			}),
		},
		{
			Name: "count-only-downwards",
			What: "an exchange that begins is not counted",
			Table: onOps(func(o table.Op) (table.Op, bool) {
				if isItem(o.Key, countersSort) && o.Add["no"] > 0 {
					o.Add = maps.Clone(o.Add)
					delete(o.Add, "no")
				}
				return o, true
			}),
		},
		{
			Name: "count-only-upwards",
			What: "an exchange that ends is counted on, and nobody counts again",
			Table: func(_ *engine.Engine, next table.Table) table.Table {
				return &engine.MutantTable{
					Table: next,
					OnTransact: func(_ context.Context, ops []table.Op) []table.Op {
						ops = slices.Clone(ops)
						for i := range ops {
							if ops[i].Add["no"] < 0 {
								ops[i].Add = maps.Clone(ops[i].Add)
								delete(ops[i].Add, "no")
							}
						}
						return ops
					},
					OnWrite: func(_ context.Context, o table.Op) (table.Op, bool) {
						_, counts := o.Set["no"]
						return o, o.Action != table.Update || !counts
					},
				}
			},
		},
		{
			Name: "payload-expires-early",
			What: "a payload is kept for less time than its exchange",
			Table: onOps(func(o table.Op) (table.Op, bool) {
				if isItem(o.Key, payloadSort) && o.Action == table.Put {
					o.Expires = o.Expires.Add(-23*time.Hour - 50*time.Minute)
				}
				return o, true
			}),
		},
		{
			Name: "revoked-not-looked-at",
			What: "a revoked client is not disconnected, and what it sends is handled as before",
			Front: func(_ *engine.Engine, next gateway.Front) gateway.Front {
				return &engine.MutantFront{Front: next, OnClose: func(ctx context.Context, c gateway.Conn, code gateway.CloseCode, reason string) error {
					if code == gateway.CloseRevoked {
						return nil
					}
					return next.Close(ctx, c, code, reason)
				}}
			},
			Table: func(_ *engine.Engine, next table.Table) table.Table {
				return &engine.MutantTable{
					Table: next,
					OnGet: func(ctx context.Context, k table.Key, it table.Item, err error) (table.Item, error) {
						sock := engine.TaskOf(ctx).Socket
						if err == nil && isItem(k, clientSort) && sock != nil && lineOf(sock).client != nil && it.Attrs["st"].Str() == "revoked" {
							it.Attrs = maps.Clone(it.Attrs)
							it.Attrs["st"] = table.String("active")
						}
						return it, err
					},
					OnTransact: func(_ context.Context, ops []table.Op) []table.Op {
						ops = slices.Clone(ops)
						for i := range ops {
							if isItem(ops[i].Key, clientSort) {
								ops[i] = engine.Without(ops[i], "st")
							}
						}
						return ops
					},
				}
			},
		},
		{
			Name: "completion-overtakes",
			What: "what waits is sent without the request, if there is a completion",
			Table: onItem(openSort, func(a table.Attrs) {
				if a["completion"].Num() == 1 {
					a["request"] = table.Number(0)
				}
			}),
		},
		{
			Name: "drain-without-the-last",
			What: "the last of what waits is left out",
			Table: func(_ *engine.Engine, next table.Table) table.Table {
				return &engine.MutantTable{Table: next, OnQuery: func(_ context.Context, q table.Query, p table.Page) table.Page {
					if isItem(table.Key{Partition: q.Partition, Sort: q.Prefix}, openSort) && len(p.Items) > 0 && q.Limit > 0 {
						p.Items = p.Items[:len(p.Items)-1]
					}
					return p
				}}
			},
		},
	}
}

func connectionMutations() []engine.Mutation {
	return []engine.Mutation{
		{
			Name: "old-connection-cleans-up",
			What: "the end of a connection takes a device offline whose connection it is no more",
			Table: func(_ *engine.Engine, next table.Table) table.Table {
				return &engine.MutantTable{Table: next, OnWrite: func(_ context.Context, o table.Op) (table.Op, bool) {
					if o.Key.Sort == memberSort && slices.Contains(o.Remove, "conn") {
						o = engine.Without(o, "conn")
					}
					return o, true
				}}
			},
		},
		{
			Name: "no-wake",
			What: "nobody asks for a push",
			Send: func(_ *engine.Engine, j queue.Job) bool { return j.Kind != "agentknock.wake" },
		},
		{
			Name: "no-drain",
			What: "a device that connects is not sent what waits",
			Send: func(_ *engine.Engine, j queue.Job) bool { return j.Kind != "agentknock.drain" },
		},
	}
}

func frontMutations() []engine.Mutation {
	return []engine.Mutation{
		{
			Name: "no-ack",
			What: "a request is not acked",
			Front: func(_ *engine.Engine, next gateway.Front) gateway.Front {
				return &engine.MutantFront{Front: next, OnPost: func(ctx context.Context, c gateway.Conn, m gateway.Message) (gateway.Outcome, error) {
					if bytes.HasPrefix(m.Data, []byte(`{"type":"ack"`)) && bytes.Contains(m.Data, []byte(`"kind":"request"`)) {
						return gateway.Sent, nil
					}
					return next.Post(ctx, c, m)
				}}
			},
		},
		{
			Name: "wrong-connection",
			What: "a frame goes to the connection of another client",
			Front: func(e *engine.Engine, next gateway.Front) gateway.Front {
				n := 0
				return &engine.MutantFront{Front: next, OnPost: func(ctx context.Context, c gateway.Conn, m gateway.Message) (gateway.Outcome, error) {
					if n++; n%7 == 0 {
						c = otherClient(e, c)
					}
					return next.Post(ctx, c, m)
				}}
			},
		},
		{
			Name: "chatty-error",
			What: "an error quotes what could not be sent",
			Front: func(_ *engine.Engine, next gateway.Front) gateway.Front {
				return &engine.MutantFront{Front: next, OnPost: func(ctx context.Context, c gateway.Conn, m gateway.Message) (gateway.Outcome, error) {
					out, err := next.Post(ctx, c, m)
					if errors.Is(err, engine.ErrInjected) {
						err = fmt.Errorf("failed to send %s: %w", m.Data, err)
					}
					return out, err
				}}
			},
		},
		{
			Name: "payload-encoded-again",
			What: "a payload is decoded and encoded on its way",
			Front: func(_ *engine.Engine, next gateway.Front) gateway.Front {
				return &engine.MutantFront{Front: next, OnPost: func(ctx context.Context, c gateway.Conn, m gateway.Message) (gateway.Outcome, error) {
					m.Data = bytes.ReplaceAll(m.Data, []byte("<"), []byte(`\u003c`))
					return next.Post(ctx, c, m)
				}}
			},
		},
	}
}

// otherClient is the connection of another client than c's, if there is one.
func otherClient(e *engine.Engine, c gateway.Conn) gateway.Conn {
	var own *line
	for _, k := range e.Sockets() {
		if k.ID == c {
			own = lineOf(k)
		}
	}
	for _, k := range e.Sockets() {
		if l := lineOf(k); own != nil && own.client != nil && l.client != nil && l.client != own.client && k.Open() {
			return k.ID
		}
	}
	return c
}
