package conformance

import (
	"fmt"
	"testing"

	wire "blindpost/shared/client/aelos"
)

var section4 = []story{
	{Name: "Section4_TagIsSplicedAndStripped", Tell: payloadTags},
	{Name: "Section4_EachCopyToItsViewer", Tell: payloadCopies},
	{Name: "Section4_Order", Tell: payloadOrder},
	{Name: "Section4_TagOfNobody", Tell: payloadNobody},
	{Name: "Section4_TypesOfTheOtherLeg", Tell: payloadWrongLeg},
	{Name: "Section4_UnknownTypes", Tell: payloadUnknown},
	{Name: "Section4_ShortFrames", Tell: payloadShort},
}

// Four types, two layouts: the relay edits the tag and nothing else, whatever
// follows it.
func payloadTags(t *testing.T, r *relay) {
	b := r.boat(t)
	ship, v, tag := b.watched()
	for i, body := range [][]byte{
		{}, {0}, r.noise(16), r.noise(17), r.noise(1000), r.noise(32 << 10), []byte(`{"t":"ping"}`), make([]byte, 64),
	} {
		counter := uint64(i) << 56 // the relay does not look at counters
		for _, ty := range []wire.Type{wire.Snapshot, wire.Outcome} {
			ship.sendPayload(tagged(ty, tag, counter, body))
			v.wantPayload(untagged(ty, counter, body))
		}
		for _, ty := range []wire.Type{wire.Command, wire.Identify} {
			v.sendPayload(untagged(ty, counter, body))
			ship.wantPayload(tagged(ty, tag, counter, body))
		}
	}
	ship.wantNothing()
	v.wantNothing()
}

// The tag says on which socket a copy belongs.
func payloadCopies(t *testing.T, r *relay) {
	b := r.boat(t)
	ship := b.dialAlone()
	var all []*peer
	for range maxViewers {
		v, _ := b.watch(ship)
		all = append(all, v)
	}
	for round := range uint64(5) {
		bodies := make([][]byte, maxViewers)
		for i, tag := range ship.roster {
			bodies[i] = r.noise(200 + i)
			ship.sendPayload(tagged(wire.Snapshot, tag, round, bodies[i]))
		}
		for i, v := range all {
			v.wantPayload(untagged(wire.Snapshot, round, bodies[i]))
		}
	}
	for i, v := range all {
		body := []byte(fmt.Sprint("outcome ", i))
		ship.sendPayload(tagged(wire.Outcome, ship.roster[i], 9, body))
		v.wantPayload(untagged(wire.Outcome, 9, body))
		v.wantNothing()
	}
	ship.wantNothing()
}

// What a boat sends arrives in that order, payload and control frames alike, and
// so does what a viewer sends.
func payloadOrder(t *testing.T, r *relay) {
	b := r.boat(t)
	ship, v, tag := b.watched()
	const rounds = 40
	for i := range uint64(rounds) {
		ship.sendPayload(tagged(wire.Snapshot, tag, 2*i, r.noise(20)))
		ship.send(wire.Hs2{VS: tag.String(), E: fmt.Sprint(i), S: "s"})
		ship.sendPayload(tagged(wire.Outcome, tag, 2*i+1, r.noise(20)))
	}
	for i := range uint64(rounds) {
		v.wantCounter(wire.Snapshot, 2*i)
		if got := wantControl[wire.Hs2](v); got.E != fmt.Sprint(i) {
			t.Fatalf("hs2 %s comes at %d", got.E, i)
		}
		v.wantCounter(wire.Outcome, 2*i+1)
	}
	for i := range uint64(rounds) {
		v.sendPayload(untagged(wire.Command, 2*i, r.noise(20)))
		v.send(wire.Hs1{E: fmt.Sprint(i)})
		v.sendPayload(untagged(wire.Identify, 2*i+1, r.noise(20)))
	}
	for i := range uint64(rounds) {
		ship.wantCounter(wire.Command, 2*i)
		if got := wantControl[wire.Hs1](ship); got.E != fmt.Sprint(i) {
			t.Fatalf("hs1 %s comes at %d", got.E, i)
		}
		ship.wantCounter(wire.Identify, 2*i+1)
	}
}

// wantCounter wants a payload of this type with this counter, on either side of
// the relay.
func (p *peer) wantCounter(ty wire.Type, counter uint64) {
	p.t.Helper()
	what := fmt.Sprintf("payload %#02x number %d", byte(ty), counter)
	e := p.frame(what)
	gotType, got, _, err := wire.SplitUntagged(e.message.Data)
	if len(p.roster) > 0 {
		gotType, _, got, _, err = wire.SplitTagged(e.message.Data)
	}
	if e.message.Text || err != nil || gotType != ty || got != counter {
		p.instead(what, e)
	}
}

