package relay

import (
	"bytes"
	"context"
)

// A handler stores a frame, and dies or loses the answer of the table. When the frame is
// delivered again, its sender may have been removed or may have sent from a newer
// connection, and the frame is refused. Then it must not stay in the lane of a recipient
// that is open: it would be posted only to the next connection, behind newer frames.

// Withdraw is for a dialect that refuses a letter because its sender was removed: it
// takes out of the mailbox what an earlier run has stored.
func (r *Relay) Withdraw(ctx context.Context, l *Letter) error {
	m, err := r.GetMember(ctx, l.Sender.Group, l.To)
	if err != nil || m == nil {
		return err
	}
	return r.withdraw(ctx, m, l)
}

// withdraw takes a letter out of the lane of m, if an earlier run has stored it and m is
// open. If m is not open, the letter is in its place and stays.
func (r *Relay) withdraw(ctx context.Context, m *Member, l *Letter) error {
	if l.Sender.frame == "" || l.Class == ClassLive || m.stored == 0 {
		return nil
	}
	entries, err := r.readAll(ctx, m.Lane)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if e.conn != "" || e.sender != l.Sender.Member || !bytes.Equal(e.frame.Data, l.Frame.Data) {
			continue
		}
		if m.connState == connOpen {
			return r.confirm(ctx, m.Group, m.Key, m.Lane, []uint64{e.mark()})
		}
		if m.Conn == "" {
			r.wake(ctx, m.Group, m.Key, e.seq) // the earlier run may have died before its push
		}
	}
	return nil
}
