package dynamo

import (
	"context"
	"fmt"
	"time"

	"blindpost/shared/base/backoff"
	"blindpost/shared/table"
)

// A call is tried maxTries times, which takes between 0 and 7 seconds, 3.5 on average:
// the pauses are at most 25, 50, 100, 200, 400, 800 ms and then 1 s.
const (
	maxTries   = 12
	firstPause = 25 * time.Millisecond
	longPause  = time.Second
)

// tries counts the tries of one call.
type tries struct {
	rand func() uint64
	done int
	// replaced: the call has changed its request because an item had expired.
	replaced bool
}

func (t *Table) tries() tries { return tries{rand: t.rand} }

// replaceNow reports whether to retry without a pause: once, if an item has expired.
func (r *tries) replaceNow(v verdict) bool {
	if v != expired || r.replaced {
		return false
	}
	r.replaced = true
	return true
}

// pause waits before the next try. It returns table.ErrBusy if no tries or no time are
// left, and the error of the context if that ended.
func (r *tries) pause(ctx context.Context) error {
	r.done++
	limit := backoff.After(r.done, firstPause, longPause)
	if r.done >= maxTries {
		return table.ErrBusy
	}
	// Any length from none to the limit, so that writers that collided do not collide
	// again. A float has 53 bits of precision.
	wait := time.Duration(float64(limit) * (float64(r.rand()>>11) / (1 << 53)))
	if deadline, ok := ctx.Deadline(); ok && time.Until(deadline) <= wait {
		return table.ErrBusy
	}
	return backoff.Sleep(ctx, wait)
}

// read repeats a request that changes nothing until it is answered.
func (t *Table) read(ctx context.Context, request func() error) error {
	tries := t.tries()
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		err := request()
		if err == nil {
			return nil
		}
		if ended := ctx.Err(); ended != nil {
			return ended
		}
		if classify(err) == permanentError {
			return refusal(err)
		}
		if stop := tries.pause(ctx); stop != nil {
			return fmt.Errorf("%w: %w", stop, withoutMessage(err))
		}
	}
}
