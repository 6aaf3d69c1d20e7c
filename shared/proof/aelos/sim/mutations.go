package sim

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"blindpost/shared/dialect/aelos"
	"blindpost/shared/gateway"
	"blindpost/shared/proof/engine"
	"blindpost/shared/queue"
	"blindpost/shared/table"
)

// Mutations are the faults that the simulation has to find.
func Mutations() []engine.Mutation { return slices.Concat(rosterMutations(), frontMutations()) }

// onRoster changes the roster as it is written.
func onRoster(change func(r map[string]json.RawMessage)) func(*engine.Engine, table.Table) table.Table {
	return onRosterOp(func(o table.Op) table.Op {
		var r map[string]json.RawMessage
		if json.Unmarshal(o.Set["r"].Raw(), &r) != nil {
			return o
		}
		change(r)
		body, err := json.Marshal(r)
		if err != nil {
			return o
		}
		return engine.With(o, "r", table.Bytes(body))
	})
}

// onRosterOp changes the writes of rosters.
func onRosterOp(change func(o table.Op) table.Op) func(*engine.Engine, table.Table) table.Table {
	changed := func(o table.Op) table.Op {
		if strings.HasPrefix(o.Key.Partition, aelos.Partition) && o.Action == table.Put {
			return change(o)
		}
		return o
	}
	return func(_ *engine.Engine, next table.Table) table.Table {
		return &engine.MutantTable{
			Table:   next,
			OnWrite: func(_ context.Context, o table.Op) (table.Op, bool) { return changed(o), true },
			OnTransact: func(_ context.Context, ops []table.Op) []table.Op {
				ops = slices.Clone(ops)
				for i := range ops {
					ops[i] = changed(ops[i])
				}
				return ops
			},
		}
	}
}

func rosterMutations() []engine.Mutation {
	return []engine.Mutation{
		{
			Name: "told-forgotten",
			What: "a boat does not hear of the end of a viewer",
			Table: onRoster(func(r map[string]json.RawMessage) {
				var told []string
				if json.Unmarshal(r["t"], &told) != nil {
					return
				}
				told = slices.DeleteFunc(told, func(t string) bool { return !bytes.Contains(r["v"], []byte(t)) })
				r["t"], _ = json.Marshal(told)
			}),
		},
		{
			Name:  "roster-without-version",
			What:  "a roster is written though it has changed since it was read",
			Table: onRosterOp(func(o table.Op) table.Op { return engine.Without(o, "v", "") }),
		},
		{
			Name: "same-tag",
			What: "tags start again with each boat connection",
			Table: onRoster(func(r map[string]json.RawMessage) {
				var viewers []map[string]json.RawMessage
				if json.Unmarshal(r["v"], &viewers) != nil || len(viewers) == 0 {
					return
				}
				viewers[0]["t"] = json.RawMessage(`"00000001"`)
				r["v"], _ = json.Marshal(viewers)
			}),
		},
		{
			Name: "lost-job",
			What: "nobody looks whether a handler has died before it had told what it changed",
			Send: func(_ *engine.Engine, j queue.Job) bool { return j.Kind != "aelos.settle" },
		},
		{
			Name: "token-for-ever",
			What: "nobody looks when a token expires",
			Send: func(_ *engine.Engine, j queue.Job) bool { return j.Kind != "aelos.expiry" },
		},
		{
			Name: "sweeper-asleep",
			What: "nobody looks for connections whose end was not reported",
			Table: func(_ *engine.Engine, next table.Table) table.Table {
				return &engine.MutantTable{Table: next, OnQuery: func(_ context.Context, q table.Query, p table.Page) table.Page {
					if q.Partition == "due" {
						p.Items = nil
					}
					return p
				}}
			},
		},
	}
}

// onPost changes what is posted.
func onPost(change func(e *engine.Engine, c gateway.Conn, m gateway.Message) (gateway.Conn, gateway.Message, bool)) func(*engine.Engine, gateway.Front) gateway.Front {
	return func(e *engine.Engine, next gateway.Front) gateway.Front {
		return &engine.MutantFront{Front: next, OnPost: func(ctx context.Context, c gateway.Conn, m gateway.Message) (gateway.Outcome, error) {
			c, m, post := change(e, c, m)
			if !post {
				return gateway.Sent, nil
			}
			return next.Post(ctx, c, m)
		}}
	}
}

