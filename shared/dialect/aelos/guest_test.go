package aelos

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"blindpost/shared/gateway"
)

// What one guest can do to a boat and to the other viewers.

func (w *world) guest(sub string, node ...int) *line {
	w.t.Helper()
	return w.dial(node...).hello("viewer", 2, with(viewerClaims("org", "boat"), "sub", sub))
}

func TestLargeHandshakesEndWithTheirSender(t *testing.T) {
	const large = `{"t":"error","code":"limit","msg":"the handshake is larger than allowed"}`
	story(t, func(w *world) {
		boat, v := w.boat(2), w.viewer(2)
		tag := w.tagOf(v)
		boat.got()
		v.got()
		fit := strings.Repeat("A", 4<<10-len(`{"t":"hs1","vs":"","e":""}`))
		v.say(`{"t":"hs1","vs":"","e":%q}`, fit)
		boat.want(`{"t":"hs1","vs":"` + tag + `","e":"` + fit + `"}`)
		v.say(`{"t":"hs1","vs":"","e":%q}`, fit+"A")
		v.want(large)
		v.wantClosed(gateway.CloseTooLarge)
		boat.want(viewers(0, nil, []string{tag}))
		boat.say(`{"t":"hs2","vs":%q,"e":%q,"s":""}`, tag, fit)
		boat.want(large)
		boat.wantClosed(gateway.CloseTooLarge)
	})
}

// A guest that comes again and again to shake hands neither reaches the boat more often
// than is allowed nor has the boat closed for its answers, nor does it take all from the
// others.
func TestHandshakesOfAllViewersTogether(t *testing.T) {
	story(t, func(w *world) {
		boat, friend := w.boat(2), w.guest("friend")
		heard := 0
		answer := func() {
			for _, f := range boat.got() {
				if strings.Contains(f, `"hs1"`) {
					heard++
					boat.say(`{"t":"hs2","vs":%q,"e":"x","s":"y"}`, strings.Split(f, `"`)[7])
				}
			}
		}
		friend.got()
		for range 5 {
			g := w.guest("guest")
			for range 20 {
				g.say(`{"t":"hs1","vs":"","e":"x"}`)
				answer()
			}
			g.wantOpen()
			g.hangUp()
		}
		if heard != 10 {
			t.Errorf("the boat has heard %d handshakes", heard)
		}
		boat.wantOpen()
		friend.say(`{"t":"hs1","vs":"","e":"x"}`)
		answer()
		if got := friend.got(); len(got) != 1 || !strings.Contains(got[0], `"hs2"`) {
			t.Errorf("the friend has got %q", got)
		}
		// Many guests together exhaust what there is for the boat.
		for i := range 10 {
			g := w.guest(fmt.Sprint("guest", i))
			for range 10 {
				g.say(`{"t":"hs1","vs":"","e":"x"}`)
				answer()
			}
			if i == 9 {
				got := g.got()
				if last := got[len(got)-1]; last != `{"t":"error","code":"limit","msg":"too many handshakes with this boat"}` {
					t.Errorf("the guest has got %q", got)
				}
				g.wantOpen()
			}
			g.hangUp()
		}
		if heard != 40 {
			t.Errorf("the boat has heard %d handshakes", heard)
		}
		boat.wantOpen()
		time.Sleep(time.Minute)
		friend.say(`{"t":"hs1","vs":"","e":"x"}`)
		answer()
		if heard != 41 {
			t.Error("the boat does not hear the friend a minute later")
		}
	}, func(o *worldOptions) { o.limits = func(l *Limits) { l.Handshakes, l.BoatFrames = 40, 5 } })
}

