package relay

import (
	"context"
	"errors"
	"fmt"

	"blindpost/shared/gateway"
	"blindpost/shared/table"
)

// Class is how a frame is delivered.
type Class string

// The classes.
const (
	// ClassStored waits in the mailbox until it is confirmed.
	ClassStored Class = "stored"
	// ClassLive reaches a connected member or nobody.
	ClassLive Class = "live"
)

// Result is what became of a frame that was sent.
type Result string

// The results of Send.
const (
	// Delivered: posted to the connection of the recipient. (A stored frame is
	// in the mailbox until the recipient confirms it.)
	Delivered Result = "delivered"
	// Stored: in the mailbox, the recipient is not connected.
	Stored Result = "stored"
	// Queued: the recipient is connecting; it gets the frame in its turn.
	Queued Result = "queued"
	// PeerOffline: a live frame for a recipient that is not connected.
	PeerOffline Result = "peer_offline"
	// QueueFull: the mailbox is at its cap.
	QueueFull Result = "queue_full"
	// NotFound: there is no such member.
	NotFound Result = "not_found"
	// TooLarge: no front of the recipient can carry the frame.
	TooLarge Result = "too_large"
	// Stale: the sender has spoken to this recipient from a newer connection;
	// the frame would arrive out of order and is dropped.
	Stale Result = "stale_sender"
)

// Letter is a frame for one member.
type Letter struct {
	// Sender is the connection that the letter comes from, Generation the life
	// of the group that its member belongs to.
	Sender     *Conn
	Generation string
	// To is the member key of the recipient, in the group of the sender.
	To    string
	Class Class
	// Frame is what the recipient gets, finished.
	Frame Frame
	// Admit, if set, decides whether the recipient may be sent to; false gives
	// NotFound.
	Admit func(*Member) bool
}

// maxTries bounds how often a conditional write is tried again because another
// handler came first. Within one process the lane lock makes that rare.
const maxTries = 64

// Send delivers a letter according to its class. The caller holds the sender.
func (r *Relay) Send(ctx context.Context, l *Letter) (Result, error) {
	var res Result
	var err error
	if l.Class == ClassLive {
		res, err = r.sendLive(ctx, l)
	} else {
		res, err = r.sendStored(ctx, l)
	}
	if err == nil {
		r.observe.Message(l.Class, res)
	}
	return res, err
}

// recipient reads the recipient of a letter; a Result other than "" is final. For
// Stale there is a recipient too.
func (r *Relay) recipient(ctx context.Context, l *Letter) (*Member, Result, error) {
	m, err := r.GetMember(ctx, l.Sender.Group, l.To)
	if err != nil {
		return nil, "", err
	}
	if m == nil || m.Generation != l.Generation || (l.Admit != nil && !l.Admit(m)) {
		return nil, NotFound, nil
	}
	if m.attrs[fence(l.Sender.lane)].Num() > l.Sender.Epoch {
		return m, Stale, nil
	}
	return m, "", nil
}

func (r *Relay) sendStored(ctx context.Context, l *Letter) (Result, error) {
	// The lane lock only keeps handlers of this process from failing each
	// other's conditions; what must hold is held by the conditions.
	lane, err := r.laneLocks.lock(ctx, l.Sender.Group, l.To)
	if err != nil {
		return "", err
	}
	m, e, res, err := r.store(ctx, l)
	unlock(lane)
	if err != nil || res != "" {
		return res, err
	}
	switch {
	case !r.Online(m):
		r.stillThere(ctx, m)
		r.wake(ctx, m.Group, m.Key, e.seq)
		return Stored, nil
	case m.connState == connOpen:
		return r.postStored(ctx, m, e)
	default:
		return Queued, nil
	}
}

// store puts a letter into the lane of its recipient. It returns the recipient
// as it was in that moment, or a Result that is final.
func (r *Relay) store(ctx context.Context, l *Letter) (*Member, *entry, Result, error) {
	for range maxTries {
		m, res, err := r.recipient(ctx, l)
		if res == Stale {
			err = r.refused(ctx, m, l)
		}
		if err != nil || res != "" {
			return nil, nil, res, err
		}
		if e := m.alreadyStored(l); e != nil {
			return m, e, "", nil
		}
		if limit := r.Limits().MailboxCap; limit > 0 && m.stored >= limit {
			again, err := r.recount(ctx, m)
			if err != nil {
				return nil, nil, "", err
			}
			if !again {
				return nil, nil, QueueFull, nil
			}
			continue
		}
		e := &entry{frame: l.Frame, sender: l.Sender.Member}
		err = r.append(ctx, m, e, l.Sender)
		if err == nil {
			r.observe.Depth(m.stored + 1)
			return m, e, "", nil
		}
		if !errors.Is(err, table.ErrCondition) {
			return nil, nil, "", err
		}
	}
	return nil, nil, "", fmt.Errorf("failed to store a frame: %w", table.ErrBusy)
}

// alreadyStored finds out that the letter is a frame which is delivered to us
// again and which we have stored the first time, before we could finish.
func (m *Member) alreadyStored(l *Letter) *entry {
	id := l.Sender.frame
	if id == "" || m.attrs[lastFrame(l.Sender.lane)].Str() != id {
		return nil
	}
	return &entry{
		seq:    m.attrs[lastSeq(l.Sender.lane)].Num(),
		frame:  l.Frame,
		sender: l.Sender.Member,
	}
}

