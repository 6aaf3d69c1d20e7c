package agentknock

import (
	"context"
	"fmt"
	"slices"

	"blindpost/shared/relay"
	"blindpost/shared/table"
)

// transitions are the changes of a client's state that a device may ask for.
var transitions = map[string][]string{
	statePending:   {stateActive, stateRevoked},
	stateActive:    {stateSuspended, stateRevoked},
	stateSuspended: {stateActive, stateRevoked},
	stateRevoked:   {stateRevoked},
}

// setClientState changes the state of a client. All that follows from the state is done
// with every such frame, so that after a crash in between a second frame completes it.
func (d *Dialect) setClientState(ctx context.Context, c *relay.Conn, h deviceKeys, f frame) error {
	ok, err := d.writeState(ctx, c, h, f)
	if err != nil {
		return err
	}
	if !ok {
		no := &fault{code: codeInvalidClientState, message: "the client cannot go to this state"}
		return d.reply(ctx, c, no.frame(scope{}))
	}
	if f.State == stateRevoked {
		if err := d.endExchanges(ctx, h, f.Client); err != nil {
			return err
		}
	}
	b := jobBody{Device: h.device, Generation: h.generation, Client: f.Client}
	if err := d.evict(ctx, b, f.State); err != nil {
		return err
	}
	return d.reply(ctx, c, clientStateFrame(f.Client, f.State))
}

// writeState writes the state of a client. It reports false if the change is not allowed,
// and true for a frame that is delivered again.
func (d *Dialect) writeState(ctx context.Context, c *relay.Conn, h deviceKeys, f frame) (allowed bool, err error) {
	err = retry("change a client", func() error {
		client, err := d.loadClient(ctx, h, f.Client)
		if err != nil || client == nil {
			return err
		}
		if id := c.FrameID(); id != "" && client.Changed == id {
			allowed = client.State == f.State
			return nil
		}
		if !slices.Contains(transitions[client.State], f.State) {
			return nil
		}
		op := table.Op{
			Action: table.Update, Key: h.clientKey(f.Client),
			Conds:       []table.Cond{table.IfEqual("st", table.String(client.State))},
			Set:         table.Attrs{"st": table.String(f.State), "f": table.String(c.FrameID())},
			KeepForever: true,
		}
		if f.State == stateRevoked {
			op.Remove = []string{"t"}
		}
		if _, err := d.core.Table().Write(ctx, op); err != nil {
			return fmt.Errorf("failed to change a client: %w", err)
		}
		allowed = true
		return nil
	})
	return allowed, err
}

// endExchanges writes that the exchanges of a revoked client have expired, and deletes the
// messages that wait in them. If it dies before the last one, the rest count as expired
// when they are read (see age).
func (d *Dialect) endExchanges(ctx context.Context, h deviceKeys, client string) error {
	entries, err := d.entries(ctx, h)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if e.client != client {
			continue
		}
		m := move{scope: scope{Client: client, Request: e.id}, event: End}
		if _, err := d.apply(ctx, h, m); err != nil {
			return err
		}
	}
	return nil
}
