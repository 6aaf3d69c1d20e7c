package aelos

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"blindpost/shared/gateway"
)

// view is what a boat believes, from all that it has been told.
type view struct {
	tags    []string
	count   int
	frames  int
	welcome int
}

// believe applies what a boat has got. Strict says that nothing came twice.
func believe(t *testing.T, got []string, strict bool) (v view) {
	t.Helper()
	v.count = -1
	for _, text := range got {
		if strings.HasPrefix(text, `{"t":"welcome"`) {
			v.welcome++
			continue
		}
		var f viewersFrame
		if err := json.Unmarshal([]byte(text), &f); err != nil || f.T != typeViewers {
			t.Fatalf("boat has got %s", text)
		}
		if v.welcome == 0 {
			t.Error("viewers comes before welcome")
		}
		for _, a := range f.Attach {
			if !slices.Contains(v.tags, a) {
				v.tags = append(v.tags, a)
			} else if strict {
				t.Errorf("%s attaches twice", a)
			}
		}
		for _, d := range f.Detach {
			i := slices.Index(v.tags, d)
			if i >= 0 {
				v.tags = slices.Delete(v.tags, i, i+1)
			} else if strict {
				t.Errorf("%s detaches and was not there", d)
			}
		}
		v.count = f.Count
		v.frames++
		if strict && f.Count != len(v.tags) {
			t.Errorf("count is %d, the deltas say %d", f.Count, len(v.tags))
		}
	}
	slices.Sort(v.tags)
	return v
}

// wantTruth compares what the boat believes with the roster.
func (w *world) wantTruth(v view) {
	w.t.Helper()
	var tags []string
	r := w.roster("org", "boat")
	for _, one := range r.Viewers {
		tags = append(tags, one.Tag.String())
	}
	slices.Sort(tags)
	if !slices.Equal(v.tags, tags) || v.count != len(tags) {
		w.t.Errorf("the boat believes in %d viewers, %v; the truth is %v", v.count, v.tags, tags)
	}
	if !r.empty() && (!r.settled() || r.Lease != nil) {
		w.t.Errorf("roster is not settled: %+v", r)
	}
}

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

// The boat comes and goes while viewers do: each hears welcome first, then in turn
// what is true, in the end the truth.
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

// deliver gives a frame to the relay as a queue does: again and again until it has
// been handled, in any process.
func (l *line) deliver(e gateway.FrameEvent) {
	l.w.t.Helper()
	for try := range 12 {
		n := l.w.nodes[l.w.next()%len(l.w.nodes)]
		if _, err := n.core.Frame(context.Background(), e); err == nil {
			return
		}
		time.Sleep(time.Second << min(try, 3))
	}
	l.w.t.Fatal("a frame could not be handled")
}

// A process dies at every write that there is, before or after it is done, while it
// admits a viewer; then the frame comes again, or the connection ends, or nothing
// happens at all. In the end everybody knows the truth.
func TestDyingWhileAViewerComes(t *testing.T) {
	for _, after := range []string{"again", "disconnect", "nothing"} {
		for _, done := range []bool{false, true} {
			for n := 1; ; n++ {
				died := false
				t.Run(fmt.Sprintf("%s/done=%v/%d", after, done, n), func(t *testing.T) {
					story(t, func(w *world) {
						boat, first := w.boat(2), w.viewer(2)
						l := w.dial(1)
						e := l.event(fmt.Appendf(nil, `{"t":"hello","proto":2,"role":"viewer","token":%q}`, mint(t, secretA, viewerClaims("org", "boat"))), true)
						w.table.dieAfter(n, done)
						_, err := l.n.core.Frame(context.Background(), e)
						w.table.alive()
						if died = err != nil; died && !errors.Is(err, errDied) {
							t.Fatal(err)
						}
						switch {
						case after == "again":
							l.deliver(e)
							got := l.got()
							if len(got) < 2 || got[0] != welcome2 || got[len(got)-1] != online {
								t.Errorf("the viewer has got %q", got)
							}
							if r := w.roster("org", "boat"); len(r.Viewers) != 2 {
								t.Errorf("%d viewers are attached", len(r.Viewers))
							}
						case after == "disconnect":
							l.hangUp()
							if r := w.roster("org", "boat"); len(r.Viewers) != 1 {
								t.Errorf("%d viewers are attached", len(r.Viewers))
							}
						}
						time.Sleep(time.Minute)
						w.wantTruth(believe(t, boat.got(), false))
						first.want(welcome2, online)
					}, functions)
				})
				if !died || n > 50 {
					if n < 4 || n > 50 {
						t.Errorf("%d writes", n)
					}
					break
				}
			}
		}
	}
}

