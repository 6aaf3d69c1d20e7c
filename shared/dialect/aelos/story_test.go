package aelos

import (
	"strings"
	"testing"
	"time"

	"blindpost/shared/gateway"
)

// A day of a boat: it comes, two viewers come and go, everything flows.
func TestBoatAndItsViewers(t *testing.T) {
	story(t, func(w *world) {
		early := w.viewer(2)
		early.want(welcome2, offline)

		boat := w.boat(2)
		a := w.tagOf(early)
		boat.want(welcome2, viewers(1, []string{a}, nil))
		early.want(online)

		late := w.controller()
		b := w.tagOf(late)
		if a == b || len(a) != 8 {
			t.Errorf("tags are %q and %q", a, b)
		}
		late.want(welcome2, online)
		boat.want(viewers(2, []string{b}, nil))

		late.say(`{"t":"hs1","vs":%q,"e":"AAA"}`, a) // in the other's name
		boat.want(`{"t":"hs1","vs":"` + b + `","e":"AAA"}`)
		boat.say(`{"t":"hs2","vs":%q,"e":"BBB","s":"CCC"}`, b)
		late.want(`{"t":"hs2","vs":"` + b + `","e":"BBB","s":"CCC"}`)

		const rest = "0000000000000001aabbccddee"
		boat.send(unhex(t, "01"+a+rest))
		boat.send(unhex(t, "01"+b+rest))
		boat.send(unhex(t, "03"+b+rest))
		early.want("01" + rest)
		late.want("01"+rest, "03"+rest)
		late.send(unhex(t, "04"+rest))
		late.send(unhex(t, "02"+rest))
		boat.want("04"+b+rest, "02"+b+rest)

		boat.say(`{"t":"ping"}`)
		late.say(`{"t":"ping"}`)
		late.say(`{"t":"pong"}`)
		boat.want(`{"t":"pong"}`)
		late.want(`{"t":"pong"}`)

		early.hangUp()
		boat.want(viewers(1, nil, []string{a}))
		late.hangUp()
		boat.want(viewers(0, nil, []string{b}))

		again := w.viewer(1)
		c := w.tagOf(again)
		if c == a || c == b {
			t.Error("a tag was used again")
		}
		again.want(welcome1, online)
		boat.want(viewers(1, []string{c}, nil))
		boat.hangUp()
		again.want(offline)
		again.say(`{"t":"hs1","vs":"","e":"x"}`)
		again.want(noBoat)
		again.wantOpen()
		again.hangUp()
		if r := w.roster("org", "boat"); !r.empty() {
			t.Errorf("roster is left: %+v", r)
		}
	})
}

func TestTakeoverIsSilentForViewers(t *testing.T) {
	story(t, func(w *world) {
		old := w.boat(2)
		v := w.viewer(2)
		a := w.tagOf(v)
		v.got()
		old.got()

		fresh := w.boat(2)
		fresh.want(welcome2, viewers(1, []string{a}, nil))
		old.wantClosed(gateway.CloseReplaced)
		old.hangUp() // what the front reports later
		v.want()
		fresh.want()
		if w.tagOf(v) != a {
			t.Error("the viewer has another tag")
		}
		fresh.send(unhex(t, "01"+a+"0000000000000001"))
		v.want("010000000000000001")
		v.say(`{"t":"hs1","vs":"","e":"x"}`)
		fresh.want(`{"t":"hs1","vs":"` + a + `","e":"x"}`)
	})
}

// A boat that was away is told which tags to forget.
func TestReturnedBoatHearsWhoLeftMeanwhile(t *testing.T) {
	story(t, func(w *world) {
		boat := w.boat(2)
		stays, leaves := w.viewer(2), w.viewer(2)
		s, l := w.tagOf(stays), w.tagOf(leaves)
		boat.hangUp()
		leaves.hangUp()
		stays.want(welcome2, online, offline)
		boat = w.boat(2)
		boat.want(welcome2, viewers(1, []string{s}, []string{l}))
		stays.want(online)
	})
}

