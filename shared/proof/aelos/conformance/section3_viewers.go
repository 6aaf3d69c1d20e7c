package conformance

import (
	"testing"

	wire "blindpost/shared/client/aelos"
)

var section3Viewers = []story{
	{Name: "Section3_ViewersOnEveryChange", Tell: viewersChanges},
	{Name: "Section3_ViewersWithoutAGoodbye", Tell: viewersDropped},
	{Name: "Section3_ViewersBeforeTheBoat", Tell: viewersFirst},
	{Name: "Section3_BoatHearsWhoIsLeft", Tell: viewersLeft},
	{Name: "Section3_BoatHearsThatNobodyIsLeft", Tell: viewersNone},
	{Name: "Section3_ARefusedViewerIsNoViewer", Tell: viewersRefused},
	{Name: "Section3_SameUserTwice", Tell: viewersTwice},
}

// 0, 1, 2, 1, 2, 1, 0, 1: each change is told, with who it was.
func viewersChanges(t *testing.T, r *relay) {
	b := r.boat(t)
	ship := b.dialAlone()
	seen := map[wire.Tag]bool{}
	watch := func(count int) (*peer, wire.Tag) {
		v := b.viewer()
		v.wantStatus(true)
		tag := ship.wantAttach(count)
		if seen[tag] {
			t.Errorf("tag %s is given out again", tag)
		}
		seen[tag] = true
		return v, tag
	}
	leave := func(v *peer, tag wire.Tag, count int) {
		v.close()
		ship.wantDetach(tag, count)
	}
	first, firstTag := watch(1)
	second, secondTag := watch(2)
	leave(first, firstTag, 1)
	third, thirdTag := watch(2)
	leave(second, secondTag, 1)
	leave(third, thirdTag, 0)
	ship.wantNothing()
	watch(1)
	ship.wantNothing()
}

// A viewer whose connection breaks off is gone as well.
func viewersDropped(t *testing.T, r *relay) {
	b := r.boat(t)
	ship := b.dialAlone()
	stays, _ := b.watch(ship)
	v, tag := b.watch(ship)
	v.drop()
	ship.wantDetach(tag, 1)
	stays.wantNothing()
}

// A boat that comes later is told of those who wait.
func viewersFirst(t *testing.T, r *relay) {
	b := r.boat(t)
	var all []*peer
	for range 3 {
		v := b.viewer()
		v.wantStatus(false)
		all = append(all, v)
	}
	ship := b.dial()
	for len(ship.roster) < 3 {
		ship.viewers()
	}
	for i, v := range all {
		v.wantStatus(true)
		body := r.noise(40)
		ship.sendPayload(tagged(wire.Snapshot, ship.roster[i], 1, body))
	}
	// Each gets one of them, whichever; nobody gets two.
	for _, v := range all {
		if e := v.frame("a snapshot"); e.message.Text {
			v.instead("a snapshot", e)
		}
	}
	ship.wantNothing()
	for _, v := range all {
		v.wantNothing()
	}
}

// A boat that was away is told of exactly those who are still there, by the tags
// that they had.
func viewersLeft(t *testing.T, r *relay) {
	b := r.boat(t)
	ship := b.dialAlone()
	a, _ := b.watch(ship)
	c, cTag := b.watch(ship)
	ship.close()
	a.wantStatus(false)
	c.wantStatus(false)
	a.close()
	d := b.viewer()
	d.wantStatus(false)
	back := b.dial()
	for len(back.roster) != 2 {
		back.viewers() // that a has gone may still be on its way
	}
	c.wantStatus(true)
	d.wantStatus(true)
	if back.roster[0] != cTag && back.roster[1] != cTag {
		t.Errorf("who was attached all the time has another tag now")
	}
	body := r.noise(40)
	back.sendPayload(tagged(wire.Snapshot, cTag, 1, body))
	c.wantPayload(untagged(wire.Snapshot, 1, body))
	d.wantNothing()
}

// A boat that missed how the last viewer left is told that there is none:
// silence is never a signal.
func viewersNone(t *testing.T, r *relay) {
	b := r.boat(t)
	ship, v, _ := b.watched()
	ship.close()
	v.wantStatus(false)
	v.close()
	back := b.dial()
	for {
		if c := back.viewers(); c.Count == 0 {
			break
		}
	}
	back.wantNothing()
}

// Who is not let in is not told of.
func viewersRefused(t *testing.T, r *relay) {
	b := r.boat(t)
	ship := b.dialAlone()
	for _, c := range []wire.Claims{
		wire.ViewerClaims(b.org, "late", b.id, inAnHour().Add(-2*60*60*1e9)),
		wire.ViewerClaims("another org", "stranger", b.id, inAnHour()).With("role", "boat"),
	} {
		p := b.hello("refused", 2, "viewer", c)
		p.wantRefusal(wire.CodeAuth)
	}
	// Of another organisation: let in, but to another boat.
	p := b.hello("elsewhere", 2, "viewer", wire.ViewerClaims("another org", "stranger", b.id, inAnHour()))
	p.wantWelcome(2)
	p.wantStatus(false)
	ship.wantNothing()
}

// A tag is of an attachment, not of a user: the same one twice counts twice.
func viewersTwice(t *testing.T, r *relay) {
	b := r.boat(t)
	ship := b.dialAlone()
	claims := wire.ViewerClaims(b.org, "somebody", b.id, inAnHour())
	tags := map[wire.Tag]bool{}
	var all []*peer
	for i := range 3 {
		v := b.hello("somebody", 2, "viewer", claims)
		v.wantWelcome(2)
		v.wantStatus(true)
		tags[ship.wantAttach(i+1)] = true
		all = append(all, v)
	}
	if len(tags) != 3 {
		t.Errorf("there are %d tags", len(tags))
	}
	for _, v := range all {
		v.wantNothing()
	}
}
