package agentknock

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"blindpost/shared/base/backoff"
	"blindpost/shared/gateway"
	"blindpost/shared/relay"
	"blindpost/shared/table"
)

// When a device connects, a job sends push_registration, then all messages that wait for
// the device in the order of acceptance, then caught_up. Until then a new request is only
// stored, and the job sends it in its turn.
//
// On a front that confirms, the job ends after a window of messages, and the confirmation
// of the last of them starts the next window. On a front that does not confirm, a job
// that has run for drainBudget leaves the rest to another job.

const (
	drainPage  = 64
	drainBytes = 1 << 20 // of a window
	drainCount = 128
	// drainBudget is how long one job goes on.
	drainBudget = 5 * time.Second
	// drainAttempts is the number of attempts after which the connection is closed: the
	// device will connect again.
	drainAttempts = 5

	// A job tries greetTries times to post to a connection that may still be opening, with
	// a backoff that doubles from greetPause; then it leaves the rest to a job greetLater.
	greetTries = 7
	greetPause = 10 * time.Millisecond
	greetLater = time.Second
)

// Attributes of the member of a device.
const (
	attrGreeted = "greet"   // epoch of the connection that was sent push_registration
	attrTakes   = "open"    // epoch of the connection that takes messages as they come
	attrPush    = "push"    // state of the push registration
	attrWake    = "wake"    // when the last push is due
	attrToken   = "token"   // hash of the device's token
	attrAddress = "address" // where clients find the device
	attrPairing = "pairing" // 1: new pairings are accepted
)

// takesMessages reports whether the drain of the device's connection is complete.
func takesMessages(m *relay.Member) bool { return m.Attr(attrTakes).Num() == m.Epoch }

// greeted reports whether push_registration was posted to the device's connection.
func greeted(m *relay.Member) bool { return m.Attr(attrGreeted).Num() == m.Epoch }

func (d *Dialect) drainJob(ctx context.Context, b jobBody, attempt int) error {
	err := d.tryDrain(ctx, b)
	if errors.Is(err, errNotOpen) {
		return d.next(ctx, jobDrain, b, d.core.Now().Add(greetLater))
	}
	if err == nil || attempt < drainAttempts {
		return err
	}
	d.core.Log().WarnContext(ctx, "failed to send a device the messages that wait", "device", short(b.Device), "error", err)
	return d.close(ctx, b.Conn, gateway.CloseInternal, "internal error")
}

func (d *Dialect) tryDrain(ctx context.Context, b jobBody) error {
	for try, pause := 1, greetPause; ; try, pause = try+1, 2*pause {
		err := d.drainHeld(ctx, b)
		if !errors.Is(err, errNotOpen) || try == greetTries {
			return err
		}
		// Wait while the device is not held.
		if err := backoff.Sleep(ctx, pause); err != nil {
			return err
		}
	}
}

func (d *Dialect) drainHeld(ctx context.Context, b jobBody) error {
	release, err := d.hold(ctx, b.keys())
	if err != nil {
		return err
	}
	defer release()
	c, err := d.core.LoadConn(ctx, b.Conn)
	if err != nil {
		return err
	}
	if c == nil {
		return d.endUnknown(ctx, b)
	}
	s, err := sessionOf(c)
	if err != nil || s.Drain.Done || s.Drain.Mark != 0 {
		return err
	}
	if gone, err := d.greet(ctx, c, s); err != nil || gone {
		return err
	}
	return d.drain(ctx, c, s)
}

var errNotOpen = errors.New("connection is not open yet")

