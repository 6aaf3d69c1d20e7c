package agentknock

import (
	"context"
	"errors"
	"fmt"
	"time"

	"blindpost/shared/gateway"
	"blindpost/shared/relay"
	"blindpost/shared/table"
)

// The connections of clients are listed, so that a suspension can close them.

func (h deviceKeys) sockets() string { return SocketPartition + h.device + "/" + h.generation }

func socketKey(s *session, c *relay.Conn) table.Key {
	return table.Key{Partition: s.keys().sockets(), Sort: s.Client + "/" + string(c.ID)}
}

func (d *Dialect) listSocket(ctx context.Context, c *relay.Conn, s *session) error {
	op := table.Op{
		Action: table.Put, Key: socketKey(s, c),
		Set: table.Attrs{"c": table.String(s.Client), "n": table.String(string(c.ID))},
	}
	if ttl := d.core.ConnRecordTTL(); ttl > 0 {
		op.Expires = c.At.Add(ttl)
	}
	if _, err := d.core.Table().Write(ctx, op); err != nil {
		return fmt.Errorf("failed to list a connection: %w", err)
	}
	return nil
}

func (d *Dialect) unlistSocket(ctx context.Context, c *relay.Conn, s *session) error {
	if _, err := d.core.Table().Write(ctx, table.Op{Action: table.Delete, Key: socketKey(s, c)}); err != nil {
		return fmt.Errorf("failed to take a connection off the list: %w", err)
	}
	return nil
}

// closeSockets closes the connections of one client, or of all if client is "".
func (d *Dialect) closeSockets(ctx context.Context, h deviceKeys, client string, code gateway.CloseCode, reason string) error {
	q := table.Query{Partition: h.sockets()}
	if client != "" {
		q.Prefix = client + "/"
	}
	items, err := table.QueryAll(ctx, d.core.Table(), q)
	if err != nil {
		return fmt.Errorf("failed to read the connections of a client: %w", err)
	}
	var errs []error
	for _, it := range items {
		errs = append(errs, d.close(ctx, gateway.Conn(it.Attrs["n"].Str()), code, reason))
	}
	return errors.Join(errs...)
}

// A connection that was being opened when its client was suspended could not be closed
// yet. So evict runs twice more: most connections are open after the first delay, and
// after the second no front is still opening one.
var evictAfter = [...]time.Duration{2 * time.Second, 30 * time.Second}

// evict closes the connections of a suspended or revoked client, and sends the job that
// does so again.
func (d *Dialect) evict(ctx context.Context, b jobBody, state string) error {
	code, ok := closeCodeOf(state)
	if !ok {
		return nil
	}
	if err := d.closeSockets(ctx, b.keys(), b.Client, code, "client "+state); err != nil {
		return err
	}
	if b.Round >= len(evictAfter) {
		return nil
	}
	at := d.core.Now().Add(evictAfter[b.Round])
	b.Round++
	return d.later(ctx, jobEvict, b, at)
}

func (d *Dialect) evictJob(ctx context.Context, b jobBody) error {
	client, err := d.loadClient(ctx, b.keys(), b.Client)
	if err != nil || client == nil {
		return err
	}
	return d.evict(ctx, b, client.State)
}

// closeCodeOf is the code that connections of a client in a state are closed with; false
// if they stay open.
func closeCodeOf(state string) (gateway.CloseCode, bool) {
	switch state {
	case stateSuspended:
		return gateway.CloseSuspended, true
	case stateRevoked:
		return gateway.CloseRevoked, true
	}
	return 0, false
}

// Disconnected takes the connection of a client off the list. For a device the core has
// called MemberLeft before.
func (d *Dialect) Disconnected(ctx context.Context, c *relay.Conn) error {
	s, err := sessionOf(c)
	if err != nil || s.role() == roleDevice {
		return err
	}
	if err := d.unlistSocket(ctx, c, s); err != nil {
		return err
	}
	d.core.Observer().Left(name, s.role())
	return nil
}
