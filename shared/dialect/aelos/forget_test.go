package aelos

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"blindpost/shared/gateway"
)

// A boat keeps its tags over several connections, so it must be told to forget every tag
// that it was told of.

// All peers were away: a boat that comes back is told to forget the tags of before.
func TestBoatHearsWhoLeftWhileNobodyWasThere(t *testing.T) {
	for _, alone := range []bool{true, false} {
		t.Run(fmt.Sprint(alone), func(t *testing.T) {
			story(t, func(w *world) {
				boat, v := w.boat(2), w.viewer(2)
				tag := w.tagOf(v)
				boat.hangUp()
				v.hangUp()
				time.Sleep(time.Hour)
				if alone {
					w.boat(2).want(welcome2, viewers(0, nil, []string{tag}))
					return
				}
				other := w.viewer(2)
				w.boat(2).want(welcome2, viewers(1, []string{w.tagOf(other)}, []string{tag}))
			})
		})
	}
}

// A frame that was posted to a lost connection may never have arrived: the next connection
// gets it too.
func TestDetachIntoALostConnection(t *testing.T) {
	for name, change := range map[string]func(*worldOptions){"one process": func(*worldOptions) {}, "functions": functions} {
		t.Run(name, func(t *testing.T) {
			story(t, func(w *world) {
				old, v := w.boat(2), w.viewer(2)
				gone := w.tagOf(v)
				old.want(welcome2, nobody, viewers(1, []string{gone}, nil))
				old.mu.Lock()
				old.mute = true
				old.mu.Unlock()
				v.hangUp()
				unheard := w.viewer(2)
				unheard.hangUp()
				other := w.viewer(2)
				fresh := w.boat(2)
				got := fresh.got()
				if len(got) != 2 || got[0] != welcome2 {
					t.Fatalf("the boat has got %q", got)
				}
				seen := believe(t, append([]string{welcome2, viewers(1, []string{gone}, nil)}, got...), false)
				if !slices.Equal(seen.tags, []string{w.tagOf(other)}) || seen.count != 1 {
					t.Errorf("the boat believes in %+v", seen)
				}
				// Once is enough while the connection lasts.
				other.hangUp()
				fresh.want(viewers(0, nil, []string{seen.tags[0]}))
			}, change)
		})
	}
}

// The sweeper looks at a boat that comes back to its kept tags as at a new one.
func TestReturnedBoatIsSwept(t *testing.T) {
	story(t, func(w *world) {
		boat := w.boat(2)
		w.viewer(2).hangUp()
		boat.hangUp()
		sweep := func() {
			time.Sleep(11 * time.Minute)
			if err := w.nodes[1].core.Sweep(context.Background()); err != nil {
				t.Fatal(err)
			}
		}
		sweep()
		sweep()
		v := w.viewer(2)
		v.got()
		w.boat(2).end(gateway.CloseAbnormal) // not reported
		sweep()
		v.want(online, offline)
	}, functions)
}

// The tags that are kept for a boat are bounded in number and time, and no viewer gets one.
func TestWhatIsKeptForABoat(t *testing.T) {
	story(t, func(w *world) {
		boat := w.boat(2)
		for range maxForgotten + 20 {
			w.viewer(2).hangUp()
		}
		boat.hangUp()
		r := w.roster("org", "boat")
		if r.version == "" || !r.empty() || len(r.Forgotten) != maxForgotten {
			t.Fatalf("kept are %d", len(r.Forgotten))
		}
		for _, f := range r.Forgotten {
			if r.free(f.Tag) {
				t.Errorf("%v is given away", f.Tag)
			}
		}
		time.Sleep(forgetAfter / 2)
		boat = w.boat(2)
		seen := boat.got()
		v := w.viewer(2)
		last := w.tagOf(v)
		v.hangUp()
		boat.hangUp()
		time.Sleep(forgetAfter/2 + time.Minute)
		for range 20 {
			time.Sleep(time.Minute)
			if err := w.nodes[0].core.Sweep(context.Background()); err != nil {
				t.Fatal(err)
			}
		}
		if len(seen) != 2 {
			t.Errorf("the boat has got %q", seen)
		}
		boat = w.boat(2)
		boat.want(welcome2, viewers(0, nil, []string{last}))
		boat.hangUp()
		time.Sleep(forgetAfter)
		if r := w.roster("org", "boat"); r.version != "" {
			t.Errorf("roster is left: %+v", r)
		}
	})
}
