package aelos

import (
	"context"
	"errors"
	"slices"
	"sync"

	"blindpost/shared/gateway"
)

// announcements are what was posted under a lease, and which connections were found gone
// or were closed.
type announcements struct {
	mu      sync.Mutex
	viewers map[gateway.Conn]said
	gone    []gateway.Conn
	boat    gateway.Conn // "" if it was not told
	tags    []tag        // the tags that it knows now
	failed  *postError
	// welcomed are the connections whose welcome was posted, whether or not the posts
	// after it have failed.
	welcomed []gateway.Conn
	// tried are the tags that the boat may know although the post has failed: a front
	// may have sent what it reports as failed.
	tried []tag
}

// failedTo reports whether a post to a connection has failed, so that it is not known
// what the peer got.
func (n *announcements) failedTo(c gateway.Conn) bool {
	return n.failed != nil && slices.Contains(n.failed.conns, c)
}

func (n *announcements) failedFor(c gateway.Conn, err error) {
	if errors.Is(err, gateway.ErrGone) {
		n.gone = append(n.gone, c)
		return
	}
	if n.failed == nil {
		n.failed = &postError{}
	}
	n.failed.conns = append(n.failed.conns, c)
	n.failed.err = errors.Join(n.failed.err, err)
}

// noteWelcomes writes into the roster which peers have their welcome, even if a later
// post to them has failed: a welcome is posted twice only after a crash or a failure of
// the first post. It reports whether it has changed the roster.
func (n *announcements) noteWelcomes(r *roster) (changed bool) {
	for i := range r.Viewers {
		if v := &r.Viewers[i]; v.Said == saidNothing && slices.Contains(n.welcomed, v.Conn) {
			v.Said, changed = saidUncertain, true
		}
	}
	if r.Boat != nil && !r.Boat.Welcome && slices.Contains(n.welcomed, r.Boat.Conn) {
		r.Boat.Welcome, changed = true, true
	}
	return changed
}

// tell posts what the roster says is to be posted. First it closes replaced connections
// and welcomes new viewers, because the boat may send to a viewer as soon as it knows the
// tag. Then it posts to all others at the same time, so that none waits for a slow one.
func (d *Dialect) tell(ctx context.Context, r *roster) *announcements {
	n := &announcements{viewers: make(map[gateway.Conn]said)}
	known := r.welcomed()
	if d.leaseEnding(r) {
		return n
	}
	var wg sync.WaitGroup
	for _, c := range r.Replaced {
		wg.Go(func() { d.closeReplaced(ctx, c, n) })
	}
	d.tellViewers(ctx, r, n, func(v *viewer) bool { return v.Said == saidNothing })
	wg.Wait()
	for i := range r.Viewers {
		if v := &r.Viewers[i]; v.Said == saidNothing && slices.Contains(n.welcomed, v.Conn) {
			known = append(known, v.Tag)
		}
	}
	if d.leaseEnding(r) {
		return n
	}
	if r.Boat != nil {
		wg.Go(func() { d.tellBoat(ctx, r, n, known) })
	}
	d.tellViewers(ctx, r, n, func(v *viewer) bool { return v.Said != saidNothing })
	wg.Wait()
	return n
}

// tellViewers posts to the viewers that are due and that which selects, all at once.
func (d *Dialect) tellViewers(ctx context.Context, r *roster, n *announcements, which func(*viewer) bool) {
	var wg sync.WaitGroup
	for i := range r.Viewers {
		v := &r.Viewers[i]
		if !which(v) || !slices.Contains(r.Lease.Viewers, v.Tag) {
			continue
		}
		wg.Go(func() {
			err := d.tellViewer(ctx, v, r.status(), n)
			n.mu.Lock()
			defer n.mu.Unlock()
			if err != nil {
				n.failedFor(v.Conn, err)
				return
			}
			n.viewers[v.Conn] = r.status()
		})
	}
	wg.Wait()
}

// closeReplaced closes a connection of the boat that a newer one has replaced.
func (d *Dialect) closeReplaced(ctx context.Context, c gateway.Conn, n *announcements) {
	ctx, cancel := context.WithTimeout(ctx, postTime)
	defer cancel()
	err := d.close(ctx, c, gateway.CloseReplaced, replacedText)
	n.mu.Lock()
	defer n.mu.Unlock()
	if err != nil {
		n.failedFor(c, err)
		return
	}
	n.gone = append(n.gone, c)
}

// leaseEnding reports whether the lease may end during the next posts.
func (d *Dialect) leaseEnding(r *roster) bool {
	return d.core.Now().Add(leaseMargin).UnixMilli() >= r.Lease.Until
}

// tellPost is post within postTime.
func (d *Dialect) tellPost(ctx context.Context, c gateway.Conn, v any) error {
	ctx, cancel := context.WithTimeout(ctx, postTime)
	defer cancel()
	return d.post(ctx, c, v)
}

// welcome posts the first frame to a connection.
func (d *Dialect) welcome(ctx context.Context, c gateway.Conn, proto int, n *announcements) error {
	if err := d.tellPost(ctx, c, welcomeFrame{T: typeWelcome, Proto: proto}); err != nil {
		return err
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.welcomed = append(n.welcomed, c)
	return nil
}

func (d *Dialect) tellViewer(ctx context.Context, v *viewer, now said, n *announcements) error {
	if v.Said == saidNothing {
		if err := d.welcome(ctx, v.Conn, v.Proto, n); err != nil {
			return err
		}
	}
	return d.tellPost(ctx, v.Conn, boatStatusFrame{T: typeBoatStatus, Online: now == saidOnline})
}

func (d *Dialect) tellBoat(ctx context.Context, r *roster, n *announcements, known []tag) {
	attach, detach := r.deltas(known)
	var err error
	if !r.Boat.Welcome {
		err = d.welcome(ctx, r.Boat.Conn, r.Boat.Proto, n)
	}
	if err == nil && (!r.Boat.Listed || len(attach) > 0 || len(detach) > 0) {
		err = d.tellPost(ctx, r.Boat.Conn, viewersFrame{
			T: typeViewers, Count: len(known), Attach: tagStrings(attach), Detach: tagStrings(detach),
		})
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if err != nil {
		n.failedFor(r.Boat.Conn, err)
		n.tried = attach
		return
	}
	n.boat, n.tags = r.Boat.Conn, known
}

func tagStrings(tags []tag) []string {
	var out []string
	for _, t := range tags {
		out = append(out, t.String())
	}
	return out
}
