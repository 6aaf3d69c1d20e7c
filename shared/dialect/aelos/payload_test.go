package aelos

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"blindpost/shared/gateway"
)

func TestKinds(t *testing.T) {
	long := strings.Repeat("x", 12)
	for _, tt := range []struct {
		frame  string
		tagged bool
		want   string
	}{
		{"\x01" + long, true, kindSnapshot}, {"\x02" + long, true, kindCommand},
		{"\x03" + long, true, kindResult}, {"\x04" + long, true, kindIdentify},
		{"\x00" + long, true, kindUndecodable}, {"\x05" + long, true, kindUndecodable}, {"{" + long, true, kindUndecodable},
		{"\xff" + long, true, kindUndecodable}, {"", true, kindUndecodable}, {"\x01", true, kindUndecodable},
		{"\x01" + long[:11], true, kindUndecodable}, {"\x02" + long[:8], false, kindCommand},
		{"\x02" + long[:7], false, kindUndecodable}, {"", false, kindUndecodable},
	} {
		if got := kindOf([]byte(tt.frame), tt.tagged); got != tt.want {
			t.Errorf("%x, tagged %v: %s, want %s", tt.frame, tt.tagged, got, tt.want)
		}
	}
}

func TestTags(t *testing.T) {
	if got, ok := parseTag("00ff10ab"); !ok || got != (tag{0, 0xff, 0x10, 0xab}) || got.String() != "00ff10ab" {
		t.Errorf("%v, %v", got, ok)
	}
	for _, bad := range []string{"", "00ff10a", "00ff10abc", "00FF10AB", "00ff10ag", "0x00ff10", "        ", "00ff\x0010a"} {
		if got, ok := parseTag(bad); ok {
			t.Errorf("%q is %v", bad, got)
		}
	}
}

// What goes in on one leg and out on the other is the same but for the tag, and the
// frame that came in is as it was.
func FuzzSplice(f *testing.F) {
	f.Add([]byte("\x01tagscounter!ciphertext"))
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, b []byte) {
		for _, tagged := range []bool{true, false} {
			if kindOf(b, tagged) == kindUndecodable {
				continue
			}
			before := bytes.Clone(b)
			boom := errors.New("boom")
			if tagged {
				var out []byte
				if err := withoutTag(b, func(o []byte) error { out = bytes.Clone(o); return boom }); err != boom {
					t.Fatal(err)
				}
				if want := append([]byte{before[0]}, before[5:]...); !bytes.Equal(out, want) {
					t.Fatalf("%x became %x", before, out)
				}
				_ = withTag(tagOf(b), out, func(back []byte) error {
					if !bytes.Equal(back, before) {
						t.Fatalf("%x came back as %x", before, back)
					}
					return nil
				})
			} else {
				_ = withTag(tag{1, 2, 3, 4}, b, func(o []byte) error {
					if o[0] != before[0] || tagOf(o) != (tag{1, 2, 3, 4}) || !bytes.Equal(o[5:], before[1:]) {
						t.Fatalf("%x became %x", before, o)
					}
					return nil
				})
			}
			if !bytes.Equal(b, before) {
				t.Fatalf("%x was changed to %x", before, b)
			}
		}
	})
}

func FuzzControl(f *testing.F) {
	for _, s := range []string{
		`{"t":"hello","proto":2,"role":"boat","token":"x"}`, `{"t":"hs1","vs":"","e":"x"}`, `{"t":"hs2","vs":"00000000","e":"x","s":"y"}`,
		`{"t":"ping"}`, `{"t":"ping","t":"pong"}`, `{"t":1}`, `[]`, `null`, `{"t":"\ud800"}`, strings.Repeat("[", 20000),
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		c, err := parseControl(b)
		if err != nil {
			if c != (control{}) {
				t.Errorf("%+v comes with %v", c, err)
			}
			return
		}
		switch c.t {
		case typeHello, typeHs1, typeHs2, typeWelcome, typeError, typeViewers, typeBoatStatus, typeRelayResult, typePing, typePong:
		default:
			t.Errorf("type %q was taken", c.t)
		}
		if c.proto != 0 && c.proto != 1 && c.proto != 2 {
			t.Errorf("version %d was taken", c.proto)
		}
	})
}