// A tag of nobody costs nothing: a viewer may have left while the frame was on its
// way. A tag of another boat's viewer is a tag of nobody.
func payloadNobody(t *testing.T, r *relay) {
	b, o := r.boat(t), r.boat(t)
	ship, v, tag := b.watched()
	gone, goneTag := b.watch(ship)
	gone.close()
	ship.wantDetach(goneTag, 1)
	others := o.dialAlone()
	stranger, strangeTag := o.watch(others)
	for _, ty := range []wire.Type{wire.Snapshot, wire.Outcome} {
		for _, nobody := range []wire.Tag{strangeTag, goneTag, {}, {0xff, 0xff, 0xff, 0xff}, {1, 2, 3, 4}} {
			ship.sendPayload(tagged(ty, nobody, 1, r.noise(50)))
		}
	}
	body := r.noise(50)
	ship.sendPayload(tagged(wire.Snapshot, tag, 2, body))
	v.wantPayload(untagged(wire.Snapshot, 2, body))
	ship.wantNothing()
	for _, p := range []*peer{v, stranger, others} {
		p.wantNothing()
	}
}

// payloadRefused lets a boat, or a viewer who may send commands, send a frame of
// which nothing must reach the other end.
func payloadRefused(t *testing.T, r *relay, fromBoat bool, refused func(*peer), frame func(tag wire.Tag) []byte) {
	t.Helper()
	b := r.boat(t)
	ship, v, tag := b.watched()
	bad := frame(tag)
	ship.name, v.name = fmt.Sprintf("%s (%.8x)", ship.name, bad), fmt.Sprintf("%s (%.8x)", v.name, bad)
	if fromBoat {
		ship.sendPayload(bad)
		refused(ship)
		ship.close()
		v.wantStatus(false)
		v.wantNothing()
	} else {
		v.sendPayload(bad)
		refused(v)
		v.close()
		ship.wantDetach(tag, 0)
		ship.wantNothing()
	}
}

// protoError wants the peer to be told of a protocol error and hung up on.
func protoError(p *peer) { p.t.Helper(); p.wantRefusal(wire.CodeProto) }

// protoErrorOrNothing takes silence as well.
func protoErrorOrNothing(p *peer) {
	p.t.Helper()
	p.sendText(`{"t":"ping"}`)
	e := p.frame("pong or a protocol error")
	switch c := e.control.(type) {
	case wire.Pong:
		return
	case wire.Error:
		if c.Code == wire.CodeProto {
			p.wantClosed()
			return
		}
	}
	p.instead("pong or a protocol error", e)
}

// A frame on the wrong leg is a protocol error.
func payloadWrongLeg(t *testing.T, r *relay) {
	for _, ty := range []wire.Type{wire.Command, wire.Identify} {
		payloadRefused(t, r, true, protoError, func(tag wire.Tag) []byte { return tagged(ty, tag, 1, r.noise(50)) })
	}
	for _, ty := range []wire.Type{wire.Snapshot, wire.Outcome} {
		payloadRefused(t, r, false, protoError, func(tag wire.Tag) []byte { return untagged(ty, 1, r.noise(50)) })
		payloadRefused(t, r, false, protoError, func(tag wire.Tag) []byte { return tagged(ty, tag, 1, r.noise(50)) })
	}
}

// There are four types. One of these is a control frame in a binary message.
// Whether the sender is told is open.
func payloadUnknown(t *testing.T, r *relay) {
	for _, ty := range []wire.Type{0x00, 0x05, 0x10, '{', 0x80, 0x81, 0xff} {
		payloadRefused(t, r, true, protoErrorOrNothing, func(tag wire.Tag) []byte { return tagged(ty, tag, 1, r.noise(50)) })
		payloadRefused(t, r, false, protoErrorOrNothing, func(tag wire.Tag) []byte { return untagged(ty, 1, r.noise(50)) })
	}
	payloadRefused(t, r, false, protoErrorOrNothing, func(wire.Tag) []byte { return []byte(`{"t":"hs1","vs":"","e":"x"}`) })
	payloadRefused(t, r, true, protoErrorOrNothing, func(tag wire.Tag) []byte {
		return []byte(`{"t":"hs2","vs":"` + tag.String() + `","e":"x","s":"y"}`)
	})
}

// A frame of a boat that has no room for a tag, of a viewer that has none for a
// type. Whether the sender is told is open.
func payloadShort(t *testing.T, r *relay) {
	for size := range 5 {
		if size == 0 && r.Base64 {
			continue // no text at all
		}
		for _, ty := range []wire.Type{wire.Snapshot, wire.Outcome} {
			payloadRefused(t, r, true, protoErrorOrNothing, func(tag wire.Tag) []byte { return tagged(ty, tag, 1, nil)[:size] })
		}
	}
	if !r.Base64 {
		payloadRefused(t, r, false, protoErrorOrNothing, func(wire.Tag) []byte { return nil })
	}
}