// postStored hands a frame that is in the lane to the connection of an open
// member.
func (r *Relay) postStored(ctx context.Context, m *Member, e *entry) (Result, error) {
	outcome, err := r.front.Post(ctx, m.Conn, e.frame.message(e.mark()))
	switch {
	case err == nil && outcome == gateway.Sent:
		if err := r.confirm(ctx, m.Group, m.Key, m.Lane, []uint64{e.mark()}); err != nil {
			return "", err
		}
		return Delivered, nil
	case err == nil:
		return Delivered, nil
	case errors.Is(err, gateway.ErrGone):
		r.vanished(ctx, m) // whoever clears the pointer finds the frame and wakes
		return Stored, nil
	default:
		// The frame is in the lane but not on its way. Nothing may overtake it:
		// back to draining, and the pump posts what is there in order.
		if err := r.reopen(ctx, m); err != nil {
			return "", err
		}
		return Queued, nil
	}
}

func (r *Relay) sendLive(ctx context.Context, l *Letter) (Result, error) {
	for range maxTries {
		m, res, err := r.recipient(ctx, l)
		if err != nil || res != "" {
			return res, err
		}
		if m.alreadyStored(l) != nil {
			return Queued, nil // it waits its turn, or has had it
		}
		if !r.Online(m) {
			r.stillThere(ctx, m)
			return PeerOffline, nil
		}
		if m.connState != connOpen {
			res, err := r.appendLive(ctx, m, l)
			if errors.Is(err, table.ErrCondition) {
				continue
			}
			return res, err
		}
		if m.attrs[fence(l.Sender.lane)].Num() < l.Sender.Epoch {
			if err := r.raiseFence(ctx, m, l); errors.Is(err, table.ErrCondition) {
				continue
			} else if err != nil {
				return "", err
			}
		}
		_, err = r.front.Post(ctx, m.Conn, l.Frame.message(0))
		switch {
		case err == nil:
			return Delivered, nil
		case errors.Is(err, gateway.ErrGone):
			again, err := r.replaced(ctx, m)
			if again {
				continue
			}
			return PeerOffline, err
		case errors.Is(err, gateway.ErrTooLarge):
			return TooLarge, nil
		default:
			return "", fmt.Errorf("failed to post a live frame: %w", err)
		}
	}
	return "", fmt.Errorf("failed to deliver a live frame: %w", table.ErrBusy)
}

// appendLive lets a live frame wait its turn behind the stored ones of a member
// that is draining.
func (r *Relay) appendLive(ctx context.Context, m *Member, l *Letter) (Result, error) {
	size := len(l.Frame.Data)
	if m.transient >= maxTransient || (size > large && m.transient >= maxLarge) || size > 2*partSize {
		return PeerOffline, nil // it does not keep up with what waits for it already
	}
	e := &entry{frame: l.Frame, sender: l.Sender.Member, conn: m.Conn, epoch: m.Epoch, live: true}
	if err := r.append(ctx, m, e, l.Sender); err != nil {
		return "", err
	}
	return Queued, nil
}

// raiseFence notes that the sender speaks from a newer connection than before.
// It happens once per connection and recipient.
func (r *Relay) raiseFence(ctx context.Context, m *Member, l *Letter) error {
	_, err := r.table.Write(ctx, table.Op{
		Action: table.Update,
		Key:    memberKey(m.Group, m.Key),
		Conds:  []table.Cond{table.IfEqual("lane", table.String(m.Lane)), m.ifFence(l.Sender)},
		Set:    table.Attrs{fence(l.Sender.lane): table.Number(l.Sender.Epoch)},
	})
	return err
}

// Notify sends a frame of the relay itself to a member that is connected, in
// turn with what waits in its lane; a member that is not connected gets nothing.
func (r *Relay) Notify(ctx context.Context, group, key string, f Frame) error {
	for range maxTries {
		m, err := r.GetMember(ctx, group, key)
		if err != nil {
			return err
		}
		again, err := r.notify(ctx, m, f)
		if !again {
			return err
		}
	}
	return fmt.Errorf("failed to notify a member: %w", table.ErrBusy)
}

func (r *Relay) notify(ctx context.Context, m *Member, f Frame) (again bool, err error) {
	if m == nil || m.Conn == "" || r.front.Gone(m.Conn) {
		return false, nil
	}
	if m.connState != connOpen {
		err := r.append(ctx, m, &entry{frame: f, conn: m.Conn, epoch: m.Epoch}, nil)
		return errors.Is(err, table.ErrCondition), err
	}
	_, err = r.front.Post(ctx, m.Conn, f.message(0))
	if errors.Is(err, gateway.ErrGone) {
		return r.replaced(ctx, m)
	}
	return false, err
}

// stillThere is called for a member that is offline: if it has a connection all the
// same, its end could not be written down, and that is tried again.
func (r *Relay) stillThere(ctx context.Context, m *Member) {
	if m.Conn != "" {
		r.vanished(ctx, m)
	}
}

// replaced is called when a post has found the connection of m gone. It reports
// whether m has another one by now; otherwise m is offline.
func (r *Relay) replaced(ctx context.Context, m *Member) (bool, error) {
	now, err := r.GetMember(ctx, m.Group, m.Key)
	if err != nil {
		return false, err
	}
	if now != nil && now.Conn != "" && now.Conn != m.Conn {
		return true, nil
	}
	r.vanished(ctx, m)
	return false, nil
}
