package standalone

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"blindpost/shared/dialect/agentknock"
	"blindpost/shared/metrics"
	"blindpost/shared/queue"
	"blindpost/shared/queue/local"
	"blindpost/shared/relay"
	"blindpost/shared/table"
)

const (
	sweepEvery = time.Minute
	// sweepBatch is how many expired items one transaction removes.
	sweepBatch = 1000
)

// runningKey is the key of an item that exists while a process uses the database, and
// still exists after a process that did not shut down cleanly.
var runningKey = table.Key{Partition: "process", Sort: "running"}

// recover continues after the previous process: it counts the stored messages, and after
// an unclean end it pushes to the members that the previous process may not have woken.
func (n *Node) recover(m *metrics.Metrics) error {
	ctx := context.Background()
	old, err := n.bolt.Write(ctx, table.Op{
		Action: table.Put, Key: runningKey,
		Set: table.Attrs{"since": table.Number(n.now().Unix())},
	})
	if err != nil {
		return fmt.Errorf("failed to mark the database as in use: %w", err)
	}
	unclean := old.Attrs != nil
	found := n.Relay.NewRecovery(unclean)
	err = n.bolt.Scan(ctx, relay.GroupPrefix, func(it table.Item) error { return found.Visit(ctx, it) })
	if err == nil {
		err = found.Finish(ctx)
	}
	if err != nil {
		return fmt.Errorf("failed to recover the state of the previous process: %w", err)
	}
	if m != nil {
		m.MailboxTotal(found.Stored)
	}
	if unclean {
		n.log.WarnContext(ctx, "the previous process did not shut down cleanly",
			"waiting", found.Stored, "woken", found.Woken, "connections", found.Lost)
	}
	return nil
}

func (n *Node) markClean(ctx context.Context) error {
	if _, err := n.bolt.Write(ctx, table.Op{Action: table.Delete, Key: runningKey}); err != nil {
		return fmt.Errorf("failed to mark the database as free: %w", err)
	}
	return nil
}

// sweep removes expired groups and frees the space of expired items, once a minute.
func (n *Node) sweep(ctx context.Context) {
	defer close(n.swept)
	tick := time.NewTicker(sweepEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if err := n.sweepOnce(ctx); err != nil && ctx.Err() == nil {
			n.log.ErrorContext(ctx, "failed to sweep", "error", err)
		}
	}
}

func (n *Node) sweepOnce(ctx context.Context) error {
	return errors.Join(
		n.Relay.Sweep(ctx),
		sweepTable(ctx, n.mem, n.now()),
		sweepTable(ctx, n.bolt, n.now()),
	)
}

func sweepTable(ctx context.Context, t interface {
	Sweep(ctx context.Context, now time.Time, limit int) (int, error)
}, now time.Time) error {
	_, err := t.Sweep(ctx, now, sweepBatch)
	return err
}

// pushes counts the queued pushes that are neither done nor dead. They are only in
// memory, so a shutdown that leaves some is not clean.
type pushes struct {
	queue.Queue
	local.Observer
	open atomic.Int64
}

// isPush reports whether jobs of a kind push.
func isPush(kind string) bool { return kind == relay.JobPush || kind == agentknock.JobWake }

// Send implements queue.Queue.
func (p *pushes) Send(ctx context.Context, j queue.Job) error {
	err := p.Queue.Send(ctx, j)
	if err == nil && isPush(j.Kind) {
		p.open.Add(1)
	}
	return err
}

// done notes that a job has succeeded or is dead.
func (p *pushes) done(kind string) {
	if isPush(kind) {
		p.open.Add(-1)
	}
}

// JobDead implements local.Observer.
func (p *pushes) JobDead(kind string) {
	p.done(kind)
	p.Observer.JobDead(kind)
}