// greet posts push_registration to a connection once; the first frame and the job both
// call it. It reports true if the connection is gone. From then on completions and
// receipts are posted to the device; earlier messages are found by the drain, which reads
// after greet has written. The device is held.
func (d *Dialect) greet(ctx context.Context, c *relay.Conn, s *session) (gone bool, err error) {
	if s.Drain.Greeted {
		return false, nil
	}
	m, err := d.device(ctx, s.keys())
	switch {
	case err != nil || m == nil:
		return true, err
	case m.Conn != c.ID:
		return true, d.endReplaced(ctx, c.ID, c.At)
	}
	looked := d.core.Now()
	ok, err := d.post(ctx, c.ID, pushFrame(pushState(m)))
	switch {
	case err != nil:
		return false, err
	case !ok && !d.core.MayOpen(c.ID, c.At, looked):
		d.core.ReportLost(ctx, m)
		return true, nil
	case !ok:
		return false, errNotOpen
	}
	err = d.changeDevice(ctx, m, relay.MemberChange{Attrs: map[string]table.Value{attrGreeted: table.Number(m.Epoch)}})
	if errors.Is(err, table.ErrCondition) {
		return true, d.endReplaced(ctx, c.ID, c.At)
	}
	if err != nil {
		return false, err
	}
	s.Drain.Greeted = true
	return false, d.saveSession(ctx, c, s)
}

// endReplaced closes a connection that was replaced while it was being opened, when it
// could not be closed yet. No other handler would close it, and it would get no frames.
func (d *Dialect) endReplaced(ctx context.Context, c gateway.Conn, at time.Time) error {
	looked := d.core.Now()
	err := d.core.Front().Close(ctx, c, d.ReplacedCode(), replacedText)
	switch {
	case errors.Is(err, gateway.ErrGone) && d.core.MayOpen(c, at, looked):
		return errNotOpen
	case errors.Is(err, gateway.ErrGone):
		return nil
	case err != nil:
		return fmt.Errorf("failed to close: %w", err)
	}
	return nil
}

// endUnknown closes a connection without a record. Most often it has ended. But the job
// that ends a replaced connection can come before the end of its Connect; then it is
// closed here, once it is open.
func (d *Dialect) endUnknown(ctx context.Context, b jobBody) error {
	if !d.distributed() {
		return nil // a connection without a record has ended
	}
	return d.endReplaced(ctx, b.Conn, b.At)
}

const replacedText = "replaced by a newer connection"

func pushState(m *relay.Member) string {
	if s := m.Attr(attrPush).Str(); s != "" {
		return s
	}
	return pushMissing
}

// Confirmed continues the drain when the device has received a window.
func (d *Dialect) Confirmed(ctx context.Context, c *relay.Conn, marks []uint64) error {
	s, err := sessionOf(c)
	if err != nil || s.Drain.Mark == 0 {
		return err
	}
	if !slices.Contains(marks, s.Drain.Mark) {
		return nil
	}
	s.Drain.Mark = 0
	return d.drain(ctx, c, s)
}

// drainRun is the progress of one run of drain.
type drainRun struct {
	start         time.Time
	frames, bytes int
	// revoked caches by client whether it is revoked.
	revoked map[string]bool
}

// drain posts the messages that wait. The device is held.
func (d *Dialect) drain(ctx context.Context, c *relay.Conn, s *session) error {
	w := &drainRun{start: d.core.Now(), revoked: make(map[string]bool)}
	h := s.keys()
	for {
		m, err := d.device(ctx, h)
		if err != nil || m == nil || m.Conn != c.ID {
			return err // the connection was replaced, or the device deleted
		}
		// Read before the entries: an exchange accepted after this fails the condition
		// in drained.
		u, err := d.loadUsage(ctx, h)
		if err != nil {
			return err
		}
		p, err := d.core.Table().Query(ctx, table.Query{
			Partition: h.partition(), Prefix: openSort, After: s.Drain.After, Limit: drainPage,
		})
		if err != nil {
			return fmt.Errorf("failed to read what waits: %w", err)
		}
		for _, it := range p.Items {
			stop, err := d.drainEntry(ctx, c, s, w, entryFrom(it))
			if errors.Is(err, gateway.ErrGone) {
				d.core.ReportLost(ctx, m)
				return d.saveSession(ctx, c, s)
			}
			if err != nil || stop {
				return errors.Join(err, d.saveSession(ctx, c, s))
			}
		}
		if len(p.Items) > 0 || p.More {
			if p.More {
				s.Drain.After = p.Next
			}
			if d.core.Now().Sub(w.start) > drainBudget {
				b := jobBody{Device: s.Device, Generation: s.Generation, Conn: c.ID}
				return errors.Join(d.saveSession(ctx, c, s), d.next(ctx, jobDrain, b, time.Time{}))
			}
			continue
		}
		done, err := d.drained(ctx, c, s, m, u)
		if err != nil || done {
			return err
		}
	}
}

