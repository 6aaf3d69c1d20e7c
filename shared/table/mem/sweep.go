package mem

import (
	"context"
	"time"

	"blindpost/shared/table"
)

// The table finds expired items by walking over all items, again and again, a few steps
// for each write. That needs no memory for an index. A write walks over sweepRatio items,
// so a full round takes at most len/sweepRatio writes, and the expired items that are
// still there are at most half as many as the items that are live and were written since.
const (
	sweepRatio = 2
	// sweepChunk is how many items one walk visits: enough to outweigh the search for
	// its start in the tree.
	sweepChunk = 64
)

// sweeper is the state of the walk. The lock of the table guards it.
type sweeper struct {
	debt int    // items to walk over because of earlier writes
	hand string // storage key where the next walk begins
}

// sweepSome is called with the number of writes; the work comes in chunks.
func (t *Table) sweepSome(now time.Time, writes int) {
	s := &t.sweeper
	s.debt += writes * sweepRatio
	for s.debt >= sweepChunk {
		s.debt -= sweepChunk
		s.hand, _ = t.removeExpired(s.hand, now, sweepChunk)
	}
}

// removeExpired visits up to n items, beginning at the key from. It returns the key of
// the next item, "" after the last one, and how many items it removed.
func (t *Table) removeExpired(from string, now time.Time, n int) (next string, removed int) {
	var dead []string
	t.order.Ascend(from, func(key string) bool {
		if n == 0 {
			next = key
			return false
		}
		n--
		if table.Expired(t.items[key], now) {
			dead = append(dead, key)
		}
		return true
	})
	for _, key := range dead {
		t.remove(key)
	}
	return next, len(dead)
}

// Sweep frees the memory of all items that are expired both at now and by the table's
// own clock. It visits up to limit items at a time and releases the lock in between. It
// returns how many it removed.
func (t *Table) Sweep(ctx context.Context, now time.Time, limit int) (int, error) {
	if clock := t.now(); clock.Before(now) {
		now = clock
	}
	if limit < 1 {
		limit = sweepChunk
	}
	total := 0
	for from := ""; ; {
		if err := ctx.Err(); err != nil {
			return total, err
		}
		t.mu.Lock()
		next, removed := t.removeExpired(from, now, limit)
		t.mu.Unlock()
		total += removed
		if next == "" {
			return total, nil
		}
		from = next
	}
}
