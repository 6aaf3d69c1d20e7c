package conformance

import (
	"sync"
	"testing"
	"time"

	wire "blindpost/shared/client/aelos"
)

// The limits that the relay enforces.
const (
	maxPayload   = 64 << 10
	maxViewers   = 8
	helloTimeout = 5 * time.Second
)

var section2 = []story{
	{Name: "Section2_HelloInTime", Tell: section2Hello},
	{Name: "Section2_PayloadOfTheBoat", Tell: section2Boat},
	{Name: "Section2_PayloadOfAViewer", Tell: section2Viewer},
	{Name: "Section2_EightViewers", Tell: section2Eight},
	{Name: "Section2_EightViewersInARace", Tell: section2Race},
	{Name: "Section2_LivenessSweep", Tell: section2Sweep, Own: &brisk, Needs: pings},
}

// A hello within 5 s of connect; who has said it stays.
func section2Hello(t *testing.T, r *relay) {
	ship := r.boat(t).dialAlone()
	began := time.Now()
	silent := r.stranger(t, "silent", line{})
	silent.wantEnd()
	if took := time.Since(began); took < helloTimeout*9/10 || took > 3*helloTimeout {
		t.Errorf("closed after %v", took)
	}
	ship.wantNothing()
}

// 64 KB pass unharmed, a byte more does not, and only the boat pays for it.
func section2Boat(t *testing.T, r *relay) {
	b := r.boat(t)
	ship, v, tag := b.watched()
	body := r.noise(maxPayload - wire.TaggedHeader)
	ship.sendPayload(tagged(wire.Snapshot, tag, 1, body))
	v.wantPayload(untagged(wire.Snapshot, 1, body))
	ship.wantNothing()
	ship.sendPayload(tagged(wire.Snapshot, tag, 2, append(body, 0)))
	ship.wantEnd()
	v.wantStatus(false)
	v.wantNothing()
}

func section2Viewer(t *testing.T, r *relay) {
	b := r.boat(t)
	ship, v, tag := b.watched()
	body := r.noise(maxPayload - wire.TaggedHeader)
	v.sendPayload(untagged(wire.Command, 1, body))
	ship.wantPayload(tagged(wire.Command, tag, 1, body))
	v.sendPayload(untagged(wire.Command, 2, make([]byte, maxPayload+1-wire.UntaggedHeader)))
	v.wantEnd()
	ship.wantDetach(tag, 0)
	ship.wantNothing()
}

// The ninth viewer of a boat is one too many, until one leaves; it is nobody
// else's.
func section2Eight(t *testing.T, r *relay) {
	b := r.boat(t)
	ship := b.dialAlone()
	var all []*peer
	for range maxViewers {
		v, _ := b.watch(ship)
		all = append(all, v)
	}
	ninth := b.hello("ninth", 2, "viewer", wire.ControllerClaims(b.org, "ninth", b.id, inAnHour()))
	ninth.wantRefusal(wire.CodeLimit)
	for _, v := range all {
		v.wantNothing()
	}
	ship.wantNothing()

	// The same number on another boat, beside it.
	other := r.boat(t)
	others := other.dialAlone()
	other.watch(others)

	left := ship.roster[3]
	all[3].close()
	ship.wantDetach(left, maxViewers-1)
	b.watch(ship)
	again := b.hello("tenth", 2, "viewer", wire.ViewerClaims(b.org, "tenth", b.id, inAnHour()))
	again.wantRefusal(wire.CodeLimit)
	ship.wantNothing()
}

// Twenty come at once: eight get in.
func section2Race(t *testing.T, r *relay) {
	b := r.boat(t)
	ship := b.dialAlone()
	var all []*peer
	for range 20 {
		all = append(all, r.stranger(t, "one of twenty", line{}))
	}
	var wg sync.WaitGroup
	for _, p := range all {
		token := b.mint(wire.ViewerClaims(b.org, "one of twenty", b.id, inAnHour()))
		p.role.Store("viewer")
		hello := wire.Message{Text: true, Data: wire.Encode(wire.Hello{Proto: 2, Role: "viewer", Token: token})}
		wg.Go(func() {
			if err := p.post(hello); err != nil {
				t.Errorf("failed to say hello: %v", err)
			}
		})
	}
	wg.Wait()
	in := 0
	for _, p := range all {
		e := p.frame("welcome or limit")
		switch c := e.control.(type) {
		case wire.Welcome:
			in++
			p.wantStatus(true)
		case wire.Error:
			if c.Code != wire.CodeLimit {
				t.Errorf("refused with %q", c.Code)
			}
			p.wantClosed()
		default:
			p.instead("welcome or limit", e)
		}
	}
	if in != maxViewers {
		t.Errorf("%d were let in", in)
	}
	ship.settle()
	if len(ship.roster) != in {
		t.Errorf("the boat is told of %d", len(ship.roster))
	}
}

// Pings come of their own accord. Who answers stays although it says nothing
// else; who does not is gone, and the other side is told.
func section2Sweep(t *testing.T, r *relay) {
	b := r.boat(t)
	ship := b.dialAlone()
	quiet, _ := b.watch(ship)
	began := time.Now()
	deaf := b.viewer(line{deaf: true})
	deaf.wantStatus(true)
	tag := ship.wantAttach(2)
	other := r.boat(t)
	other.dialAlone(line{deaf: true})
	watching := other.viewer()
	watching.wantStatus(true)

	ship.wantDetach(tag, 1)
	if took := time.Since(began); took < brisk.IdleTimeout*9/10 {
		t.Errorf("gone after %v", took)
	}
	deaf.wantEnd()
	quiet.wantNothing()
	for deadline := time.Now().Add(patience); quiet.pings.Load() < 3; time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("pings do not come at their interval")
		}
	}
	quiet.wantNothing()
	watching.wantStatus(false)
	watching.wantNothing()
}
