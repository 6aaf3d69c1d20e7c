package sqs

import (
	"context"
	"time"

	"blindpost/shared/base/backoff"
)

// The runs of a message that SQS puts aside after one more failure.
const (
	// lastRuns is how often the message is run. SQS counts it as received whenever one
	// before it in its group fails, so these may be its only runs, and the cause of a
	// failure may be gone a moment later.
	lastRuns = 3
	// lastPause is the pause after the first of these runs; later pauses double.
	lastPause = 250 * time.Millisecond
)

// lastChance runs a message that SQS puts aside if it fails. left is the number of
// messages of its group that must still run, including itself. They share the remaining
// time, so that none is put aside without a run because another hangs.
func (c *Consumer) lastChance(ctx context.Context, m Message, left int, handle func(context.Context, Message) error) error {
	ctx, cancel := share(ctx, left)
	defer cancel()
	pause := lastPause
	for n := 1; ; n++ {
		m.Last = n == lastRuns
		parts := 2 // half of the remaining time, so that some is left for the last run
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

// share is a context with one n-th of the remaining time.
func share(ctx context.Context, n int) (context.Context, context.CancelFunc) {
	end, ok := ctx.Deadline()
	if !ok || n <= 1 {
		return context.WithCancel(ctx)
	}
	return context.WithTimeout(ctx, time.Until(end)/time.Duration(n))
}

// wait waits for d, but at most a quarter of the remaining time, to leave time for runs.
func wait(ctx context.Context, d time.Duration) {
	if end, ok := ctx.Deadline(); ok {
		d = min(d, time.Until(end)/4)
	}
	_ = backoff.Sleep(ctx, d) // the next run looks at ctx
}