func TestControlKeepsText(t *testing.T) {
	for _, e := range []string{`AAA`, ``, `<&>\u2028é\"\\`, `\u0000`, strings.Repeat("A", 60000)} {
		c, err := parseControl([]byte(`{"t":"hs2","vs":"00000000","e":"` + e + `","s":"x","later":[1]}`))
		if err != nil {
			t.Fatal(err)
		}
		f, err := encode(hs2Frame{T: typeHs2, VS: c.vs, E: json.RawMessage(c.e), S: json.RawMessage(c.s)})
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(e, "<") && !strings.Contains(string(f.Data), "<&>") {
			t.Errorf("escaped for nothing: %s", f.Data)
		}
		again, err := parseControl(f.Data)
		if err != nil || again != c {
			t.Errorf("%.40q became %.40q, %v", c.e, again.e, err)
		}
	}
}

// A frame without a use for any recipient is dropped and counted, and its sender stays
// connected.
func TestFramesThatAreDropped(t *testing.T) {
	story(t, func(w *world) {
		boat, v := w.boat(2), w.controller()
		old := w.viewer(1)
		a, one := w.tagOf(v), w.tagOf(old)
		for _, l := range []*line{boat, v, old} {
			l.got()
		}
		const rest = "0000000000000001aabb"
		for _, bad := range []string{"", "01", "01" + a, "01" + a + "00000000000001", "00" + a + rest, "05" + a + rest, "7b" + a + rest, "ff" + a + rest} {
			boat.send(unhex(t, bad))
		}
		w.wantDropped(dropUndecodable, 8)
		for _, bad := range []string{"", "02", "02" + "00000000000001", "00" + rest, "05" + rest, "ff" + rest} {
			v.send(unhex(t, bad))
		}
		w.wantDropped(dropUndecodable, 14)
		nobody := unhex(t, a)
		nobody[3] ^= 1
		boat.send(unhex(t, fmt.Sprintf("01%x", nobody)+rest))
		boat.send(unhex(t, fmt.Sprintf("03%x", nobody)+rest))
		boat.say(`{"t":"hs2","vs":"%x","e":"","s":""}`, nobody)
		w.wantDropped(dropNotFound, 3)
		boat.say(`{"t":"hs2","vs":%q,"e":"","s":""}`, strings.ToUpper("abcdef12"))
		w.wantDropped(dropUndecodable, 15)
		boat.send(unhex(t, "03"+one+rest)) // of version 1: knows no results
		w.wantDropped(dropProto, 1)
		for _, l := range []*line{boat, v, old} {
			l.want()
			l.wantOpen()
		}
	})
}

func TestLargeFrames(t *testing.T) {
	story(t, func(w *world) {
		boat, v := w.boat(2), w.controller()
		a := w.tagOf(v)
		boat.got()
		v.got()
		frame := append(unhex(t, "01"+a), make([]byte, 64<<10-5)...)
		boat.send(frame)
		v.want("01" + strings.Repeat("00", 64<<10-5))
		v.send(append([]byte{2}, make([]byte, 64<<10-1)...))
		boat.want("02" + a + strings.Repeat("00", 64<<10-1))
		boat.send(append(frame, 0))
		boat.want(`{"t":"error","code":"limit","msg":"the frame is larger than allowed"}`)
		boat.wantClosed(gateway.CloseTooLarge)
		boat.hangUp()
		v.want(offline)
		e := v.event(nil, false) // as our own front says it, without reading it
		e.Oversize, e.Size = true, 1<<40
		if _, err := v.n.core.Frame(context.Background(), e); err != nil {
			t.Fatal(err)
		}
		v.want(`{"t":"error","code":"limit","msg":"the frame is larger than allowed"}`)
		v.wantClosed(gateway.CloseTooLarge)
		w.wantDropped(dropTooLarge, 2)

		stranger := w.dial()
		e = stranger.event(nil, true)
		e.Oversize, e.Size = true, 1<<20
		if _, err := stranger.n.core.Frame(context.Background(), e); err != nil {
			t.Fatal(err)
		}
		stranger.wantClosed(gateway.CloseTooLarge)
	})
}

