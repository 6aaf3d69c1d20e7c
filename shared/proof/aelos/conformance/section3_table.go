package conformance

import (
	"fmt"
	"testing"

	wire "blindpost/shared/client/aelos"
)

var section3Table = tableStories()

// leg is a way that a control frame can take to the relay.
type leg struct {
	role string
	// takes says what of this the relay takes from this side.
	takes map[string]bool
}

// The first two columns of the table of who may send what. The other two are
// checked with every frame that the relay sends, see [peer.mayHear].
var legs = []leg{
	{"boat", map[string]bool{"hello": true, "hs2": true, "ping": true, "pong": true}},
	{"viewer", map[string]bool{"hello": true, "hs1": true, "ping": true, "pong": true}},
}

// tableFrames is one of each row.
func tableFrames(tag wire.Tag) []struct {
	name  string
	frame wire.Control
} {
	vs := tag.String()
	return []struct {
		name  string
		frame wire.Control
	}{
		{"hello", nil}, // said by everybody who is there
		{"welcome", wire.Welcome{Proto: 2}},
		{"error", wire.Error{Code: wire.CodeBoatOffline}},
		{"viewers", wire.Viewers{Count: 1, Attach: []string{vs}}},
		{"boat-status", wire.BoatStatus{Online: false}},
		{"hs1", wire.Hs1{VS: vs, E: "x"}},
		{"hs2", wire.Hs2{VS: vs, E: "x", S: "y"}},
		{"result", wire.Result{StatusCode: 503, Message: "not yours to say"}},
		{"ping", wire.Ping{}},
		{"pong", wire.Pong{}},
	}
}

// tableStories has one story for each cell of these columns and each proto.
func tableStories() (all []story) {
	for _, l := range legs {
		for i, row := range tableFrames(wire.Tag{}) {
			if row.name == "hello" {
				continue
			}
			for _, proto := range []int{1, 2} {
				all = append(all, story{
					Name: fmt.Sprintf("Section3_Table_%s_from_%s_proto%d", row.name, l.role, proto),
					Tell: func(t *testing.T, r *relay) { cell(t, r, l, i, proto) },
				})
			}
		}
	}
	return all
}

func cell(t *testing.T, r *relay, l leg, row, proto int) {
	b := r.boat(t)
	ship := b.dialAloneProto(proto)
	v := b.controllerProto(proto)
	v.wantStatus(true)
	tag := ship.wantAttach(1)
	sender, other := ship, v
	if l.role == "viewer" {
		sender, other = v, ship
	}
	c := tableFrames(tag)[row]
	sender.send(c.frame)
	switch {
	case !l.takes[c.name] && l.role == "boat":
		sender.wantRefusal(wire.CodeProto)
		other.wantStatus(false)
	case !l.takes[c.name]:
		sender.wantRefusal(wire.CodeProto)
		other.wantDetach(tag, 0)
	case c.name == "ping":
		wantControl[wire.Pong](sender)
	case c.name == "hs1":
		if got := wantControl[wire.Hs1](other); got != c.frame {
			t.Errorf("got %+v", got)
		}
	case c.name == "hs2":
		if got := wantControl[wire.Hs2](other); got.E != "x" || got.S != "y" {
			t.Errorf("got %+v", got)
		}
	}
	if l.takes[c.name] {
		sender.wantNothing()
	}
	other.wantNothing() // nothing of it has come through
}
