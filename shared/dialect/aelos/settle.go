package aelos

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"blindpost/shared/base/backoff"
	"blindpost/shared/gateway"
	"blindpost/shared/table"
)

// How the peers are brought up to date. The roster says what each connection is to know
// and what it was told. One handler at a time posts the difference, in one order: it
// holds a lease, which is in the roster too. Other handlers wait for it, because it also
// posts what they have changed. If it dies, it is not known what it has posted: when the
// lease has run out, the next handler posts everything again. If it is so slow that its
// lease runs out, its posts may arrive after those of the next handler; it notices that
// when it returns the lease, and has the peers told again, after the next handler if that
// is still at work (lease.Mixed). The handler with the lease also closes the replaced
// connections of the boat, again until that succeeds.

// lease is the right to post what the roster says.
type lease struct {
	ID    string `json:"i"`
	Until int64  `json:"u"` // milliseconds
	// Tags are those that the boat may be told of under the lease for the first time;
	// Viewers are the tags of the viewers that may be told about the boat.
	Tags    []tag `json:"t,omitempty"`
	Viewers []tag `json:"v,omitempty"`
	// Mixed says that posts under an earlier lease may have arrived between those under
	// this one: what a peer was told last is not known.
	Mixed bool `json:"m,omitempty"`
}

const (
	leaseTime = 15 * time.Second
	// leaseMargin is how long before the end of the lease nothing more is posted: longer
	// than two posts, because a peer gets at most two.
	leaseMargin = 2*postTime + time.Second
	// postTime is how long a post to one peer may take, because the others wait for it.
	postTime = 2 * time.Second
	// retryAfter is how long a viewer gets no posts after one has failed.
	retryAfter = 5 * time.Second
	// settleAfter is when a job settles what a handler has changed, in case the handler
	// has died before it did so itself.
	settleAfter = leaseTime + 5*time.Second
	// settleWait is how long to wait for the lease of another handler.
	settleWait = leaseTime + time.Second
)

// settled reports whether there is no lease, and nothing to post or to close now.
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

// due reports whether a viewer is to be told about the boat.
func (r *roster) due(v *viewer, now time.Time) bool {
	return v.Said != r.status() && now.UnixMilli() >= v.NotBefore
}

// welcomed are the tags of the viewers that have their welcome. The boat is not told of
// the others yet, because it sends to a viewer as soon as it knows the tag.
func (r *roster) welcomed() []tag {
	tags := make([]tag, 0, len(r.Viewers))
	for i := range r.Viewers {
		if r.Viewers[i].Said != saidNothing {
			tags = append(tags, r.Viewers[i].Tag)
		}
	}
	return tags
}

// deltas are the tags to attach and to detach until the boat knows exactly these. A new
// connection is told of all viewers, and to forget all that have left: the boat may be a
// new process, or one that still has their keys.
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
		if !slices.Contains(r.Told, f.Tag) && !slices.Contains(known, f.Tag) {
			detach = append(detach, f.Tag)
		}
	}
	return attach, detach
}

// postError says that posts to some connections have failed, to be tried again.
type postError struct {
	conns []gateway.Conn
	err   error
}

func (e *postError) Error() string { return "failed to bring a peer up to date: " + e.err.Error() }
func (e *postError) Unwrap() error { return e.err }

// settle returns when all peers were told what was in the roster when it was called. A
// *postError means that this has failed for some.
func (d *Dialect) settle(ctx context.Context, group string) error {
	// Within one process the lock does what the lease does between processes.
	release, err := d.core.Hold(ctx, group, "")
	if err != nil {
		return err
	}
	defer release()
	deadline := d.core.Now().Add(settleWait)
	for pause := 5 * time.Millisecond; ; {
		r, free, err := d.takeLease(ctx, group)
		if err != nil || r == nil {
			return err
		}
		if !free {
			if !d.core.Now().Before(deadline) {
				return fmt.Errorf("failed to bring the peers of a boat up to date: %w", table.ErrBusy)
			}
			if err := backoff.Sleep(ctx, pause); err != nil {
				return err
			}
			pause = min(2*pause, 250*time.Millisecond)
			continue
		}
		news := d.tell(ctx, r)
		if err := d.returnLease(ctx, r, news); err != nil {
			return err
		}
		if news.failed != nil {
			return news.failed
		}
	}
}