func frontMutations() []engine.Mutation {
	return []engine.Mutation{
		{
			Name: "tag-of-the-viewer",
			What: "the tag that a viewer has written into hs1 is believed",
			Front: onPost(func(_ *engine.Engine, c gateway.Conn, m gateway.Message) (gateway.Conn, gateway.Message, bool) {
				if i := bytes.Index(m.Data, []byte(`"hs1","vs":"`)); i >= 0 {
					m.Data = bytes.Clone(m.Data)
					copy(m.Data[i+len(`"hs1","vs":"`):], "00000001")
				}
				return c, m, true
			}),
		},
		{
			Name: "wrong-viewer",
			What: "a snapshot goes to another viewer",
			Front: onPost(func(e *engine.Engine, c gateway.Conn, m gateway.Message) (gateway.Conn, gateway.Message, bool) {
				if !m.Text && m.Droppable {
					for _, k := range e.Sockets() {
						if l := lineOf(k); l.of.viewer && l.greeted && k.Open() && k.ID != c {
							return k.ID, m, true
						}
					}
				}
				return c, m, true
			}),
		},
		{
			Name: "relabelled",
			What: "a command is passed on as an identify",
			Front: onPost(func(_ *engine.Engine, c gateway.Conn, m gateway.Message) (gateway.Conn, gateway.Message, bool) {
				if !m.Text && m.Data[0] == 2 {
					m.Data = bytes.Clone(m.Data)
					m.Data[0] = 4
				}
				return c, m, true
			}),
		},
		{
			Name: "silent-refusal",
			What: "nobody is told that a command does not arrive",
			Front: onPost(func(_ *engine.Engine, c gateway.Conn, m gateway.Message) (gateway.Conn, gateway.Message, bool) {
				return c, m, !bytes.Contains(m.Data, []byte(`"t":"result"`))
			}),
		},
		{
			Name: "swallowed-handshake",
			What: "nobody is told that a handshake does not arrive",
			Front: onPost(func(_ *engine.Engine, c gateway.Conn, m gateway.Message) (gateway.Conn, gateway.Message, bool) {
				return c, m, !bytes.Contains(m.Data, []byte(`"boat-offline"`))
			}),
		},
		{
			Name: "ping-refused",
			What: "a ping is answered as a frame on the wrong leg",
			Front: onPost(func(_ *engine.Engine, c gateway.Conn, m gateway.Message) (gateway.Conn, gateway.Message, bool) {
				if bytes.Contains(m.Data, []byte(`"pong"`)) {
					m.Data = []byte(`{"t":"error","code":"proto"}`)
				}
				return c, m, true
			}),
		},
		{
			Name: "silent-zero",
			What: "that nobody looks on any more is not worth a frame",
			Front: onPost(func(_ *engine.Engine, c gateway.Conn, m gateway.Message) (gateway.Conn, gateway.Message, bool) {
				return c, m, !bytes.Contains(m.Data, []byte(`"viewers","count":0,"detach"`))
			}),
		},
		{
			Name: "believed-post",
			What: "a post that has failed counts as done",
			Front: func(_ *engine.Engine, next gateway.Front) gateway.Front {
				return &engine.MutantFront{Front: next, OnPost: func(ctx context.Context, c gateway.Conn, m gateway.Message) (gateway.Outcome, error) {
					out, err := next.Post(ctx, c, m)
					if errors.Is(err, engine.ErrInjected) {
						return gateway.Sent, nil
					}
					return out, err
				}}
			},
		},
		{
			Name: "replaced-stays",
			What: "a connection of a boat that was replaced is not closed",
			Front: func(_ *engine.Engine, next gateway.Front) gateway.Front {
				return &engine.MutantFront{Front: next, OnClose: func(ctx context.Context, c gateway.Conn, code gateway.CloseCode, reason string) error {
					if code == gateway.CloseReplaced {
						return nil
					}
					return next.Close(ctx, c, code, reason)
				}}
			},
		},
		{
			Name: "everybody-commands",
			What: "the role of a viewer is not looked at",
			Table: func(_ *engine.Engine, next table.Table) table.Table {
				return &engine.MutantTable{Table: next, OnGet: func(_ context.Context, _ table.Key, it table.Item, err error) (table.Item, error) {
					// The first byte of the dialect's part of a record are flags: 2 is the role.
					if p := it.Attrs["p"].Raw(); err == nil && it.Attrs["d"].Str() == "aelos" && len(p) > 0 && p[0]&1 != 0 {
						p = bytes.Clone(p)
						p[0] |= 2
						it.Attrs["p"] = table.Bytes(p)
					}
					return it, err
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
	}
}