func TestBytesOfCommands(t *testing.T) {
	story(t, func(w *world) {
		boat, v := w.boat(2), w.controller()
		tag := w.tagOf(v)
		boat.got()
		v.got()
		command := append([]byte{2}, make([]byte, 499)...)
		identify := append([]byte{4}, make([]byte, 499)...)
		v.send(command)
		v.send(identify)
		if got := boat.got(); len(got) != 2 || !strings.HasPrefix(got[0], "02"+tag) {
			t.Errorf("the boat has got %.20q", got)
		}
		v.send(command)
		v.send(identify)
		v.want(`{"t":"result","id":0,"statusCode":429,"message":"too many commands"}`)
		boat.want()
		v.hangUp() // coming again is no way round
		boat.got()
		v = w.controller()
		boat.got()
		v.got()
		v.send(command)
		v.want(`{"t":"result","id":0,"statusCode":429,"message":"too many commands"}`)
		time.Sleep(time.Minute)
		v.send(command)
		v.want()
		if len(boat.got()) != 1 {
			t.Error("the boat does not hear the command")
		}
	}, func(o *worldOptions) { o.limits = func(l *Limits) { l.CommandBytes, l.MaxFrame = 1000, 1000 } })
}

// A viewer that goes on sending commands over its rate is closed.
func TestEndlessCommands(t *testing.T) {
	story(t, func(w *world) {
		w.boat(2)
		v := w.controller()
		v.got()
		command := append([]byte{2}, make([]byte, 20)...)
		for range 50 {
			v.send(command)
		}
		v.wantOpen()
		v.got()
		v.send(command)
		v.want(`{"t":"error","code":"limit","msg":"too many frames on this connection"}`)
		v.wantClosed(gateway.CloseTryLater)
	}, func(o *worldOptions) { o.limits = func(l *Limits) { l.Commands = 5 } })
}

func TestViewersOfOneSub(t *testing.T) {
	story(t, func(w *world) {
		w.boat(2)
		one, two := w.guest("guest"), w.guest("guest")
		third := w.guest("guest")
		third.want(`{"t":"error","code":"limit","msg":"the boat has as many viewers as it may"}`)
		third.wantClosed(gateway.CloseTryLater)
		w.guest("friend").want(welcome2, online)
		one.hangUp()
		two.end(gateway.CloseAbnormal) // not reported
		w.guest("guest").want(welcome2, online)
		w.guest("guest").want(welcome2, online)
	}, func(o *worldOptions) { o.limits = func(l *Limits) { l.MaxViewersPerSub = 2 } })
}

// The text that peers exchange is forwarded as it was encoded, and does not grow.
func TestForwardedTextDoesNotGrow(t *testing.T) {
	story(t, func(w *world) {
		boat, v := w.boat(2), w.viewer(2)
		tag := w.tagOf(v)
		boat.got()
		v.got()
		for _, e := range []string{strings.Repeat("\u2028", 20000), strings.Repeat("<>&", 20000), `\u003c\/é\ud83d\ude00`, `\"\\`} {
			v.say("%s", `{"t":"hs1","vs":"00000000","e":"`+e+`"}`)
			boat.want(`{"t":"hs1","vs":"` + tag + `","e":"` + e + `"}`)
			boat.say("%s", `{"t":"hs2","vs":"`+tag+`","e":"`+e+`","s":"<"}`)
			v.want(`{"t":"hs2","vs":"` + tag + `","e":"` + e + `","s":"<"}`)
		}
	}, func(o *worldOptions) { o.limits = func(l *Limits) { l.MaxHandshake = 0 } })
}

// No text frame that is not UTF-8 leaves the relay.
func TestTextThatIsNoUnicode(t *testing.T) {
	story(t, func(w *world) {
		boat, v := w.boat(2), w.viewer(2)
		v.got()
		boat.got()
		if err := v.try(bytes.Join([][]byte{[]byte(`{"t":"hs1","vs":"","e":"`), []byte(`"}`)}, []byte{0xff}), true); err != nil {
			t.Fatal(err)
		}
		v.want(unread)
		for _, f := range boat.got() {
			if strings.Contains(f, "hs1") {
				t.Errorf("the boat has got %q", f)
			}
		}
	})
}
