package aelos

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"blindpost/shared/gateway"
	"blindpost/shared/table"
)

// How everybody is brought up to date. The roster says what each connection ought
// to know and what it has been told; whatever differs is posted, in one order, by
// one handler at a time: it holds a lease, which stands in the roster as well. The
// others wait for it, because it tells what they have changed too. Should it die,
// nobody knows what it has told: when the lease has run out, the next one tells it
// again. Should it be so slow that the lease runs out under it, its words may come
// after those of the next one; it notices, and has the truth told once more. It also
// closes the connections of the boat that were replaced, until that has succeeded.

// lease is the right to tell.
type lease struct {
	ID    string `json:"i"`
	Until int64  `json:"u"` // milliseconds
	// Tags are those that the boat may be told of under the lease for the first time,
	// Viewers those that may be told about the boat.
	Tags    []tag `json:"t,omitempty"`
	Viewers []tag `json:"v,omitempty"`
}

const (
	leaseTime = 15 * time.Second
	// leaseMargin is how long before its end nothing more is posted: longer than two
	// posts, which is what a peer is told at most.
	leaseMargin = 2*postTime + time.Second
	// postTime is how long a front may try to tell one peer: others wait for that.
	postTime = 2 * time.Second
	// notNow is how long a viewer is left alone that could not be told.
	notNow = 5 * time.Second
	// lookAgain is when somebody looks whether a handler has died before it had told
	// what it had changed.
	lookAgain = leaseTime + 5*time.Second
	// settleWait is how long to wait for somebody else's lease.
	settleWait = leaseTime + time.Second
)

// settled says that nobody has to be told anything now or closed, and that nobody is at
// it.
func (r *roster) settled(now time.Time) bool {
	if r.Lease != nil || len(r.Replaced) > 0 {
		return false
	}
	for i := range r.Viewers {
		if r.due(&r.Viewers[i], now) {
			return false
		}
	}
	if r.Boat == nil {
		return true
	}
	attach, detach := r.deltas(r.welcomed())
	return r.Boat.Welcome && r.Boat.Listed && len(attach) == 0 && len(detach) == 0
}

// due says that a viewer is to be told about the boat.
func (r *roster) due(v *viewer, now time.Time) bool {
	return v.Said != r.status() && now.UnixMilli() >= v.NotBefore
}

// welcomed are the tags of the viewers that have been welcomed. The others do not
// exist for the boat yet: it speaks to them as soon as it knows of them.
func (r *roster) welcomed() []tag {
	tags := make([]tag, 0, len(r.Viewers))
	for i := range r.Viewers {
		if r.Viewers[i].Said != saidNothing {
			tags = append(tags, r.Viewers[i].Tag)
		}
	}
	return tags
}

// deltas are what the boat has to be told if it is to know these tags. A new connection
// is told of all viewers, and of all that are no more: it may be a new process, or one
// that still has their keys.
func (r *roster) deltas(known []tag) (attach, detach []tag) {
	for _, t := range known {
		if !r.Boat.Listed || !slices.Contains(r.Told, t) {
			attach = append(attach, t)
		}
	}
	for _, t := range r.Told {
		if !slices.Contains(known, t) {
			detach = append(detach, t)
		}
	}
	if r.Boat.Listed {
		return attach, detach
	}
	for _, f := range r.Forgotten {
		if !slices.Contains(r.Told, f.Tag) {
			detach = append(detach, f.Tag)
		}
	}
	return attach, detach
}

// postError says that some connections could not be told; they will be.
type postError struct {
	conns []gateway.Conn
	err   error
}

func (e *postError) Error() string { return "failed to bring a peer up to date: " + e.err.Error() }
func (e *postError) Unwrap() error { return e.err }

// settle returns when everybody has been told what was in the roster when it was
// called. A *postError means that this failed for some.
func (d *Dialect) settle(ctx context.Context, group string) error {
	// Within the process nobody has to wait for a lease.
	release, err := d.core.Hold(ctx, group, "")
	if err != nil {
		return err
	}
	defer release()
	deadline := d.core.Now().Add(settleWait)
	for pause := 5 * time.Millisecond; ; {
		r, free, err := d.lend(ctx, group)
		if err != nil || r == nil {
			return err
		}
		if !free {
			if !d.core.Now().Before(deadline) {
				return fmt.Errorf("failed to bring the peers of a boat up to date: %w", table.ErrBusy)
			}
			if err := gateway.Sleep(ctx, pause); err != nil {
				return err
			}
			pause = min(2*pause, 250*time.Millisecond)
			continue
		}
		news := d.tell(ctx, r)
		if err := d.note(ctx, r, news); err != nil {
			return err
		}
		if news.failed != nil {
			return news.failed
		}
	}
}

