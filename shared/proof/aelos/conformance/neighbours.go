package conformance

import (
	"testing"

	wire "blindpost/shared/client/aelos"
)

var neighbours = []story{
	{Name: "Neighbours_NeverMix", Tell: neighboursMany},
	{Name: "Neighbours_TwoOrgsOneBoatID", Tell: neighboursOrgs},
	{Name: "Neighbours_IDsThatLookAlike", Tell: neighboursAlike},
}

// Many boats side by side, with sessions: what is not for a viewer does not come,
// and would not open.
func neighboursMany(t *testing.T, r *relay) {
	var crews []*crew
	for range 12 {
		crews = append(crews, r.boat(t).crew(2))
	}
	for i := range 8 {
		var texts [][]byte
		for _, c := range crews {
			texts = append(texts, r.plain("snapshot %d of %s of %s", i, c.id, c.org))
			c.send(texts[len(texts)-1])
		}
		for k, c := range crews {
			c.read(texts[k])
		}
		for _, c := range crews {
			c.command(c.viewers[i%2], r.plain("command %d to %s of %s", i, c.id, c.org))
		}
	}
	for _, c := range crews {
		c.ship.wantNothing()
		for _, w := range c.viewers {
			w.wantNothing()
		}
	}
}

// The same boat id in two organisations is two boats.
func neighboursOrgs(t *testing.T, r *relay) {
	apart(t, r, func(mine, other *boat) { other.id = mine.id })
}

// Names that become one another when they are put together carelessly.
func neighboursAlike(t *testing.T, r *relay) {
	for _, c := range []struct{ org, id, otherOrg, otherID string }{
		{"a", "b/c", "a/b", "c"}, {"a", "b:c", "a:b", "c"}, {"a", "b|c", "a|b", "c"}, {"ab", "c", "a", "bc"},
		{"a#", "b", "a", "#b"}, {"a", "b\x00c", "a\x00b", "c"}, {"a", "B", "a", "b"}, {"a", "b ", "a", "b"},
		{"a.", "b", "a", ".b"}, {"a%2F", "b", "a/", "b"}, {"a", "%62", "a", "b"},
		{"a", "\u00e9", "a", "e\u0301"},
	} {
		apart(t, r, func(mine, other *boat) {
			// The number keeps runs apart: it is the same for both.
			n := mine.id
			mine.org, mine.id, other.org, other.id = n+c.org, c.id+n, n+c.otherOrg, c.otherID+n
		})
	}
}

// apart makes two boats and checks that they never meet.
func apart(t *testing.T, r *relay, name func(mine, other *boat)) {
	t.Helper()
	mine, other := r.boat(t), r.boat(t)
	name(mine, other)
	ship, v, tag := mine.watched()
	waiting := other.controller()
	waiting.wantStatus(false) // my boat is not theirs
	theirs := other.dial()
	theirs.viewers()
	waiting.wantStatus(true)
	if len(theirs.roster) != 1 {
		t.Fatalf("their boat is told of %d viewers", len(theirs.roster))
	}
	v.wantNothing()
	ship.wantNothing() // nobody has taken its place
	body, theirBody := r.noise(60), r.noise(60)
	ship.sendPayload(tagged(wire.Snapshot, tag, 1, body))
	ship.sendPayload(tagged(wire.Snapshot, theirs.roster[0], 1, body))
	theirs.sendPayload(tagged(wire.Snapshot, theirs.roster[0], 2, theirBody))
	v.wantPayload(untagged(wire.Snapshot, 1, body))
	waiting.wantPayload(untagged(wire.Snapshot, 2, theirBody))
	v.sendPayload(untagged(wire.Command, 1, body))
	ship.wantPayload(tagged(wire.Command, tag, 1, body))
	theirs.close()
	waiting.wantStatus(false)
	for _, p := range []*peer{ship, v, waiting} {
		p.wantNothing()
	}
}
