package aelos

import (
	"context"
	"errors"
	"slices"
	"sync"

	"blindpost/shared/gateway"
)

// announcements are what has been told, and who was found gone or closed.
type announcements struct {
	mu      sync.Mutex
	viewers map[gateway.Conn]said
	gone    []gateway.Conn
	boat    gateway.Conn // "" if it was not told
	tags    []tag        // that it knows now
	failed  *postError
	// welcomed are those whose welcome was posted, whatever has become of the rest.
	welcomed []gateway.Conn
	// tried are the tags that the boat may know although telling it has failed: a front
	// may have sent what it reports as failed.
	tried []tag
}

// failedTo reports whether telling a connection has failed, so that nobody knows what it
// has heard.
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

// noteWelcomes writes down who has been welcomed, though telling more may have failed: a
// welcome comes twice only if nobody knows whether it has come. It reports whether that
// is news.
func (n *announcements) noteWelcomes(r *roster) (changed bool) {
	for i := range r.Viewers {
		if v := &r.Viewers[i]; v.Said == saidNothing && slices.Contains(n.welcomed, v.Conn) {
			v.Said, changed = saidUnsure, true
		}
	}
	if r.Boat != nil && !r.Boat.Welcome && slices.Contains(n.welcomed, r.Boat.Conn) {
		r.Boat.Welcome, changed = true, true
	}
	return changed
}

// tell posts what has to be told according to r. Replaced connections are closed and new
// viewers welcomed first: the boat may speak to them as soon as it knows of them. Then
// all others are told at the same time, so that nobody waits for one who reads slowly.
func (d *Dialect) tell(ctx context.Context, r *roster) *announcements {
	n := &announcements{viewers: make(map[gateway.Conn]said)}
	var known []tag
	for i := range r.Viewers {
		if v := &r.Viewers[i]; v.Said != saidNothing {
			known = append(known, v.Tag)
		}
	}
	if d.late(r) {
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
	if d.late(r) {
		return n
	}
	if r.Boat != nil {
		wg.Go(func() { d.tellBoat(ctx, r, n, known) })
	}
	d.tellViewers(ctx, r, n, func(v *viewer) bool { return v.Said != saidNothing })
	wg.Wait()
	return n
}

// tellViewers tells those viewers about the boat that are due and meant, all at once.
func (d *Dialect) tellViewers(ctx context.Context, r *roster, n *announcements, meant func(*viewer) bool) {
	var wg sync.WaitGroup
	for i := range r.Viewers {
		v := &r.Viewers[i]
		if !meant(v) || !slices.Contains(r.Lease.Viewers, v.Tag) {
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

// late says that the lease may end under the next post.
func (d *Dialect) late(r *roster) bool {
	return d.core.Now().Add(leaseMargin).UnixMilli() >= r.Lease.Until
}

// tellPost is post within the time that others wait for it.
func (d *Dialect) tellPost(ctx context.Context, c gateway.Conn, v any) error {
	ctx, cancel := context.WithTimeout(ctx, postTime)
	defer cancel()
	return d.post(ctx, c, v)
}

// welcome posts the first word to a connection.
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
			T: typeViewers, Count: len(known), Attach: texts(attach), Detach: texts(detach),
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

func texts(tags []tag) []string {
	var out []string
	for _, t := range tags {
		out = append(out, t.String())
	}
	return out
}
