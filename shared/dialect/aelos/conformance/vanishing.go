package conformance

import (
	"testing"
	"time"

	wire "blindpost/shared/dialect/aelos/peer"
)

var vanishing = []story{
	{name: "Vanish_AViewerWithoutAFIN", tell: vanishViewer, own: &brisk, needs: pings},
	{name: "Vanish_ABoatWithoutAFIN", tell: vanishBoat, own: &brisk, needs: pings},
	{name: "Vanish_TheLastViewerFreesItsPlace", tell: vanishPlace, own: &brisk, needs: pings},
}

var restarts = []story{
	{name: "Restart_EverybodyComesBack", tell: func(t *testing.T, r *relay) { comeBack(t, r, r.Restart) }, own: &roomy, needs: restart},
	{name: "Kill_EverybodyComesBack", tell: func(t *testing.T, r *relay) { comeBack(t, r, r.Kill) }, own: &roomy, needs: kill},
}

// A viewer whose network is gone, without a word: the boat is told, down to zero.
func vanishViewer(t *testing.T, r *relay) {
	b := r.boat(t)
	ship := b.dialAlone()
	wire1 := r.proxy(t)
	b.viewer(line{through: wire1}).wantStatus(true)
	tag := ship.wantAttach(1)
	wire1.freeze()
	ship.wantDetach(tag, 0)
	ship.wantNothing()
}

// The same for the boat; and it can come back meanwhile without its viewers
// noticing.
func vanishBoat(t *testing.T, r *relay) {
	b := r.boat(t)
	wire1 := r.proxy(t)
	ship := b.dialAlone(line{through: wire1})
	v, tag := b.watch(ship)
	wire1.freeze()
	back := b.dial()
	back.wantRoster(tag)
	v.wantNothing()
	// When the relay notices the old one, that is no news.
	time.Sleep(brisk.IdleTimeout + brisk.PingInterval) // nobody is told: there is nothing to wait for
	v.wantNothing()
	back.wantNothing()

	wire2 := r.proxy(t)
	again := b.dial(line{through: wire2})
	again.wantRoster(tag)
	wire2.freeze()
	v.wantStatus(false)
	v.wantNothing()
}

// Places of viewers that have vanished are free again.
func vanishPlace(t *testing.T, r *relay) {
	b := r.boat(t)
	ship := b.dialAlone()
	wire1 := r.proxy(t)
	for i := range maxViewers {
		b.viewer(line{through: wire1}).wantStatus(true)
		ship.wantAttach(i + 1)
	}
	wire1.freeze()
	for len(ship.roster) > 0 {
		ship.viewers()
	}
	for range maxViewers {
		b.watch(ship)
	}
	ship.wantNothing()
}

// After a restart the relay knows of nobody, and everybody comes back to what is
// as if it were new: no ghosts of viewers, no boat that is not there.
func comeBack(t *testing.T, r *relay, again func(*testing.T)) {
	b, o := r.boat(t), r.boat(t)
	ship, v, tag := b.watched()
	ghost, _ := b.watch(ship)
	other := o.dialAlone()
	again(t)
	for _, p := range []*peer{ship, v, ghost, other} {
		p.wantEnd()
	}
	back := b.viewer()
	back.wantStatus(false)
	sea := b.dial()
	if c := sea.viewers(); c.Count != 1 || len(c.Attach) != 1 || tagOf(c.Attach[0]) == tag {
		t.Fatalf("it is told %+v", c)
	}
	back.wantStatus(true)
	body := r.noise(60)
	sea.sendPayload(tagged(wire.Snapshot, sea.roster[0], 1, body))
	back.wantPayload(untagged(wire.Snapshot, 1, body))
	lonely := o.viewer()
	lonely.wantStatus(false)
	sea.wantNothing()
	back.wantNothing()
}