func TestAtMostEightViewers(t *testing.T) {
	story(t, func(w *world) {
		boat := w.boat(2)
		var all []*line
		for range 8 {
			all = append(all, w.viewer(2))
		}
		boat.got()
		ninth := w.dial().hello("viewer", 2, viewerClaims("org", "boat"))
		ninth.want(`{"t":"error","code":"limit","msg":"the boat has as many viewers as it may"}`)
		ninth.wantClosed(gateway.CloseTryLater)
		ninth.hangUp()
		boat.want()
		all[3].got()
		all[3].hangUp()
		boat.got()
		w.viewer(2).want(welcome2, online)

		// Another boat is not concerned, not even one of the same name.
		w.dial().hello("viewer", 2, viewerClaims("other", "boat")).want(welcome2, offline)
		boat.got()
	})
}

func TestNinthViewerComesInIfOneIsGone(t *testing.T) {
	story(t, func(w *world) {
		boat := w.boat(2)
		var all []*line
		for range 8 {
			all = append(all, w.viewer(2))
		}
		gone := w.tagOf(all[0])
		all[0].end(gateway.CloseAbnormal) // not reported
		boat.got()
		ninth := w.viewer(2)
		ninth.want(welcome2, online)
		boat.want(viewers(7, nil, []string{gone}), viewers(8, []string{w.tagOf(ninth)}, nil))
	}, functions)
}

// Organisations choose the ids of their boats by themselves.
func TestOrganisationsDoNotMeet(t *testing.T) {
	story(t, func(w *world) {
		ours := w.boat(2)
		theirs := w.dial().hello("boat", 2, boatClaims("other", "boat"))
		ours.want(welcome2, nobody)
		theirs.want(welcome2, nobody)
		ours.wantOpen()
		v := w.viewer(2)
		tag := w.tagOf(v)
		v.want(welcome2, online)
		theirs.want()
		theirs.send(unhex(t, "01"+tag+"0000000000000001"))
		theirs.say(`{"t":"hs2","vs":%q,"e":"","s":""}`, tag)
		v.want()
		w.wantDropped(dropNotFound, 2)
		for _, pair := range [][2][2]string{{{"a", "bc"}, {"ab", "c"}}, {{"a/b", "c"}, {"a", "b/c"}}} {
			if groupOf(pair[0][0], pair[0][1]) == groupOf(pair[1][0], pair[1][1]) {
				t.Errorf("%v are one group", pair)
			}
		}
	})
}

func TestHelloInTime(t *testing.T) {
	story(t, func(w *world) {
		idle, v := w.dial(), w.viewer(2)
		v.got()
		time.Sleep(5*time.Second - time.Millisecond)
		idle.wantOpen()
		time.Sleep(2 * time.Millisecond)
		idle.want(`{"t":"error","code":"proto","msg":"no hello within the time allowed"}`)
		idle.wantClosed(gateway.ClosePolicy)
		v.wantOpen()
	})
}

// No connection outlasts its token.
func TestConnectionEndsWithItsToken(t *testing.T) {
	story(t, func(w *world) {
		boat, v := w.boat(2), w.viewer(2)
		tag := w.tagOf(v)
		v.got()
		time.Sleep(time.Hour - time.Second)
		v.want()
		v.wantOpen()
		time.Sleep(2 * time.Second)
		v.want(noAdmit)
		v.wantClosed(gateway.ClosePolicy)
		v.hangUp()
		boat.want(welcome2, nobody, viewers(1, []string{tag}, nil), viewers(0, nil, []string{tag}))
		time.Sleep(22 * time.Hour)
		boat.wantOpen()
		time.Sleep(2 * time.Hour)
		boat.wantClosed(gateway.ClosePolicy)
	})
}