// The same while a boat takes over, and while it leaves.
func TestDyingWhileABoatComesOrGoes(t *testing.T) {
	for _, what := range []string{"come", "take over", "go"} {
		for _, done := range []bool{false, true} {
			for n := 1; ; n++ {
				died := false
				t.Run(fmt.Sprintf("%s/done=%v/%d", what, done, n), func(t *testing.T) {
					story(t, func(w *world) {
						v := w.viewer(2)
						old := w.dial()
						if what != "come" {
							old = w.boat(2)
						}
						v.got()
						hello := fmt.Appendf(nil, `{"t":"hello","proto":2,"role":"boat","token":%q}`, mint(t, secretA, boatClaims("org", "boat")))
						time.Sleep(time.Second)
						l := w.dial(1)
						e := l.event(hello, true)
						w.table.dieAfter(n, done)
						var err error
						if what == "go" {
							old.end(gateway.CloseNormal)
							err = old.n.core.Disconnect(context.Background(), gateway.DisconnectEvent{Conn: old.id})
						} else {
							_, err = l.n.core.Frame(context.Background(), e)
						}
						w.table.alive()
						died = err != nil
						time.Sleep(time.Second)
						if what == "go" {
							for range 5 { // the queue brings it again
								if err = old.n.core.Disconnect(context.Background(), gateway.DisconnectEvent{Conn: old.id}); err == nil {
									break
								}
								time.Sleep(5 * time.Second)
							}
							if err != nil {
								t.Fatal(err)
							}
							if got := v.got(); len(got) == 0 || got[len(got)-1] != offline {
								t.Errorf("the viewer has got %q", got)
							}
							return
						}
						l.deliver(e)
						w.wantTruth(believe(t, l.got(), false))
						got := v.got()
						if what == "take over" && len(got) > 0 {
							t.Errorf("the viewer has got %q", got)
						}
						if what == "come" && !slices.Contains(got, online) {
							t.Errorf("the viewer has got %q", got)
						}
						if what == "take over" {
							old.say(`{"t":"ping"}`) // if nobody has closed it yet
							old.wantClosed(gateway.CloseReplaced)
						}
						time.Sleep(time.Minute)
						l.wantOpen()
						v.wantOpen()
					}, functions)
				})
				if !died || n > 50 {
					break
				}
			}
		}
	}
}

// What is delivered again long after does not take the boat back.
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

// A handler that is so slow that its lease runs out under it says something old
// after something new; the boat hears the truth once more.
func TestSlowTellerIsCorrected(t *testing.T) {
	story(t, func(w *world) {
		boat := w.boat(2)
		boat.got()
		first := true
		boat.mu.Lock()
		boat.posted = func(m gateway.Message) {
			if first {
				first = false
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

// Nobody tells that a connection has ended: a post finds out.
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
		boat.want(welcome2, viewers(1, []string{tb}, nil))
		b.want(online)
	}, functions)
}

// And if nobody posts either, the sweeper does.
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
		if r := w.roster("org", "boat"); r.version != "" {
			t.Errorf("roster is left: %+v", r)
		}
	}, functions)
}

// The roster outlives what it would live without the sweeper, as long as there is
// somebody in it: connections of our own front may last.
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
		time.Sleep(2 * time.Second)
		a.want(online)
		if v := believe(t, boat.got(), true); v.count != 2 {
			t.Errorf("the boat believes in %+v", v)
		}
	}, functions)
}
