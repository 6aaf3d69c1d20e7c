package standalone

import (
	"context"
	"fmt"
	"sync"
	"time"

	"blindpost/shared/table"
)

// healthFor is how long the result of a probe is reused: any client may ask whether the
// relay is ready, and each probe is a write to the disk.
const healthFor = 5 * time.Second

// health remembers the last probe of the database.
type health struct {
	mu  sync.Mutex
	at  time.Time
	err error
}

// check returns the result of the last probe, or of a new one if that is too old.
func (h *health) check(ctx context.Context, now time.Time, probe func(context.Context) error) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if age := now.Sub(h.at); h.at.IsZero() || age >= healthFor || age < 0 {
		h.err = probe(ctx)
		h.at = now
	}
	return h.err
}

// probe writes to the database, which fails on a full or broken disk.
func (n *Node) probe(ctx context.Context) error {
	_, err := n.bolt.Write(ctx, table.Op{
		Action: table.Update, Key: runningKey,
		Set: table.Attrs{"probe": table.Number(n.now().Unix())},
	})
	if err != nil {
		return fmt.Errorf("failed to write to the database: %w", err)
	}
	return nil
}
