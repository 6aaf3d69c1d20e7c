package conformance

import (
	"fmt"
	"testing"

	wire "blindpost/shared/client/aelos"
)

var section3Hello = []story{
	{Name: "Section3_BothProtosAreWelcome", Tell: helloProtos},
	{Name: "Section3_HelloOfNoKind", Tell: helloOfNoKind},
	{Name: "Section3_HelloComesFirst", Tell: helloFirst},
	{Name: "Section3_MalformedControlFrames", Tell: malformed},
}

// Who says proto 1 is welcomed to proto 1, boat and viewer, in any mixture.
func helloProtos(t *testing.T, r *relay) {
	for _, boatProto := range []int{1, 2} {
		for _, viewerProto := range []int{1, 2} {
			b := r.boat(t)
			ship := b.dialAloneProto(boatProto)
			v := b.viewerProto(viewerProto)
			v.wantStatus(true)
			tag := ship.wantAttach(1)
			v.send(wire.Hs1{VS: "", E: "an app's e"})
			if got := wantControl[wire.Hs1](ship); got.VS != tag.String() || got.E != "an app's e" {
				t.Errorf("protos %d and %d: hs1 is %+v", boatProto, viewerProto, got)
			}
			ship.send(wire.Hs2{VS: tag.String(), E: "a boat's e", S: "s"})
			if got := wantControl[wire.Hs2](v); got.E != "a boat's e" || got.S != "s" {
				t.Errorf("protos %d and %d: hs2 is %+v", boatProto, viewerProto, got)
			}
			body := r.noise(100)
			ship.sendPayload(tagged(wire.Snapshot, tag, 1, body))
			v.wantPayload(untagged(wire.Snapshot, 1, body))
			v.close()
			ship.wantDetach(tag, 0)
		}
	}
}

// A hello that is not by the schema. Which of the two codes says so is open,
// except for a proto that there is not.
func helloOfNoKind(t *testing.T, r *relay) {
	b := r.boat(t)
	token := b.mint(wire.BoatClaims(b.org, b.id, inAnHour()))
	for _, proto := range []string{"0", "3", "-1", `"2"`, "1.5", "null", "true", "[2]", "99999999999999999999"} {
		p := r.stranger(t, "proto "+proto, line{})
		p.sendText(fmt.Sprintf(`{"t":"hello","proto":%s,"role":"boat","token":%q}`, proto, token))
		p.wantRefusal(wire.CodeProto)
	}
	for _, text := range []string{
		fmt.Sprintf(`{"t":"hello","role":"boat","token":%q}`, token),
		fmt.Sprintf(`{"t":"hello","proto":2,"token":%q}`, token),
		fmt.Sprintf(`{"t":"hello","proto":2,"role":"captain","token":%q}`, token),
		fmt.Sprintf(`{"t":"hello","proto":2,"role":null,"token":%q}`, token),
		fmt.Sprintf(`{"t":"hello","proto":2,"role":["boat"],"token":%q}`, token),
		`{"t":"hello","proto":2,"role":"boat"}`,
		`{"t":"hello","proto":2,"role":"boat","token":null}`,
		`{"t":"hello","proto":2,"role":"boat","token":7}`,
		fmt.Sprintf(`{"t":"hello","proto":2,"role":"boat","token":[%q]}`, token),
	} {
		p := r.stranger(t, text[:30], line{})
		p.sendText(text)
		p.wantRefusal(wire.CodeProto, wire.CodeAuth)
	}
	b.dialAlone()
}

// Nothing else is taken before hello.
func helloFirst(t *testing.T, r *relay) {
	b := r.boat(t)
	ship, _, tag := b.watched()
	for _, c := range []wire.Control{
		wire.Hs1{VS: tag.String(), E: "x"}, wire.Hs2{VS: tag.String(), E: "x", S: "y"}, wire.Welcome{Proto: 2},
		wire.Viewers{}, wire.BoatStatus{Online: true}, wire.Result{StatusCode: 503}, wire.Error{Code: wire.CodeAuth},
	} {
		p := r.stranger(t, fmt.Sprintf("%T first", c), line{})
		p.send(c)
		p.wantRefusal(wire.CodeProto, wire.CodeAuth)
	}
	for _, frame := range [][]byte{
		tagged(wire.Snapshot, tag, 1, []byte("x")), untagged(wire.Command, 1, []byte("x")), {0x7b},
	} {
		p := r.stranger(t, "payload first", line{})
		p.sendPayload(frame)
		p.wantRefusal(wire.CodeProto, wire.CodeAuth)
	}
	ship.wantNothing()
}

// What is no control frame at all is a protocol error.
func malformed(t *testing.T, r *relay) {
	b := r.boat(t)
	ship := b.dialAlone()
	for _, text := range []string{
		`{`, `{}`, `{"t":null}`, `{"t":7}`, `{"t":"hs3"}`, `{"t":"HS1","vs":"","e":"x"}`, `{"x":"ping"}`, `{"t":["ping"]}`,
		`{"t":"hs1"}`, `{"t":"hs1","vs":"00000000"}`, `{"t":"hs1","vs":"00000000","e":7}`,
		`{"t":"hs1","vs":"00000000","e":null}`, `{"t":"ping"}{"t":"ping"}`, `{"t":"ping"`, "{\"t\":\"ping\"}\x00",
	} {
		v, tag := b.watch(ship)
		v.name = text
		v.sendText(text)
		v.wantRefusal(wire.CodeProto)
		ship.wantDetach(tag, 0)
	}
	if !r.Base64 { // where text that is no control frame is a payload
		for _, text := range []string{``, `null `, `[]`, `"ping"`, `ping!`, `[{"t":"ping"}]`} {
			v, tag := b.watch(ship)
			v.name = text
			v.sendText(text)
			v.wantRefusal(wire.CodeProto)
			ship.wantDetach(tag, 0)
		}
	}
	for _, text := range []string{`{"t":"hs2","vs":"00000000","e":"x"}`, `{"t":"hs2","vs":"00000000","e":"x","s":7}`, `{"t":"hs2","e":"x","s":"y"}`} {
		p := r.boat(t).dialAlone()
		p.sendText(text)
		p.wantRefusal(wire.CodeProto)
	}
	ship.wantNothing()
}