// takeLease takes the lease. It returns nil if there is nothing to post, and false if
// another handler has the lease.
func (d *Dialect) takeLease(ctx context.Context, group string) (*roster, bool, error) {
	free := false
	r, _, err := d.change(ctx, group, func(r *roster) bool {
		now := d.core.Now()
		free = r.Lease == nil || now.UnixMilli() >= r.Lease.Until || r.Lease.Until > now.Add(2*leaseTime).UnixMilli()
		if r.settled(now) || r.empty() || !free {
			return false
		}
		r.endLease()
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

// endLease ends a lease that has run out: what may have been posted under it is to be
// posted again.
func (r *roster) endLease() {
	if r.Lease == nil {
		return
	}
	r.addTold(r.Lease.Tags)
	for i := range r.Viewers {
		if v := &r.Viewers[i]; slices.Contains(r.Lease.Viewers, v.Tag) {
			v.markUncertain()
		}
	}
	r.Lease = nil
	if r.Boat != nil {
		r.Boat.Listed = false
	}
}

// addTold adds tags that the boat may have been told of.
func (r *roster) addTold(tags []tag) {
	for _, t := range tags {
		if !slices.Contains(r.Told, t) {
			r.Told = append(r.Told, t)
		}
	}
}

// returnLease writes what was posted into the roster, and ends the lease.
func (d *Dialect) returnLease(ctx context.Context, lent *roster, n *announcements) error {
	_, _, err := d.change(ctx, lent.group, func(r *roster) bool {
		for _, c := range n.gone {
			r.remove(c)
		}
		if r.Lease == nil || r.Lease.ID != lent.Lease.ID {
			late := n.markUncertain(r)
			if late && r.Lease != nil {
				r.Lease.Mixed = true // or its handler would take its own posts for the last ones
			}
			return late || len(n.gone) > 0
		}
		n.noteWelcomes(r)
		if r.Lease.Mixed {
			r.addTold(n.tried)
			r.endLease()
			return true
		}
		r.Lease = nil
		for i := range r.Viewers {
			v := &r.Viewers[i]
			if s, ok := n.viewers[v.Conn]; ok {
				v.Said, v.NotBefore = s, 0
			} else if n.failedTo(v.Conn) {
				v.NotBefore = d.core.Now().Add(retryAfter).UnixMilli()
				v.markUncertain()
			}
		}
		r.addTold(n.tried)
		if r.Boat != nil && n.failedTo(r.Boat.Conn) {
			r.Boat.Listed = false // it is not known which tags it got: it is told of all
		}
		switch {
		case n.boat == "":
		case r.Boat != nil && r.Boat.Conn == n.boat:
			over := slices.DeleteFunc(r.Told, func(t tag) bool { return slices.Contains(n.tags, t) })
			r.keep(over, d.core.Now())
			r.Boat.Welcome, r.Boat.Listed, r.Told = true, true, n.tags
		default:
			// The boat has another connection by now, or none: its next one is told of these.
			r.addTold(n.tags)
		}
		return true
	})
	return err
}

// markUncertain is returnLease for a handler whose lease has run out: its posts may have
// arrived after those of the next one, so that all its peers are to be told again.
func (n *announcements) markUncertain(r *roster) bool {
	changed := n.noteWelcomes(r)
	for i := range r.Viewers {
		v := &r.Viewers[i]
		if _, ok := n.viewers[v.Conn]; (ok || n.failedTo(v.Conn)) && v.markUncertain() {
			changed = true
		}
	}
	// A newer connection of the boat does not know the tags that an older one was told of.
	if r.Boat != nil && (r.Boat.Conn == n.boat || n.failedTo(r.Boat.Conn) || len(n.tried) > 0) {
		r.Boat.Listed, changed = false, true
	}
	if len(n.tried) > 0 {
		r.addTold(n.tried)
		changed = true
	}
	return changed
}

// settleOthers is settle for a handler that waits for no connection: a job tries again
// what fails.
func (d *Dialect) settleOthers(ctx context.Context, group string) error {
	return d.settleFor(ctx, group, "")
}

// settleFor is settle for a handler that waits for the posts to one connection: only a
// failure there is an error, a job tries the rest again.
func (d *Dialect) settleFor(ctx context.Context, group string, self gateway.Conn) error {
	err := d.settle(ctx, group)
	var failed *postError
	if !errors.As(err, &failed) || slices.Contains(failed.conns, self) {
		return err
	}
	d.core.Log().WarnContext(ctx, "some peers could not be told, trying again", "error", failed.err)
	return d.settleLater(ctx, group, d.core.Now().Add(retryAfter+time.Second))
}

func (d *Dialect) settleLater(ctx context.Context, group string, at time.Time) error {
	return d.core.Later(ctx, d, jobSettle, []byte(group), at)
}
