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
	// ClassLive is posted to the connection of the recipient, or dropped.
	ClassLive Class = "live"
)

// Result is the outcome of Send.
type Result string

// The results of Send.
const (
	// Delivered: posted to the connection of the recipient. (A stored frame is
	// in the mailbox until the recipient confirms it.)
	Delivered Result = "delivered"
	// Stored: in the mailbox, the recipient is not connected.
	Stored Result = "stored"
	// Queued: the recipient is draining; it gets the frame after what waits already.
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
	// Frame is posted to the recipient as it is.
	Frame Frame
	// Admit, if set, decides whether the recipient may be sent to; false gives
	// NotFound.
	Admit func(*Member) bool
}

// maxTries bounds how often a conditional write is tried because another handler
// wrote first. Within one process the lane lock makes that rare.
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

// recipient reads the recipient of a letter; a Result other than "" is final. With
// Stale it returns the recipient too.
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
	// The lane lock only keeps handlers of this process from failing each other's
	// conditions. Correctness needs only the conditions.
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
		r.reportLostAgain(ctx, m)
		r.wake(ctx, m.Group, m.Key, e.seq)
		return Stored, nil
	case m.connState == connOpen:
		return r.postStored(ctx, m, e)
	default:
		return Queued, nil
	}
}

// store puts a letter into the lane of its recipient. It returns the recipient
// as it was just before, or a Result that is final.
func (r *Relay) store(ctx context.Context, l *Letter) (*Member, *entry, Result, error) {
	for range maxTries {
		m, res, err := r.recipient(ctx, l)
		if res == Stale {
			err = r.withdraw(ctx, m, l)
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

// alreadyStored returns the entry of a letter that an earlier run has stored: the front
// delivers its frame again, because that run has not finished. nil if there was none.
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
		r.ReportLost(ctx, m) // when the member leaves, the frame is found and causes a push
		return Stored, nil
	default:
		// The frame is in the lane and was not posted. Nothing may overtake it: the
		// member drains again, and the pump posts the lane in order.
		if err := r.drainAgain(ctx, m); err != nil {
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
			return Queued, nil // it waits in the lane, or was posted from there
		}
		if !r.Online(m) {
			r.reportLostAgain(ctx, m)
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
			again, err := r.lostOrReplaced(ctx, m)
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

// appendLive puts a live frame into the lane of a member that is draining, behind the
// frames that wait there.
func (r *Relay) appendLive(ctx context.Context, m *Member, l *Letter) (Result, error) {
	size := len(l.Frame.Data)
	if m.transient >= maxTransient || (size > large && m.transient >= maxLarge) || size > 2*partSize {
		return PeerOffline, nil // the recipient is too slow for what waits already
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
	set := table.Attrs{fence(l.Sender.lane): table.Number(l.Sender.Epoch)}
	_, err := r.table.Write(ctx, m.updateOp(set, m.ifLane(), m.ifFence(l.Sender)))
	return err
}

// Notify sends a frame of the relay itself to a member that is connected, behind the
// frames that wait in its lane; a member that is not connected gets nothing.
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
		return r.lostOrReplaced(ctx, m)
	}
	return false, err
}

// reportLostAgain is for a member that is not online: if its item still has a
// connection, an earlier try to write that the member leaves has failed.
func (r *Relay) reportLostAgain(ctx context.Context, m *Member) {
	if m.Conn != "" {
		r.ReportLost(ctx, m)
	}
}

// lostOrReplaced is called when a post has found the connection of m gone. It reports
// whether the member has another one by now; otherwise the connection is lost.
func (r *Relay) lostOrReplaced(ctx context.Context, m *Member) (bool, error) {
	now, err := r.GetMember(ctx, m.Group, m.Key)
	if err != nil {
		return false, err
	}
	if now != nil && now.Conn != "" && now.Conn != m.Conn {
		return true, nil
	}
	r.ReportLost(ctx, m)
	return false, nil
}