func (d *Dialect) saveSession(ctx context.Context, c *relay.Conn, s *session) error {
	if err := s.put(c); err != nil {
		return err
	}
	return d.core.SaveConn(ctx, c)
}

// drainEntry posts what waits in one exchange. It reports true if the window is full.
func (d *Dialect) drainEntry(ctx context.Context, c *relay.Conn, s *session, w *drainRun, e entry) (stop bool, err error) {
	skip, err := d.skips(ctx, s.keys(), w, e)
	if err != nil {
		return false, err
	}
	var parcels []parcel
	for _, k := range []kind{request, completion} {
		if skip || (k == request && !e.request) || (k == completion && !e.completion) {
			continue
		}
		parcels = append(parcels, parcel{scope: scope{Client: e.client, Request: e.id, Kind: k}, address: e.address})
	}
	if len(parcels) > 0 && e.isFresh(d.core.Now(), d.lim()) {
		if err := d.ackBefore(ctx, s.keys(), parcels); err != nil {
			return false, err
		}
	}
	full := w.frames+len(parcels) >= drainCount || w.bytes+int(e.bytes) >= drainBytes
	for i, p := range parcels {
		if full && i == len(parcels)-1 {
			p.mark = relay.DialectMark | (s.Drain.Marks + 1)
		}
		outcome, err := d.postPayload(ctx, c.ID, s.keys(), p)
		if err != nil {
			return false, err
		}
		if outcome == gateway.Pending {
			w.frames++
			if p.mark != 0 {
				s.Drain.Marks++
				s.Drain.Mark = p.mark
			}
		}
	}
	if s.Drain.Mark == 0 && len(parcels) > 0 {
		w.bytes += int(e.bytes)
	}
	s.Drain.After = e.sort
	return s.Drain.Mark != 0, nil
}

// skips reports whether nothing of an exchange is to be posted: nothing waits, or its
// client was revoked.
func (d *Dialect) skips(ctx context.Context, h deviceKeys, w *drainRun, e entry) (bool, error) {
	if !e.waits(d.core.Now()) {
		return true, nil
	}
	revoked, known := w.revoked[e.client]
	if !known {
		client, err := d.loadClient(ctx, h, e.client)
		if err != nil {
			return false, err
		}
		revoked = client != nil && client.State == stateRevoked
		w.revoked[e.client] = revoked
	}
	return revoked, nil
}

// drained posts caught_up, and then opens the device for messages as they come, on
// condition that no exchange was accepted since u was read. It reports false if one was.
func (d *Dialect) drained(ctx context.Context, c *relay.Conn, s *session, m *relay.Member, u usage) (bool, error) {
	if !s.Drain.CaughtUp {
		ok, err := d.post(ctx, c.ID, caughtUpFrame())
		if err == nil && !ok {
			d.core.ReportLost(ctx, m)
		}
		if err != nil || !ok {
			return true, err
		}
		s.Drain.CaughtUp = true
	}
	change := relay.MemberChange{Attrs: map[string]table.Value{attrTakes: table.Number(m.Epoch)}}
	err := d.core.Table().Transact(ctx, []table.Op{
		relay.UpdateOp(m.Group, m.Key, change, m.IfUnchanged()...),
		{
			Action: table.Check, Key: s.keys().key(countersSort),
			Conds: []table.Cond{table.IfEqual(attrSeq, table.Number(u.Seq))},
		},
	})
	if errors.Is(err, table.ErrCondition) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("failed to open a device: %w", err)
	}
	s.Drain.Done = true
	return true, d.saveSession(ctx, c, s)
}

func (d *Dialect) anythingWaits(ctx context.Context, h deviceKeys) (bool, error) {
	entries, err := d.entries(ctx, h)
	if err != nil {
		return false, err
	}
	w := &drainRun{revoked: make(map[string]bool)}
	for _, e := range entries {
		skip, err := d.skips(ctx, h, w, e)
		if err != nil || !skip {
			return !skip, err
		}
	}
	return false, nil
}
