package conformance

import (
	"fmt"
	"testing"

	wire "blindpost/shared/client/aelos"
)

var section3Tags = []story{
	{Name: "Section3_TagsAreRandom", Tell: tagsRandom},
	{Name: "Section3_Hs1IsGivenItsSendersTag", Tell: tagsHs1},
	{Name: "Section3_Hs2GoesToViewersOfThisBoat", Tell: tagsHs2},
	{Name: "Section3_HandshakesPassUnchanged", Tell: tagsBlobs},
	{Name: "Section3_Hs1WhileTheBoatIsAway", Tell: tagsAway},
}

// Tags are four random bytes: none comes twice, and every bit is sometimes set and
// sometimes not, which for 64 of them fails by chance once in 10^17 runs.
func tagsRandom(t *testing.T, r *relay) {
	seen := map[wire.Tag]bool{}
	var ones, zeros wire.Tag
	for range 8 {
		b := r.boat(t)
		ship := b.dialAlone()
		for range maxViewers {
			_, tag := b.watch(ship)
			if seen[tag] {
				t.Errorf("tag %s is given out twice", tag)
			}
			seen[tag] = true
			for i, v := range tag {
				ones[i] |= v
				zeros[i] |= ^v
			}
		}
	}
	if full := (wire.Tag{0xff, 0xff, 0xff, 0xff}); ones != full || zeros != full {
		t.Errorf("some bits of the tags are always the same: %s, %s", ones, zeros)
	}
}

// Whatever a viewer writes into vs: the boat reads the tag that the relay gave
// it.
func tagsHs1(t *testing.T, r *relay) {
	b := r.boat(t)
	ship := b.dialAlone()
	v, tag := b.watch(ship)
	_, other := b.watch(ship)
	for i, vs := range []string{tag.String(), other.String(), "", "00000000", "ffffffff", "no tag at all", `"}`} {
		e := fmt.Sprint("e", i)
		v.send(wire.Hs1{VS: vs, E: e})
		if got := wantControl[wire.Hs1](ship); got.VS != tag.String() || got.E != e {
			t.Errorf("vs %q becomes %+v", vs, got)
		}
	}
	ship.wantNothing()
}

// hs2 reaches the viewer that it names, and no other; with a tag of nobody, of
// another boat's viewer, or of one that has left, nobody.
func tagsHs2(t *testing.T, r *relay) {
	b, o := r.boat(t), r.boat(t)
	ship := b.dialAlone()
	v1, tag1 := b.watch(ship)
	v2, tag2 := b.watch(ship)
	gone, goneTag := b.watch(ship)
	gone.close()
	ship.wantDetach(goneTag, 2)
	others := o.dialAlone()
	stranger, strangeTag := o.watch(others)

	for _, tag := range []wire.Tag{strangeTag, goneTag, {0, 0, 0, 0}, {0xff, 0xff, 0xff, 0xff}} {
		ship.send(wire.Hs2{VS: tag.String(), E: "for nobody", S: "s"})
	}
	ship.send(wire.Hs2{VS: tag1.String(), E: "e1", S: "s1"})
	ship.send(wire.Hs2{VS: tag2.String(), E: "e2", S: "s2"})
	if got := wantControl[wire.Hs2](v1); got.E != "e1" || got.S != "s1" {
		t.Errorf("got %+v", got)
	}
	if got := wantControl[wire.Hs2](v2); got.E != "e2" || got.S != "s2" {
		t.Errorf("got %+v", got)
	}
	ship.wantNothing()
	for _, p := range []*peer{v1, v2, stranger, others} {
		p.wantNothing()
	}
}

// The relay does not look into e and s, whatever is in them.
func tagsBlobs(t *testing.T, r *relay) {
	b := r.boat(t)
	ship, v, tag := b.watched()
	long := make([]byte, 1500)
	for i := range long {
		long[i] = 'A' + byte(i%26)
	}
	for _, blob := range []string{
		"", " ", "plain", "+/+/AA==", "-_-_AA", `quotes " and \ and / `, "<&>", "ünïcödé ⛵", "\u2028 \u0000 \t\n", string(long),
	} {
		v.send(wire.Hs1{E: blob})
		if got := wantControl[wire.Hs1](ship); got.E != blob {
			t.Errorf("e %.40q becomes %.40q", blob, got.E)
		}
		ship.send(wire.Hs2{VS: tag.String(), E: blob, S: "s" + blob})
		if got := wantControl[wire.Hs2](v); got.E != blob || got.S != "s"+blob {
			t.Errorf("e %.40q becomes %.40q, s %.40q", blob, got.E, got.S)
		}
	}
}

// hs1 while the boat is away: the viewer is told, stays, and can try again.
func tagsAway(t *testing.T, r *relay) {
	b := r.boat(t)
	v := b.viewer()
	v.wantStatus(false)
	for range 3 {
		v.send(wire.Hs1{E: "too early"})
		v.wantError(wire.CodeBoatOffline)
	}
	v.wantNothing()
	ship := b.dial()
	ship.viewers()
	v.wantStatus(true)
	v.send(wire.Hs1{E: "now"})
	if got := wantControl[wire.Hs1](ship); got.E != "now" || len(ship.roster) != 1 || got.VS != ship.roster[0].String() {
		t.Errorf("got %+v", got)
	}
	ship.close()
	v.wantStatus(false)
	v.send(wire.Hs1{E: "too late"})
	v.wantError(wire.CodeBoatOffline)
	v.wantNothing()
}
