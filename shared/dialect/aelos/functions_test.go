package aelos

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"blindpost/shared/gateway"
	"blindpost/shared/relay"
)

// Viewers come and go at the same time in all processes, and every post takes its
// own time: the boat still hears of them in order.
func TestViewersComeInOrder(t *testing.T) {
	for seed := range uint64(20) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			story(t, func(w *world) {
				random := rand.New(rand.NewPCG(seed, 1))
				var mu sync.Mutex
				pause := func(most time.Duration) {
					mu.Lock()
					d := time.Duration(random.Int64N(int64(most)))
					mu.Unlock()
					time.Sleep(d)
				}
				boat := w.boat(2, 0)
				boat.posted = func(gateway.Message) { pause(50 * time.Millisecond) }
				var wg sync.WaitGroup
				var lines []*line
				for i := range 8 {
					l := w.dial(i % 3)
					l.posted = boat.posted
					lines = append(lines, l)
					wg.Go(func() {
						pause(200 * time.Millisecond)
						l.hello("viewer", 2, viewerClaims("org", "boat"))
						if i%2 == 0 {
							pause(200 * time.Millisecond)
							l.hangUp()
						}
					})
				}
				wg.Wait()
				synctest.Wait()
				w.wantTruth(believe(t, boat.got(), true))
				for i, l := range lines {
					if got := l.got(); i%2 == 1 && !slices.Equal(got, []string{welcome2, online}) {
						t.Errorf("a viewer has got %q", got)
					}
				}
			}, functions)
		})
	}
}

// The boat attaches and detaches while viewers do: each viewer gets welcome first, then
// boat-status in order, and the last one is true.
func TestStatusComesInOrder(t *testing.T) {
	for seed := range uint64(20) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			story(t, func(w *world) {
				random := rand.New(rand.NewPCG(seed, 2))
				var mu sync.Mutex
				pause := func(most time.Duration) {
					mu.Lock()
					d := time.Duration(random.Int64N(int64(most)))
					mu.Unlock()
					time.Sleep(d)
				}
				slow := func(gateway.Message) { pause(30 * time.Millisecond) }
				var wg sync.WaitGroup
				var lines []*line
				for i := range 4 {
					l := w.dial(i % 3)
					l.posted = slow
					lines = append(lines, l)
					wg.Go(func() { pause(300 * time.Millisecond); l.hello("viewer", 2, viewerClaims("org", "boat")) })
				}
				wg.Go(func() {
					for i := range 3 {
						b := w.boat(2, i)
						pause(100 * time.Millisecond)
						b.hangUp()
					}
				})
				wg.Wait()
				synctest.Wait()
				for _, l := range lines {
					got := l.got()
					if len(got) < 2 || got[0] != welcome2 || got[len(got)-1] != offline {
						t.Errorf("a viewer has got %q", got)
					}
					for i := 2; i < len(got); i++ {
						if got[i] == got[i-1] {
							t.Errorf("a viewer hears the same twice: %q", got)
						}
					}
				}
			}, functions)
		})
	}
}

// A hello that is delivered again long after does not replace the newer connection.
func TestOldHelloDoesNotTakeOver(t *testing.T) {
	story(t, func(w *world) {
		l := w.dial()
		e := l.event(fmt.Appendf(nil, `{"t":"hello","proto":2,"role":"boat","token":%q}`, mint(t, secretA, boatClaims("org", "boat"))), true)
		l.deliver(e)
		time.Sleep(time.Second)
		fresh := w.boat(2, 1)
		fresh.got()
		l.deliver(e)
		l.wantClosed(gateway.CloseReplaced)
		fresh.want()
		fresh.wantOpen()
		fresh.say(`{"t":"ping"}`)
		fresh.want(`{"t":"pong"}`)
	}, functions)
}

// A handler whose lease runs out because it is slow posts an old state after a newer one;
// the boat is told the present state once more.
func TestSlowTellerIsCorrected(t *testing.T) {
	story(t, func(w *world) {
		boat := w.boat(2)
		boat.got()
		var later atomic.Bool
		boat.mu.Lock()
		boat.posted = func(gateway.Message) {
			if !later.Swap(true) {
				time.Sleep(leaseTime + 10*time.Second)
			}
		}
		boat.mu.Unlock()
		var wg sync.WaitGroup
		wg.Go(func() { w.viewer(2, 1) })
		time.Sleep(time.Second)
		b := w.dial(2)
		e := b.event(fmt.Appendf(nil, `{"t":"hello","proto":2,"role":"viewer","token":%q}`, mint(t, secretA, viewerClaims("org", "boat"))), true)
		b.deliver(e)
		wg.Wait()
		got := boat.got()
		if len(got) != 3 || !strings.Contains(got[0], `"count":2`) || !strings.Contains(got[1], `"count":1`) || !strings.Contains(got[2], `"count":2`) {
			t.Errorf("the boat has got %q", got)
		}
		w.wantTruth(believe(t, append([]string{welcome2}, got...), false))
	}, functions)
}