// lend takes the lease. It returns nil if there is nothing to tell, and false if
// somebody else has it.
func (d *Dialect) lend(ctx context.Context, group string) (*roster, bool, error) {
	free := false
	r, _, err := d.change(ctx, group, func(r *roster) bool {
		now := d.core.Now()
		free = r.Lease == nil || now.UnixMilli() >= r.Lease.Until || r.Lease.Until > now.Add(2*leaseTime).UnixMilli()
		if r.settled(now) || r.empty() || !free {
			return false
		}
		r.distrust()
		r.Lease = &lease{ID: d.core.NewID(), Until: now.Add(leaseTime).UnixMilli()}
		for i := range r.Viewers {
			v := &r.Viewers[i]
			if r.Boat != nil && !slices.Contains(r.Told, v.Tag) {
				r.Lease.Tags = append(r.Lease.Tags, v.Tag)
			}
			if r.due(v, now) {
				r.Lease.Viewers = append(r.Lease.Viewers, v.Tag)
			}
		}
		return true
	})
	if err != nil || r.settled(d.core.Now()) || r.empty() {
		return nil, false, err
	}
	return r, free, nil
}

// distrust ends a lease that has run out: whatever was told under it is to be told
// again.
func (r *roster) distrust() {
	if r.Lease == nil {
		return
	}
	r.mayKnow(r.Lease.Tags)
	for i := range r.Viewers {
		if v := &r.Viewers[i]; slices.Contains(r.Lease.Viewers, v.Tag) {
			v.doubt()
		}
	}
	r.Lease = nil
	if r.Boat != nil {
		r.Boat.Listed = false
	}
}

// mayKnow adds tags to those that the boat is told to forget in time.
func (r *roster) mayKnow(tags []tag) {
	for _, t := range tags {
		if !slices.Contains(r.Told, t) {
			r.Told = append(r.Told, t)
		}
	}
}

// note writes down what has been told and gives the lease back.
func (d *Dialect) note(ctx context.Context, lent *roster, n *announcements) error {
	_, _, err := d.change(ctx, lent.group, func(r *roster) bool {
		for _, c := range n.gone {
			r.remove(c)
		}
		if r.Lease == nil || r.Lease.ID != lent.Lease.ID {
			return n.unsure(r) || len(n.gone) > 0
		}
		r.Lease = nil
		n.noteWelcomes(r)
		for i := range r.Viewers {
			v := &r.Viewers[i]
			if s, ok := n.viewers[v.Conn]; ok {
				v.Said, v.NotBefore = s, 0
			} else if n.failedTo(v.Conn) {
				v.NotBefore = d.core.Now().Add(notNow).UnixMilli()
				v.doubt()
			}
		}
		r.mayKnow(n.tried)
		if r.Boat != nil && n.failedTo(r.Boat.Conn) {
			r.Boat.Listed = false // it may know them, and may not: it is told of all
		}
		switch {
		case n.boat == "":
		case r.Boat != nil && r.Boat.Conn == n.boat:
			over := slices.DeleteFunc(r.Told, func(t tag) bool { return slices.Contains(n.tags, t) })
			r.keep(over, d.core.Now())
			r.Boat.Welcome, r.Boat.Listed, r.Told = true, true, n.tags
		default:
			// Replaced meanwhile, or gone: the next connection is told about these.
			r.mayKnow(n.tags)
		}
		return true
	})
	return err
}

// unsure has everybody told again who may have heard us after somebody who knew
// better.
func (n *announcements) unsure(r *roster) bool {
	changed := n.noteWelcomes(r)
	for i := range r.Viewers {
		v := &r.Viewers[i]
		if _, ok := n.viewers[v.Conn]; (ok || n.failedTo(v.Conn)) && v.doubt() {
			changed = true
		}
	}
	// Nor does a newer connection of the boat know what an older one was told.
	if r.Boat != nil && (r.Boat.Conn == n.boat || n.failedTo(r.Boat.Conn) || len(n.tried) > 0) {
		r.Boat.Listed, changed = false, true
	}
	if len(n.tried) > 0 {
		r.mayKnow(n.tried)
		changed = true
	}
	return changed
}

// settleOthers is settle for whoever has nothing to hear himself: what fails is tried
// again by a job.
func (d *Dialect) settleOthers(ctx context.Context, group string) error {
	return d.settleFor(ctx, group, "")
}

// settleFor is settle for a connection that waits for the outcome: only what fails
// for this one is an error, the rest is tried again by a job.
func (d *Dialect) settleFor(ctx context.Context, group string, self gateway.Conn) error {
	err := d.settle(ctx, group)
	var failed *postError
	if !errors.As(err, &failed) || slices.Contains(failed.conns, self) {
		return err
	}
	d.core.Log().WarnContext(ctx, "some peers could not be told, trying again", "error", failed.err)
	return d.settleLater(ctx, group, d.core.Now().Add(notNow+time.Second))
}

// settleLater has a job settle.
func (d *Dialect) settleLater(ctx context.Context, group string, at time.Time) error {
	return d.core.Later(ctx, d, jobSettle, []byte(group), at)
}