// A command reaches a boat only from a controller, and only a boat that knows commands;
// every other command is answered.
func TestCommands(t *testing.T) {
	const command, identify = "02" + "0000000000000001aabb", "04" + "0000000000000001aabb"
	for name, tt := range map[string]struct {
		boat    int // its version; 0: away
		claims  map[string]any
		setting string
		answer  string // "" for none: it arrives
		drop    string
	}{
		"controller":           {2, map[string]any{"ctl": true}, "", "", ""},
		"viewer":               {2, nil, "", notYours, dropRole},
		"ctl is false":         {2, map[string]any{"ctl": false}, "", notYours, dropRole},
		"ctl is a text":        {2, map[string]any{"ctl": "true"}, "", notYours, dropRole},
		"ctl is a number":      {2, map[string]any{"ctl": 1}, "", notYours, dropRole},
		"another spelling":     {2, map[string]any{"roles": []string{"x", "controller"}}, "roles=controller", "", ""},
		"not in that spelling": {2, map[string]any{"ctl": true}, "roles=controller", notYours, dropRole},
		"boat of version 1":    {1, map[string]any{"ctl": true}, "", noCommand, dropProto},
		"boat away":            {0, map[string]any{"ctl": true}, "", noReach, dropOffline},
	} {
		t.Run(name, func(t *testing.T) {
			story(t, func(w *world) {
				var boat *line
				if tt.boat > 0 {
					boat = w.boat(tt.boat)
				}
				claims := viewerClaims("org", "boat")
				for k, v := range tt.claims {
					claims[k] = v
				}
				v := w.dial().hello("viewer", 2, claims)
				a := w.tagOf(v)
				v.got()
				if boat != nil {
					boat.got()
				}
				v.send(unhex(t, command))
				v.send(unhex(t, identify))
				if tt.answer == "" {
					boat.want("02"+a+command[2:], "04"+a+identify[2:])
					v.want()
				} else {
					v.want(tt.answer) // one: identify has no answer
					w.wantDropped(tt.drop, 2)
					if boat != nil {
						boat.want()
					}
				}
				v.wantOpen()
			}, func(o *worldOptions) {
				if tt.setting != "" {
					c, err := ParseController(tt.setting)
					if err != nil {
						t.Fatal(err)
					}
					o.ctl = c
				}
			})
		})
	}
}

