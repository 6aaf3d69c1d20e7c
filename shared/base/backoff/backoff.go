// Package backoff says how long to wait between two tries, and waits.
package backoff

import (
	"context"
	"time"
)

// After is the pause after so many failures in a row, counting from 1: first, then twice
// as long each time, up to limit.
func After(failures int, first, limit time.Duration) time.Duration {
	d := first
	for ; failures > 1 && d < limit; failures-- {
		d *= 2
	}
	return min(d, limit)
}

// Sleep waits, unless ctx ends before.
func Sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