// The end of a connection is not reported: a post finds it gone.
func TestLostDisconnects(t *testing.T) {
	story(t, func(w *world) {
		boat, a, b := w.boat(2), w.viewer(2), w.viewer(2)
		ta, tb := w.tagOf(a), w.tagOf(b)
		boat.got()
		b.got()
		a.end(gateway.CloseAbnormal)
		boat.send(unhex(t, "01"+ta+"0000000000000001"))
		boat.want(viewers(1, nil, []string{ta}))
		w.wantDropped(dropLost, 1)

		boat.end(gateway.CloseAbnormal)
		b.say(`{"t":"hs1","vs":"","e":"x"}`)
		b.want(offline, noBoat)
		boat = w.boat(2, 2)
		boat.want(welcome2, viewers(1, []string{tb}, []string{ta}))
		b.want(online)
	}, functions)
}

// The end of a connection is not reported, and there is no post: the sweeper finds it gone.
func TestSweeperFindsTheLost(t *testing.T) {
	story(t, func(w *world) {
		boat, a, b := w.boat(2), w.viewer(2), w.viewer(2)
		ta := w.tagOf(a)
		boat.got()
		b.got()
		a.end(gateway.CloseAbnormal)
		for range 5 {
			time.Sleep(9 * time.Minute)
			if err := w.nodes[1].core.Sweep(context.Background()); err != nil {
				t.Fatal(err)
			}
		}
		boat.want(viewers(1, nil, []string{ta}))
		boat.end(gateway.CloseAbnormal)
		time.Sleep(11 * time.Minute)
		if err := w.nodes[1].core.Sweep(context.Background()); err != nil {
			t.Fatal(err)
		}
		b.want(offline)
		b.end(gateway.CloseAbnormal)
		time.Sleep(11 * time.Minute)
		if err := w.nodes[2].core.Sweep(context.Background()); err != nil {
			t.Fatal(err)
		}
		if r := w.roster("org", "boat"); !r.empty() {
			t.Errorf("a connection is left: %+v", r)
		}
		time.Sleep(forgetAfter)
		if r := w.roster("org", "boat"); r.version != "" {
			t.Errorf("roster is left: %+v", r)
		}
	}, functions)
}

// The sweeper extends the expiry of the roster as long as there are connections in it:
// those of our own front may last.
func TestRosterLastsAsLongAsItsConnections(t *testing.T) {
	story(t, func(w *world) {
		boat := w.boat(2)
		for range 12 * 6 {
			time.Sleep(10 * time.Minute)
			if err := w.nodes[0].core.Sweep(context.Background()); err != nil {
				t.Fatal(err)
			}
		}
		if r := w.roster("org", "boat"); r.Boat == nil || r.Boat.Conn != boat.id {
			t.Errorf("roster is %+v", r)
		}
		boat.end(gateway.CloseAbnormal)
		time.Sleep(3 * time.Hour)
		if r := w.roster("org", "boat"); r.version != "" {
			t.Errorf("an item without a sweeper is left: %+v", r)
		}
	}, functions)
}

// A viewer that cannot be told now is told later, and does not hold up the others.
func TestPostThatFailsIsTriedAgain(t *testing.T) {
	story(t, func(w *world) {
		a, b := w.viewer(2), w.viewer(2)
		a.got()
		b.got()
		a.mu.Lock()
		a.broken = errors.New("throttled")
		a.mu.Unlock()
		boat := w.boat(2)
		b.want(online)
		a.mu.Lock()
		a.broken = nil
		a.mu.Unlock()
		time.Sleep(retryAfter + time.Second)
		a.want(online)
		if v := believe(t, boat.got(), true); v.count != 2 {
			t.Errorf("the boat believes in %+v", v)
		}
	}, functions)
}

// The boat hears of a viewer only when that has been welcomed: it speaks at once.
func TestBoatHearsOfTheWelcomedOnly(t *testing.T) {
	story(t, func(w *world) {
		boat, first := w.boat(2), w.viewer(2)
		boat.got()
		l := w.dial()
		l.broken = errors.New("throttled")
		e := l.event(fmt.Appendf(nil, `{"t":"hello","proto":2,"role":"viewer","token":%q}`, mint(t, secretA, viewerClaims("org", "boat"))), true)
		if _, err := l.n.core.Frame(context.Background(), e); err == nil {
			t.Fatal("a hello without a welcome was handled")
		}
		boat.want()
		other := w.viewer(2) // it changes the roster meanwhile
		boat.want(viewers(2, []string{w.tagOf(other)}, nil))
		l.mu.Lock()
		l.broken = nil
		l.mu.Unlock()
		l.deliver(e)
		l.want(welcome2, online)
		boat.want(viewers(3, []string{w.tagOf(l)}, nil))
		first.want(welcome2, online)
	}, functions)
}

