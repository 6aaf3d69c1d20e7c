package relay

import (
	"bytes"
	"context"
)

// A handler stores a frame, and dies or loses the answer. When the frame is delivered
// again its sender may have been removed, or have spoken from a newer connection: it is
// refused. Then the first try must not leave it in the lane of a recipient that is open,
// where nobody would post it before the next connection, behind all that is newer.

// Refused is for a dialect that refuses a letter because its sender is no more.
func (r *Relay) Refused(ctx context.Context, l *Letter) error {
	m, err := r.GetMember(ctx, l.Sender.Group, l.To)
	if err != nil || m == nil {
		return err
	}
	return r.refused(ctx, m, l)
}

// refused takes a letter out of the lane of m, if an earlier try has stored it. If m is
// not open, the letter stands in its place and stays.
func (r *Relay) refused(ctx context.Context, m *Member, l *Letter) error {
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
			r.wake(ctx, m.Group, m.Key, e.seq) // the earlier try may not have come so far
		}
	}
	return nil
}