func TestFirstFrame(t *testing.T) {
	token := func(w *world) string { return mint(w.t, secretA, viewerClaims("org", "boat")) }
	for name, tt := range map[string]struct {
		frame func(w *world) string
		bin   bool
		want  string
	}{
		"binary":          {func(*world) string { return "\x01abcdefghijkl" }, true, "the first frame is hello"},
		"no JSON":         {func(*world) string { return "hello" }, false, "the frame cannot be read"},
		"a list":          {func(*world) string { return "[]" }, false, "the frame cannot be read"},
		"null":            {func(*world) string { return "null" }, false, "the frame cannot be read"},
		"ping":            {func(*world) string { return `{"t":"ping"}` }, false, "the first frame is hello"},
		"welcome":         {func(*world) string { return `{"t":"welcome","proto":2}` }, false, "the first frame is hello"},
		"version 3":       {func(w *world) string { return `{"t":"hello","proto":3,"role":"viewer","token":"` + token(w) + `"}` }, false, "the relay speaks versions 1 and 2"},
		"version as text": {func(w *world) string { return `{"t":"hello","proto":"2","role":"viewer","token":"` + token(w) + `"}` }, false, "the frame cannot be read"},
		"other role":      {func(w *world) string { return `{"t":"hello","proto":2,"role":"admin","token":"` + token(w) + `"}` }, false, "there is no such role"},
		"other case":      {func(w *world) string { return `{"T":"hello","proto":2,"role":"viewer","token":"` + token(w) + `"}` }, false, "the frame cannot be read"},
		"no token":        {func(*world) string { return `{"t":"hello","proto":2,"role":"viewer"}` }, false, "the frame cannot be read"},
	} {
		t.Run(name, func(t *testing.T) {
			story(t, func(w *world) {
				l := w.dial()
				if err := l.try([]byte(tt.frame(w)), !tt.bin); err != nil {
					t.Fatal(err)
				}
				l.want(`{"t":"error","code":"proto","msg":"` + tt.want + `"}`)
				l.wantClosed(gateway.ClosePolicy)
			})
		})
	}
}

func TestFramesOnTheWrongLeg(t *testing.T) {
	payload := func(first string) string { return first + strings.Repeat("00", 20) }
	for _, tt := range []struct {
		from, frame string
		proto       int
		want        string
	}{
		{"boat", `{"t":"hs1","vs":"00000000","e":"x"}`, 2, wrong},
		{"boat", `{"t":"viewers","count":1}`, 2, wrong},
		{"boat", `{"t":"boat-status","online":true}`, 2, wrong},
		{"boat", `{"t":"welcome","proto":2}`, 2, wrong},
		{"boat", `{"t":"error","code":"auth"}`, 2, wrong},
		{"boat", `{"t":"result","id":0,"statusCode":429,"message":""}`, 2, wrong},
		{"boat", `{"t":"hello","proto":2,"role":"boat","token":"x"}`, 2, wrong},
		{"boat", payload("02"), 2, wrong},
		{"boat", payload("04"), 2, wrong},
		{"boat", payload("03"), 1, wrong},
		{"boat", `{"t":"nonsense"}`, 2, unread},
		{"boat", `{`, 2, unread},
		{"boat", `{"t":"hs2","vs":"00000000","e":"x"}`, 2, unread},
		{"viewer", `{"t":"hs2","vs":"00000000","e":"x","s":"y"}`, 2, wrong},
		{"viewer", `{"t":"viewers","count":1}`, 2, wrong},
		{"viewer", `{"t":"boat-status","online":true}`, 2, wrong},
		{"viewer", `{"t":"welcome","proto":2}`, 2, wrong},
		{"viewer", `{"t":"error","code":"auth"}`, 2, wrong},
		{"viewer", `{"t":"result","id":0,"statusCode":429,"message":""}`, 2, wrong},
		{"viewer", `{"t":"hello","proto":2,"role":"viewer","token":"x"}`, 2, wrong},
		{"viewer", payload("01"), 2, wrong},
		{"viewer", payload("03"), 2, wrong},
		{"viewer", payload("02"), 1, wrong},
		{"viewer", payload("04"), 1, wrong},
		{"viewer", `{"t":"hs1","vs":"00000000"}`, 2, unread},
		{"viewer", `"ping"`, 2, unread},
	} {
		t.Run(tt.from+" "+tt.frame, func(t *testing.T) {
			story(t, func(w *world) {
				boat, v := w.boat(tt.proto), w.dial().hello("viewer", tt.proto, controllerClaims("org", "boat"))
				tag := w.tagOf(v)
				l, other := boat, v
				if tt.from == "viewer" {
					l, other = v, boat
				}
				l.got()
				other.got()
				if strings.HasPrefix(tt.frame, "0") {
					l.send(unhex(t, tt.frame))
				} else {
					l.say("%s", tt.frame)
				}
				l.want(tt.want)
				l.wantClosed(gateway.ClosePolicy)
				if other == v {
					v.want(offline)
				} else {
					boat.want(viewers(0, nil, []string{tag}))
				}
			})
		})
	}
}
