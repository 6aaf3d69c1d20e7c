package standalone

import (
	"context"
	"errors"
	"fmt"
	"time"

	"blindpost/shared/metrics"
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
	var sum relay.Recovered
	err = n.bolt.Scan(ctx, relay.GroupPrefix, func(it table.Item) error {
		n.Relay.Recover(ctx, it, unclean, &sum)
		return nil
	})
	if err != nil {
		return fmt.Errorf("failed to look through the mailboxes: %w", err)
	}
	if m != nil {
		m.MailboxTotal(sum.Stored)
	}
	if unclean {
		n.log.WarnContext(ctx, "the process before this one did not end in good order",
			"waiting", sum.Stored, "woken", sum.Woken)
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
