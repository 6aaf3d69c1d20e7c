package relay

import (
	"context"
	"errors"
	"fmt"
	"time"

	"blindpost/shared/gateway"
)

// A peer that only listens does not notice that its connection was replaced: nothing
// reaches it there, and the front answers its pings. So the connection is closed until
// that has succeeded. Where handlers share a process, the first try succeeds. Otherwise:
//
//   - If the front fails, the job that ends the connection tries again.
//   - If the handler dies, or is told that its join has failed although it was written, the
//     next run that waits in vain for the end of the replaced connection closes it (see
//     awaitTurn): that of a frame of the new connection, or of its end.

// endAfter is how long a front has to report the end of a connection, before a job
// ends it.
const endAfter = time.Second

// closeReplaced closes a connection that was replaced. If the front fails, only a missing
// job to try again is an error.
func (r *Relay) closeReplaced(ctx context.Context, dialect string, id gateway.Conn) error {
	if err := r.closeOld(ctx, dialect, id); err != nil {
		r.log.WarnContext(ctx, "failed to close a replaced connection", "conn", id, "error", err)
	}
	if !r.distributed {
		return nil
	}
	// The job is also for an end that is never reported: the new one waits for it.
	return r.endLater(ctx, id)
}

// closeBefore closes the connection before c, unless c has not replaced it after all.
func (r *Relay) closeBefore(ctx context.Context, c *Conn) error {
	m, err := r.GetMember(ctx, c.Group, c.Member)
	if err != nil {
		return err
	}
	if m != nil && m.Conn == c.after {
		return nil // the admission of c has died before it joined
	}
	return r.closeReplaced(ctx, c.Dialect, c.after)
}

// closeOld closes a connection, if it is still open, with the code for those that were
// replaced.
func (r *Relay) closeOld(ctx context.Context, dialect string, id gateway.Conn) error {
	code := gateway.CloseReplaced
	if d, ok := r.dialect(dialect).(Replacer); ok {
		code = d.ReplacedCode()
	}
	err := r.front.Close(ctx, id, code, "replaced by a newer connection")
	if err != nil && !errors.Is(err, gateway.ErrGone) {
		return fmt.Errorf("failed to close a replaced connection: %w", err)
	}
	return nil
}

// endLater sends a job that ends a connection, unless a Disconnect does so before.
func (r *Relay) endLater(ctx context.Context, id gateway.Conn) error {
	return r.sendJobAt(ctx, jobEnd, string(id), jobBody{Conn: id}, r.now().Add(endAfter))
}

// endUnreported ends a connection whose end was not reported. It may still be open, if it
// was replaced and could not be closed. again and the result are those of end.
func (r *Relay) endUnreported(ctx context.Context, id gateway.Conn, again bool) (bool, error) {
	c, err := r.LoadConn(ctx, id)
	if err != nil || c == nil {
		return false, err
	}
	if err := r.closeOld(ctx, c.Dialect, id); err != nil {
		return true, err
	}
	return r.end(ctx, id, again)
}
