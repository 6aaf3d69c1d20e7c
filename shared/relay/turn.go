package relay

import (
	"context"
	"time"

	"blindpost/shared/base/backoff"
	"blindpost/shared/table"
)

// A client that sends, closes and connects again at once has frames of two connections
// under way. Where frames wait in a queue per connection, those of the second could be
// handled first: they would raise the fences, and the remaining frames of the first
// would be refused. So the second waits until the record of the first is deleted: the
// front reports the end behind the last frame, and if it does not, the job of endLater
// comes behind that frame too.

const (
	// turnWait is how long a frame waits for those of the connection before. A
	// queue that delivers a frame again after a failure needs a second or two.
	turnWait = 3 * time.Second
	// The backoff between two looks doubles from firstLook to lastLook.
	firstLook = 20 * time.Millisecond
	lastLook  = 320 * time.Millisecond
)

// awaitTurn waits until all frames of the connection before c are handled, at most
// turnWait: a lost report must not keep the member from sending for ever.
func (r *Relay) awaitTurn(ctx context.Context, c *Conn) error {
	if !r.distributed || c.after == "" {
		return nil
	}
	for pause, waited := firstLook, time.Duration(0); ; pause = min(2*pause, lastLook) {
		_, found, err := r.Find(ctx, connKey(c.after), "the record of the connection before")
		if err != nil || !found {
			return err
		}
		if waited >= turnWait {
			r.log.WarnContext(ctx, "a replaced connection does not end", "conn", c.after, "by", c.ID)
			if err := r.closeBefore(ctx, c); err != nil {
				return err
			}
			return r.stopWaiting(ctx, c)
		}
		if err := backoff.Sleep(ctx, pause); err != nil {
			return err
		}
		waited += pause
	}
}

// stopWaiting lets the next frames of c be handled without a wait.
func (r *Relay) stopWaiting(ctx context.Context, c *Conn) error {
	return r.changeConn(ctx, c.ID, table.Op{Remove: []string{recAfter}})
}