func TestRates(t *testing.T) {
	limits := func(o *worldOptions) {
		o.limits = func(l *Limits) { l.BoatFrames, l.ViewerFrames, l.Commands = 5, 3, 2 }
	}
	const command = "02" + "0000000000000001aabb"
	story(t, func(w *world) {
		boat, v := w.boat(2), w.controller()
		a := w.tagOf(v)
		boat.got()
		v.got()
		for range 3 {
			v.send(unhex(t, command))
		}
		v.want(tooMany)
		v.send(unhex(t, "04"+command[2:]))
		v.want()
		if got := boat.got(); len(got) != 2 {
			t.Errorf("the boat has got %q", got)
		}
		w.wantDropped(dropRate, 2)
		for range 7 {
			boat.send(unhex(t, "01"+a+"0000000000000001"))
		}
		if got := v.got(); len(got) != 5 {
			t.Errorf("the viewer has got %d snapshots", len(got))
		}
		w.wantDropped(dropRate, 4)
		boat.wantOpen()
		time.Sleep(time.Minute)
		boat.send(unhex(t, "01"+a+"0000000000000001"))
		v.send(unhex(t, command))
		v.want("010000000000000001")
		boat.want("02" + a + command[2:])
		for range 4 {
			boat.send(unhex(t, "03"+a+"0000000000000001"))
		}
		boat.wantOpen()
		boat.send(unhex(t, "03"+a+"0000000000000001")) // must not be dropped silently
		boat.wantClosed(gateway.CloseTryLater)
		boat.hangUp()
		v.got()
		for range 4 {
			v.say(`{"t":"ping"}`)
		}
		v.want(`{"t":"pong"}`, `{"t":"pong"}`, `{"t":"pong"}`, `{"t":"error","code":"limit","msg":"too many frames on this connection"}`)
		v.wantClosed(gateway.CloseTryLater)
	}, limits)
	story(t, func(w *world) { // a frame that is delivered again counts once
		boat, v := w.boat(2), w.controller()
		boat.got()
		v.got()
		for i := range 2 {
			e := v.event(unhex(t, command), false)
			for node := range 3 {
				if _, err := w.nodes[node].core.Frame(context.Background(), e); err != nil {
					t.Fatal(err)
				}
			}
			if got := boat.got(); len(got) != 3 {
				t.Errorf("command %d: the boat has got %q", i, got)
			}
		}
		v.want()
	}, limits, functions)
}

// A viewer that reads slowly loses snapshots; a result reaches it all the same, and
// the others do not notice.
func TestSlowViewer(t *testing.T) {
	story(t, func(w *world) {
		boat, slow, quick := w.boat(2), w.controller(), w.viewer(2)
		a, b := w.tagOf(slow), w.tagOf(quick)
		slow.got()
		quick.got()
		slow.mu.Lock()
		slow.slow = true
		slow.mu.Unlock()
		for range 3 {
			boat.send(unhex(t, "01"+a+"0000000000000001"))
			boat.send(unhex(t, "01"+b+"0000000000000001"))
		}
		boat.send(unhex(t, "03"+a+"0000000000000002"))
		slow.want("030000000000000002")
		quick.want("010000000000000001", "010000000000000001", "010000000000000001")
		w.wantDropped(dropSlow, 3)
		slow.wantOpen()
	})
}

// A front that fails must not cost the boat its connection for a snapshot; a result
// is tried again by the front that has delivered it.
func TestFrontThatFails(t *testing.T) {
	story(t, func(w *world) {
		boat, v := w.boat(2), w.controller()
		a := w.tagOf(v)
		v.got()
		v.mu.Lock()
		v.broken = errors.New("throttled")
		v.mu.Unlock()
		boat.send(unhex(t, "01"+a+"0000000000000001"))
		w.wantDropped(dropLost, 1)
		if err := boat.try(unhex(t, "03"+a+"0000000000000001"), false); err == nil {
			t.Error("a result is lost silently")
		}
		v.mu.Lock()
		v.broken = gateway.ErrTooLarge
		v.mu.Unlock()
		boat.send(unhex(t, "03"+a+"0000000000000001"))
		w.wantDropped(dropTooLarge, 1)
		boat.mu.Lock()
		boat.broken = gateway.ErrTooLarge
		boat.mu.Unlock()
		v.mu.Lock()
		v.broken = nil
		v.mu.Unlock()
		v.send(unhex(t, "020000000000000001"))
		v.want(`{"t":"result","id":0,"statusCode":503,"message":"the command is too large for the boat's connection"}`)
	})
}

// A snapshot is spliced where it lies.
func TestSpliceAllocatesNothing(t *testing.T) {
	data := append([]byte{typeSnapshot}, make([]byte, 64<<10)...)
	var out []byte
	if n := testing.AllocsPerRun(100, func() {
		_ = withoutTag(data, func(b []byte) error { out = b; return nil })
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
	if &out[0] != &data[tagSize] {
		t.Error("the frame was copied")
	}
}
