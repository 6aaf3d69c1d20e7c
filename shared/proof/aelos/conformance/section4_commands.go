package conformance

import (
	"fmt"
	"testing"

	wire "blindpost/shared/client/aelos"
)

var section4Commands = []story{
	{Name: "Section4_OnlyAControllerCommands", Tell: commandRole},
	{Name: "Section4_CommandWhileTheBoatIsAway", Tell: commandAway},
	{Name: "Section4_NoCommandToAProto1Boat", Tell: commandToProto1},
	{Name: "Section4_NoCommandFromAProto1Viewer", Tell: commandFromProto1},
	{Name: "Section4_EveryCommandArrivesOrIsAnswered", Tell: commandMany},
}

// Commands of who may only look do not reach the boat, whatever stands in place
// of the claim. What that viewer is told is open; the boat and the others are not
// bothered.
func commandRole(t *testing.T, r *relay) {
	b := r.boat(t)
	ship := b.dialAlone()
	boss := b.controller()
	boss.wantStatus(true)
	bossTag := ship.wantAttach(1)
	look := wire.ViewerClaims(b.org, "guest", b.id, inAnHour())
	for i, claims := range []wire.Claims{
		look, look.With("ctl", false), look.With("ctl", "true"), look.With("ctl", 1),
		look.With("ctl", map[string]any{"ctl": true}), look.With("CTL", true), look.With("Ctl", true),
		look.With("role2", "controller"), look.With("controller", true),
	} {
		for _, ty := range []wire.Type{wire.Command, wire.Identify} {
			guest := b.hello(fmt.Sprint("guest ", i), 2, "viewer", claims)
			guest.wantWelcome(2)
			guest.wantStatus(true)
			tag := ship.wantAttach(2)
			guest.sendPayload(untagged(ty, 1, r.noise(60)))
			guest.denied()
			guest.close()
			ship.wantDetach(tag, 1)
		}
	}
	boss.sendPayload(untagged(wire.Command, 1, []byte("mine")))
	ship.wantPayload(tagged(wire.Command, bossTag, 1, []byte("mine")))
	ship.wantNothing()
	boss.wantNothing()
}

// denied reads what a viewer is told whose command is not forwarded: an error,
// the relay's own answer, or nothing, and perhaps the end of the connection.
func (p *peer) denied() {
	p.t.Helper()
	p.sendText(`{"t":"ping"}`)
	for {
		e, err := p.next(patience)
		if err != nil || e.fault != nil {
			p.t.Fatalf("%s wants to be denied: %v, %v", p.name, err, e.fault)
		}
		if e.end != nil {
			return
		}
		switch e.control.(type) {
		case wire.Pong:
			return
		case wire.Error, wire.Result:
		default:
			p.instead("to be denied", e)
		}
	}
}

// A command to a boat that is not there is answered, by the relay.
func commandAway(t *testing.T, r *relay) {
	b := r.boat(t)
	v := b.controller()
	v.wantStatus(false)
	for _, ty := range []wire.Type{wire.Command, wire.Identify, wire.Command} {
		v.sendPayload(untagged(ty, 1, r.noise(60)))
		if ty == wire.Command {
			v.wantResult()
		} else {
			v.denied()
		}
	}
	v.wantNothing()
	ship := b.dial()
	ship.viewers()
	v.wantStatus(true)
	ship.wantNothing() // they were not kept for it
	ship.close()
	v.wantStatus(false)
	v.sendPayload(untagged(wire.Command, 2, r.noise(60)))
	v.wantResult()
	v.wantNothing()
}

// A boat of proto 1 is sent no command, but the viewer an answer. When the boat
// comes back with proto 2, it gets the next one.
func commandToProto1(t *testing.T, r *relay) {
	b := r.boat(t)
	old := b.dialAloneProto(1)
	v := b.controller()
	v.wantStatus(true)
	tag := old.wantAttach(1)
	v.sendPayload(untagged(wire.Command, 1, r.noise(60)))
	v.wantResult()
	v.sendPayload(untagged(wire.Identify, 2, r.noise(60)))
	v.denied()
	old.wantNothing()
	body := r.noise(60)
	old.sendPayload(tagged(wire.Snapshot, tag, 1, body))
	v.wantPayload(untagged(wire.Snapshot, 1, body))
	old.close()
	v.wantStatus(false)
	ship := b.dial()
	ship.wantRoster(tag)
	v.wantStatus(true)
	v.sendPayload(untagged(wire.Command, 3, body))
	ship.wantPayload(tagged(wire.Command, tag, 3, body))
}

// Proto 1 has no command: what a viewer of proto 1 sends does not arrive, even
// if its token would allow it.
func commandFromProto1(t *testing.T, r *relay) {
	b := r.boat(t)
	ship := b.dialAlone()
	for _, ty := range []wire.Type{wire.Command, wire.Identify} {
		v := b.controllerProto(1)
		v.wantStatus(true)
		tag := ship.wantAttach(1)
		v.sendPayload(untagged(ty, 1, r.noise(60)))
		v.denied()
		v.close()
		ship.wantDetach(tag, 0)
	}
	ship.wantNothing()
}

// Many commands of several viewers: each arrives, in its sender's order, under its
// sender's tag.
func commandMany(t *testing.T, r *relay) {
	b := r.boat(t)
	ship := b.dialAlone()
	const senders, commands = 4, 50
	var all []*peer
	for range senders {
		v := b.controller()
		v.wantStatus(true)
		ship.wantAttach(len(ship.roster) + 1)
		all = append(all, v)
	}
	for i := range uint64(commands) {
		for _, v := range all {
			v.sendPayload(untagged(wire.Command, i, []byte(v.name)))
		}
	}
	next := map[wire.Tag]uint64{}
	whose := map[wire.Tag]string{}
	for range senders * commands {
		e := ship.frame("a command")
		ty, tag, counter, body, err := wire.SplitTagged(e.message.Data)
		if e.message.Text || err != nil || ty != wire.Command {
			ship.instead("a command", e)
		}
		if whose[tag] == "" {
			whose[tag] = string(body)
		}
		if counter != next[tag] || whose[tag] != string(body) {
			t.Fatalf("command %d of %s comes under the tag of %s, who is at %d", counter, body, whose[tag], next[tag])
		}
		next[tag]++
	}
	if len(whose) != senders {
		t.Errorf("they came under %d tags", len(whose))
	}
	for _, v := range all {
		v.wantNothing() // no answer of the relay: they all arrived
	}
}