// The end of a token is found with the next frame too, should the job be late.
func TestExpiryIsFoundWithTheNextFrame(t *testing.T) {
	story(t, func(w *world) {
		boat, v := w.boat(2), w.controller()
		tag := w.tagOf(v)
		boat.got()
		v.got()
		time.Sleep(time.Hour)
		v.send(unhex(t, "020000000000000001"))
		v.want(noAdmit)
		v.wantClosed(gateway.ClosePolicy)
		boat.want(viewers(0, nil, []string{tag}))
	}, functions, func(o *worldOptions) { o.idle = true })
}

// No viewer gets a tag that the boat may still remember.
func TestTagsAreNotUsedAgain(t *testing.T) {
	used, told, free := tag{1, 1, 1, 1}, tag{2, 2, 2, 2}, tag{3, 3, 3, 3}
	r := &roster{Viewers: []viewer{{Tag: used}}, Told: []tag{told}}
	random := bytes.NewReader(slices.Concat(used[:], told[:], free[:]))
	d := New(relay.New(relay.Options{Random: io.MultiReader(bytes.NewReader(make([]byte, 16)), random)}), Options{})
	if got, err := d.newTag(r); err != nil || got != free {
		t.Errorf("tag %v, %v", got, err)
	}
	if got, err := d.newTag(r); err == nil {
		t.Errorf("tag %v out of nothing", got)
	}
}

// A handler with many posts to slow peers renews the lease in time, so that no other
// handler begins the same posts.
func TestLongTellingKeepsTheLease(t *testing.T) {
	story(t, func(w *world) {
		var all []*line
		for range 6 {
			v := w.viewer(2)
			v.got()
			v.mu.Lock()
			v.posted = func(gateway.Message) { time.Sleep(4 * time.Second) }
			v.mu.Unlock()
			all = append(all, v)
		}
		var wg sync.WaitGroup
		var boat *line
		wg.Go(func() { boat = w.boat(2, 0) })
		time.Sleep(leaseTime + time.Second)
		l := w.dial(1)
		l.deliver(l.event(fmt.Appendf(nil, `{"t":"hello","proto":2,"role":"viewer","token":%q}`, mint(t, secretA, viewerClaims("org", "boat"))), true))
		wg.Wait()
		synctest.Wait()
		for _, v := range all {
			v.want(online)
		}
		l.want(welcome2, online)
		w.wantTruth(believe(t, boat.got(), true))
	}, functions)
}

// A viewer that was taken for lost and is not is closed when it sends: it has no tag any
// more, and has to connect again.
func TestTakenForLost(t *testing.T) {
	story(t, func(w *world) {
		boat, v := w.boat(2), w.viewer(2)
		for _, l := range []*line{boat, v} {
			if err := w.nodes[0].d.leave(context.Background(), groupOf("org", "boat"), l.id); err != nil {
				t.Fatal(err)
			}
			l.got()
			l.say(`{"t":"ping"}`)
			l.want()
			l.wantClosed(gateway.CloseGoingAway)
			l.hangUp()
		}
	}, functions)
}

// A viewer whose front takes nothing holds up neither the boat nor another viewer for
// longer than one post may take, and that only now and then.
func TestStuckViewerHoldsUpNobody(t *testing.T) {
	story(t, func(w *world) {
		stuck := w.viewer(2)
		stuck.got()
		stuck.mu.Lock()
		stuck.broken = errors.New("throttled")
		stuck.posted = func(gateway.Message) { time.Sleep(postTime) }
		stuck.mu.Unlock()
		began := time.Now()
		var boat *line
		var wg sync.WaitGroup
		wg.Go(func() { boat = w.boat(2, 0) })
		time.Sleep(time.Millisecond)
		for range 5 {
			v := w.viewer(2, 1)
			v.want(welcome2, online)
		}
		if took := time.Since(began); took > postTime+time.Second {
			t.Errorf("five viewers took %v to come in", took)
		}
		wg.Wait()
		if v := believe(t, boat.got(), true); v.count != 6 {
			t.Errorf("the boat believes in %+v", v)
		}
		for range 3 {
			time.Sleep(10 * time.Second)
		}
		stuck.mu.Lock()
		stuck.broken, stuck.posted = nil, nil
		stuck.mu.Unlock()
		time.Sleep(10 * time.Second)
		stuck.want(online)
	}, functions)
}
