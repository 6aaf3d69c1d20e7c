package conformance

import (
	"testing"

	wire "blindpost/shared/client/aelos"
)

var takeovers = []story{
	{Name: "Takeover_ViewersDoNotNotice", Tell: takeoverQuiet},
	{Name: "Takeover_AgainAndAgain", Tell: takeoverOften},
	{Name: "Takeover_TheOldConnectionIsHistory", Tell: takeoverOld},
	{Name: "Takeover_KeepsSessions", Tell: takeoverSessions},
	{Name: "Takeover_ByAnotherProto", Tell: takeoverProto},
}

// A boat that connects again before it was missed: viewers are not told that it
// was away, and it is told who watches.
func takeoverQuiet(t *testing.T, r *relay) {
	b := r.boat(t)
	ship, v, tag := b.watched()
	w, other := b.watch(ship)
	again := b.dial()
	again.wantRoster(tag, other)
	ship.wantEnd()
	body := r.noise(60)
	again.sendPayload(tagged(wire.Snapshot, tag, 1, body))
	v.wantPayload(untagged(wire.Snapshot, 1, body))
	v.sendPayload(untagged(wire.Command, 1, body))
	again.wantPayload(tagged(wire.Command, tag, 1, body))
	again.wantNothing()
	v.wantNothing()
	w.wantNothing()
}

func takeoverOften(t *testing.T, r *relay) {
	b := r.boat(t)
	ship, v, tag := b.watched()
	for i := range uint64(20) {
		again := b.dial()
		again.wantRoster(tag)
		body := r.noise(60)
		again.sendPayload(tagged(wire.Snapshot, tag, i, body))
		v.wantPayload(untagged(wire.Snapshot, i, body))
		ship.wantEnd()
		ship = again
	}
	v.wantNothing()
	late, lateTag := b.watch(ship)
	late.close()
	ship.wantDetach(lateTag, 1)
	ship.close()
	v.wantStatus(false)
}

// What the old connection still says counts for nothing, and its end changes
// nothing.
func takeoverOld(t *testing.T, r *relay) {
	b := r.boat(t)
	wire1 := r.proxy(t)
	ship := b.dialAlone(line{through: wire1})
	v, tag := b.watch(ship)
	wire1.Freeze()
	again := b.dial()
	again.wantRoster(tag)
	// These are on the way when the network comes back.
	ship.sendPayload(tagged(wire.Snapshot, tag, 1, []byte("from the past")))
	ship.send(wire.Hs2{VS: tag.String(), E: "from the past", S: "s"})
	wire1.Thaw()
	ship.wantEnd()
	body := r.noise(60)
	again.sendPayload(tagged(wire.Snapshot, tag, 2, body))
	v.wantPayload(untagged(wire.Snapshot, 2, body))
	v.wantNothing()
	again.wantNothing()
}

// The sessions of those who stayed are good on the new connection.
func takeoverSessions(t *testing.T, r *relay) {
	c := r.boat(t).crew(2)
	c.publish(r.plain("before, on %s", c.id))
	old := c.ship
	c.embark()
	old.wantEnd()
	if c.helm.Watchers() != 2 {
		t.Fatalf("it is told of %d viewers", c.helm.Watchers())
	}
	c.publish(r.plain("after, on %s", c.id))
	c.command(c.viewers[0], r.plain("a command to %s", c.id))
	for _, w := range c.viewers {
		w.wantNothing()
	}
}

// A boat that comes back with the other proto is treated by that.
func takeoverProto(t *testing.T, r *relay) {
	b := r.boat(t)
	ship, v, tag := b.watched()
	old := b.dialProto(1)
	old.wantRoster(tag)
	ship.wantEnd()
	v.sendPayload(untagged(wire.Command, 1, r.noise(60)))
	v.wantResult()
	old.wantNothing()
	again := b.dial()
	again.wantRoster(tag)
	old.wantEnd()
	body := r.noise(60)
	v.sendPayload(untagged(wire.Command, 2, body))
	again.wantPayload(tagged(wire.Command, tag, 2, body))
	v.wantNothing()
}
