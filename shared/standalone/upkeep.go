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

// runningKey is an item that exists while a process runs on the database, and
// after one that did not end in good order.
var runningKey = table.Key{Partition: "process", Sort: "running"}

// recover takes up what a process before this one has left: it counts what
// waits, and wakes whom that one may have failed to wake.
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
		return fmt.Errorf("failed to take up what the process before has left: %w", err)
	}
	if m != nil {
		m.MailboxTotal(found.Stored)
	}
	if unclean {
		n.log.WarnContext(ctx, "the process before this one did not end in good order",
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

// sweep does what is due once a minute: groups whose time is over, and the space
// of expired items.
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
		sweepExpired(ctx, n.mem, n.now()),
		sweepExpired(ctx, n.bolt, n.now()),
	)
}

// sweepExpired gives the space of expired items back.
func sweepExpired(ctx context.Context, t interface {
	Sweep(ctx context.Context, now time.Time, max int) (int, error)
}, now time.Time) error {
	for {
		removed, err := t.Sweep(ctx, now, sweepBatch)
		if err != nil || removed < sweepBatch {
			return err
		}
	}
}

// pushes counts the pushes that are asked for and neither done nor given up. They
// are in memory: a shutdown with some left is none in good order.
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

// done notes that a job has succeeded.
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
