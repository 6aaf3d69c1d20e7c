package conformance

import (
	"testing"
	"time"

	wire "blindpost/shared/client/aelos"
)

var vanishing = []story{
	{Name: "Vanish_AViewerWithoutAFIN", Tell: vanishViewer, Own: &brisk, Needs: pings},
	{Name: "Vanish_ABoatWithoutAFIN", Tell: vanishBoat, Own: &brisk, Needs: pings},
	{Name: "Vanish_TheLastViewerFreesItsPlace", Tell: vanishPlace, Own: &brisk, Needs: pings},
	{Name: "Vanish_AnEndThatIsNeverTold", Tell: vanishUntold, Own: &roomy, Needs: mute},
}

var restarts = []story{
	{Name: "Restart_EverybodyComesBack", Tell: func(t *testing.T, r *relay) { comeBack(t, r, r.Restart) }, Own: &roomy, Needs: restart},
	{Name: "Kill_EverybodyComesBack", Tell: func(t *testing.T, r *relay) { comeBack(t, r, r.Kill) }, Own: &roomy, Needs: kill},
}

// A viewer whose network is gone, without a word: the boat is told, down to zero.
func vanishViewer(t *testing.T, r *relay) {
	b := r.boat(t)
	ship := b.dialAlone()
	wire1 := r.proxy(t)
	b.viewer(line{through: wire1}).wantStatus(true)
	tag := ship.wantAttach(1)
	wire1.Freeze()
	ship.wantDetach(tag, 0)
	ship.wantNothing()
}

// The same for a boat: its viewers are told; unless it has come back meanwhile, then
// they do not notice.
func vanishBoat(t *testing.T, r *relay) {
	b := r.boat(t)
	wire1 := r.proxy(t)
	ship := b.dialAlone(line{through: wire1})
	v, tag := b.watch(ship)
	wire1.Freeze()
	back := b.dial()
	back.wantRoster(tag)
	v.wantNothing()
	o := r.boat(t)
	wire2 := r.proxy(t)
	other := o.dialAlone(line{through: wire2})
	w, _ := o.watch(other)
	wire2.Freeze()

	// When the relay notices the old one, that is no news.
	time.Sleep(brisk.IdleTimeout + brisk.PingInterval) // nobody is told: there is nothing to wait for
	v.wantNothing()
	back.wantNothing()
	w.wantStatus(false)
	w.wantNothing()
}

// Where the relay may never be told that a connection has ended: it finds out when
// it has something to say to it, and then everybody is told as always.
func vanishUntold(t *testing.T, r *relay) {
	b, o := r.boat(t), r.boat(t)
	ship, gone, tag := b.watched()
	boat, v, _ := o.watched()
	r.Mute()
	gone.drop()
	for deadline := time.Now().Add(patience); len(ship.roster) > 0; {
		if time.Now().After(deadline) {
			t.Fatal("the boat is not told that its viewer has gone")
		}
		ship.sendPayload(tagged(wire.Snapshot, tag, 1, r.noise(60)))
		ship.settle()
	}
	boat.drop()
	for deadline := time.Now().Add(patience); ; {
		if time.Now().After(deadline) {
			t.Fatal("the viewer is not told that the boat has gone")
		}
		v.send(wire.Hs1{E: "anybody there"})
		v.send(wire.Ping{})
		refused, told, ponged := false, false, false
		for !ponged {
			e := v.frame("boat-offline, boat-status or pong")
			switch c := e.control.(type) {
			case wire.Pong:
				ponged = true
			case wire.Error:
				refused = c.Code == wire.CodeBoatOffline
			case wire.BoatStatus:
				told = !c.Online
			default:
				v.instead("boat-offline, boat-status or pong", e)
			}
		}
		if refused && !told {
			v.wantStatus(false)
		}
		if refused {
			break
		}
	}
	v.wantNothing()
	v.sendPayload(untagged(wire.Command, 1, r.noise(60)))
	v.wantResult()
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
	wire1.Freeze()
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
