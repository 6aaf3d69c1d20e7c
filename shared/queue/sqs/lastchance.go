package sqs

import (
	"context"
	"time"
)

// What a message gets that is put aside if it fails once more.
const (
	// lastRuns is how often it is run. SQS counts it as received whenever one
	// before it in its group fails, so this may be all that it ever gets, and what
	// it needs may be missing for a moment only.
	lastRuns = 3
	// The pauses between those runs double from this one.
	lastPause = 250 * time.Millisecond
)

// lastChance runs a message that SQS puts aside if it fails. left is how many of
// its group, with itself, still have to be run: they share what time there is, so
// that none of them is put aside without having been run because another hangs.
func (c *Consumer) lastChance(ctx context.Context, m Message, left int, handle func(context.Context, Message) error) error {
	ctx, cancel := share(ctx, left)
	defer cancel()
	pause := lastPause
	for n := 1; ; n++ {
		m.Last = n == lastRuns
		parts := 2 // a half of what is left, so that the last run gets some too
		if m.Last {
			parts = 1
		}
		run, stop := share(ctx, parts)
		err := c.attempt(run, m, handle)
		stop()
		if err == nil || m.Last || ctx.Err() != nil {
			return err
		}
		wait(ctx, pause)
		pause *= 2
	}
}

// share is the context with one part in n of the time that is left.
func share(ctx context.Context, n int) (context.Context, context.CancelFunc) {
	end, ok := ctx.Deadline()
	if !ok || n <= 1 {
		return context.WithCancel(ctx)
	}
	return context.WithTimeout(ctx, time.Until(end)/time.Duration(n))
}

// wait waits for at most a quarter of the time that is left: running is worth more.
func wait(ctx context.Context, d time.Duration) {
	if end, ok := ctx.Deadline(); ok {
		d = min(d, time.Until(end)/4)
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}
