package mem

import (
	"context"
	"time"

	"github.com/tidwall/btree"
)

// Expired items are found by walking over all of them, again and again, a few
// steps for each write. That takes no memory for an index. A write walks over
// sweepRatio items, so a full round takes at most len/sweepRatio writes, and what is
// expired and still there is at most half of what is live and was written since.
const (
	sweepRatio = 2
	// sweepChunk is how many items one walk looks at: enough to make up for
	// finding the place in the tree again.
	sweepChunk = 64
)

// sweeper walks over the items. The lock of the table guards it.
type sweeper struct {
	debt int    // items to walk over because of earlier writes
	hand string // storage key where the next walk begins
}

// step is called for each write; the work comes in chunks.
func (s *sweeper) step(items *btree.Map[string, string], now time.Time, writes int) {
	s.debt += writes * sweepRatio
	for s.debt >= sweepChunk {
		s.debt -= sweepChunk
		s.hand, _ = removeExpired(items, s.hand, now, sweepChunk)
	}
}

// removeExpired looks at up to n items from the key from on. It returns the key
// to go on at, "" after the last one, and how many items it removed.
func removeExpired(items *btree.Map[string, string], from string, now time.Time, n int) (next string, removed int) {
	var dead []string
	items.Ascend(from, func(key, enc string) bool {
		if n == 0 {
			next = key
			return false
		}
		n--
		if expired(enc, now) {
			dead = append(dead, key)
		}
		return true
	})
	for _, key := range dead {
		items.Delete(key)
	}
	return next, len(dead)
}

// Sweep gives back the memory of all items that are expired at now and by the
// table's own clock. It looks at up to max items at a time and lets others in
// between, so that it holds nobody up. It returns how many it removed.
func (t *Table) Sweep(ctx context.Context, now time.Time, max int) (int, error) {
	if clock := t.now(); clock.Before(now) {
		now = clock
	}
	if max < 1 {
		max = sweepChunk
	}
	total := 0
	for from := ""; ; {
		if err := ctx.Err(); err != nil {
			return total, err
		}
		t.mu.Lock()
		next, removed := removeExpired(t.items, from, now, max)
		t.mu.Unlock()
		total += removed
		if next == "" {
			return total, nil
		}
		from = next
	}
}
