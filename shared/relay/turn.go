package relay

import (
	"context"
	"errors"
	"fmt"
	"time"

	"blindpost/shared/gateway"
	"blindpost/shared/table"
)

// A client that sends, hangs up and dials again at once has frames of two
// connections under way. Where frames wait in a queue per connection, those of the
// second could be handled first: they would raise the fences, and what is left of
// the first would be refused. So the second waits. The sign that nothing of the
// first is left is that its record is gone: its end is reported behind its frames,
// and if it is not, a job says so that comes behind them as well (see endLater).

const (
	// turnWait is how long a frame waits for those of the connection before. A
	// queue that delivers a frame again after a failure needs a second or two.
	turnWait = 3 * time.Second
	// The pauses between two looks double from firstLook to lastLook.
	firstLook = 20 * time.Millisecond
	lastLook  = 320 * time.Millisecond
	// endAfter is how long a front has to report the end of a connection that was
	// closed, before a job stands in for it.
	endAfter = time.Second
)

// awaitTurn waits until all frames are handled of the connection that c has
// replaced; not for ever, lest a report that is lost make the member mute.
func (r *Relay) awaitTurn(ctx context.Context, c *Conn) error {
	if !r.distributed || c.after == "" {
		return nil
	}
	for pause, waited := firstLook, time.Duration(0); ; pause = min(2*pause, lastLook) {
		_, err := r.table.Get(ctx, connKey(c.after))
		if errors.Is(err, table.ErrNotFound) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("failed to look for the connection before: %w", err)
		}
		if waited >= turnWait {
			r.log.WarnContext(ctx, "a replaced connection does not end", "conn", c.after, "by", c.ID)
			return r.waitNoMore(ctx, c)
		}
		if err := gateway.Sleep(ctx, pause); err != nil {
			return err
		}
		waited += pause
	}
}

// waitNoMore has the next frames of c not wait.
func (r *Relay) waitNoMore(ctx context.Context, c *Conn) error {
	return r.changeConn(ctx, c.ID, table.Op{Remove: []string{connAfter}})
}

// endLater has a job do what a Disconnect does, unless that has come by then.
func (r *Relay) endLater(ctx context.Context, id gateway.Conn) error {
	return r.sendJobAt(ctx, jobEnd, string(id), jobBody{Conn: id}, r.now().Add(endAfter))
}
