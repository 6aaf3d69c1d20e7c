package conformance

import (
	"testing"
	"time"

	wire "blindpost/shared/client/aelos"
)

var section4Slow = []story{
	{Name: "Section4_SlowViewerLosesSnapshots", Tell: slowViewer, Needs: droppable},
	{Name: "Section4_SlowBoatLosesNoCommandInSilence", Tell: slowBoat, Needs: droppable},
}

// flood is more than the buffers of any network between here and the relay take
// in, and the relay's.
const (
	floodFrame  = 60 << 10
	floodFrames = 800
)

// A viewer that reads nothing loses snapshots. It does not slow down the boat nor
// another viewer, which loses none, and it does not lose a result without being
// told: when it reads again, the result is there.
func slowViewer(t *testing.T, r *relay) {
	b := r.boat(t)
	ship := b.dialAlone()
	good, goodTag := b.watch(ship)
	wire1 := r.proxy(t)
	slow := b.controller(line{through: wire1})
	slow.wantStatus(true)
	slowTag := ship.wantAttach(2)
	wire1.Freeze()
	body := r.noise(floodFrame)
	began := time.Now()
	sent := uint64(0)
	flood := func(frames, size int) {
		for range frames {
			sent++
			ship.sendPayload(tagged(wire.Snapshot, slowTag, sent, body[:size]))
			if sent%20 == 0 { // the other one keeps up, as it is not flooded
				ship.sendPayload(tagged(wire.Snapshot, goodTag, sent, body[:100]))
				good.wantPayload(untagged(wire.Snapshot, sent, body[:100]))
			}
		}
	}
	flood(floodFrames, floodFrame)
	// Smaller and smaller, until there is no room for what is as small as the outcome.
	for size := floodFrame; size > 16; size /= 4 {
		flood(20, size)
	}
	flood(200, 16)
	ship.sendPayload(tagged(wire.Outcome, slowTag, sent+1, []byte("anchor watch is armed")))
	ship.wantNothing()
	t.Logf("the boat sent %d MB past it in %v", floodFrames*floodFrame>>20, time.Since(began).Round(time.Millisecond))
	wire1.Thaw()
	got, last := uint64(0), uint64(0)
	for {
		e := slow.frame("snapshots, then the outcome")
		ty, counter, rest, err := wire.SplitUntagged(e.message.Data)
		if e.message.Text || err != nil || got > 0 && counter <= last {
			slow.instead("snapshots in their order", e)
		}
		if last = counter; ty == wire.Outcome {
			if string(rest) != "anchor watch is armed" {
				slow.instead("the outcome", e)
			}
			break
		}
		got++
	}
	if got == 0 || got == sent {
		t.Errorf("it got %d of %d snapshots: the test does not show what it should", got, sent)
	}
	// It is as good as new.
	ship.sendPayload(tagged(wire.Snapshot, slowTag, sent+2, body))
	slow.wantPayload(untagged(wire.Snapshot, sent+2, body))
	slow.wantNothing()
	good.wantNothing()
	ship.wantNothing()
}

// A boat that reads nothing is sent commands until there is no more room. Each of
// them arrives later, or is answered by the relay, or the boat is given up, and
// the viewer is told so.
func slowBoat(t *testing.T, r *relay) {
	b := r.boat(t)
	wire1 := r.proxy(t)
	ship := b.dialAlone(line{through: wire1})
	v := b.controller()
	v.wantStatus(true)
	ship.wantAttach(1)
	wire1.Freeze()
	body := r.noise(floodFrame)
	sent, answered, lost := 0, 0, false
	for sent < floodFrames && !lost {
		for range 20 {
			v.sendPayload(untagged(wire.Command, uint64(sent), body))
			sent++
		}
		v.send(wire.Ping{})
		for done := false; !done; {
			e := v.frame("pong, results, the boat's end")
			switch c := e.control.(type) {
			case wire.Pong:
				done = true
			case wire.Result:
				answered++
			case wire.BoatStatus:
				lost = !c.Online
			default:
				v.instead("pong, results, the boat's end", e)
			}
		}
	}
	if answered == 0 && !lost {
		t.Fatalf("%d commands of %d KB have found room: the test does not show what it should", sent, floodFrame>>10)
	}
	wire1.Thaw()
	arrived := 0
	if !lost {
		ship.send(wire.Ping{})
		for {
			e := ship.frame("commands, then pong")
			if _, ok := e.control.(wire.Pong); ok {
				break
			}
			if _, _, _, _, err := wire.SplitTagged(e.message.Data); e.message.Text || err != nil {
				ship.instead("commands", e)
			}
			arrived++
		}
		if arrived+answered != sent {
			t.Errorf("of %d commands %d arrived and %d were answered", sent, arrived, answered)
		}
	}
	t.Logf("of %d commands %d arrived, %d were answered by the relay; the boat was given up: %v", sent, arrived, answered, lost)
	v.wantNothing()
}
