package aelos

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"blindpost/shared/gateway"
)

// slowOnce makes the first post slow that holds a text. It arrives then; lost says that it
// is reported as failed all the same.
func (l *line) slowOnce(text string, took time.Duration, lost bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	var slow atomic.Bool
	l.posted = func(m gateway.Message) {
		l.loseAnswers(false)
		if bytes.Contains(m.Data, []byte(text)) && !slow.Swap(true) {
			time.Sleep(took)
			l.loseAnswers(lost)
		}
	}
}

// A handler posts so slowly that its lease runs out, and what it posts arrives after the
// posts of the next handler, which still has its lease when the first one returns. Each
// peer that got posts from both is told again.
func TestLateWordUnderTheNextLease(t *testing.T) {
	for _, lost := range []bool{false, true} {
		t.Run(fmt.Sprintf("lost=%t", lost), func(t *testing.T) {
			story(t, func(w *world) {
				v, boat := w.dial(1), w.dial(2)
				v.slowOnce(offline, leaseTime+2*time.Second, lost)
				boat.slowOnce(typeWelcome, 5*time.Second, false)
				var wg sync.WaitGroup
				hello := func(l *line, role string, claims jwt.MapClaims) {
					data := fmt.Appendf(nil, `{"t":"hello","proto":2,"role":%q,"token":%q}`, role, mint(t, secretA, claims))
					wg.Go(func() {
						if l.try(data, true) != nil {
							time.Sleep(10 * time.Second)
							l.frame--
							l.deliver(l.event(data, true))
						}
					})
				}
				hello(v, "viewer", viewerClaims("org", "boat"))
				time.Sleep(time.Second)
				hello(boat, "boat", boatClaims("org", "boat"))
				wg.Wait()
				time.Sleep(time.Minute)
				got := v.got()
				if got[len(got)-1] != online {
					t.Errorf("the viewer is told %s", got)
				}
				w.wantTruth(believe(t, boat.got(), false))
			}, functions)
		})
	}
}

// The same for a boat that is told of a viewer late, after it was told to forget it.
func TestLateWordToABoatUnderTheNextLease(t *testing.T) {
	story(t, func(w *world) {
		d, left := w.nodes[0].d, tag{1}
		next := &lease{ID: "next", Until: time.Now().Add(leaseTime).UnixMilli()}
		now := &roster{
			group: groupOf("org", "boat"), Boat: &boat{Conn: "boat", Proto: 2, Welcome: true}, Told: []tag{left}, Lease: next,
		}
		if err := d.store(t.Context(), now); err != nil {
			t.Fatal(err)
		}
		late := &announcements{tried: []tag{left}}
		late.failedFor("boat", errors.New("too late"))
		first := &roster{group: now.group, Lease: &lease{ID: "first"}}
		for _, err := range []error{
			d.returnLease(t.Context(), first, late),
			d.returnLease(t.Context(), now, &announcements{boat: "boat"}),
		} {
			if err != nil {
				t.Fatal(err)
			}
		}
		r := w.roster("org", "boat")
		if _, detach := r.deltas(nil); !slices.Contains(detach, left) || r.settled(time.Now()) || r.Lease != nil {
			t.Errorf("the boat is told to forget %v, lease %v", detach, r.Lease)
		}
	})
}

// A tag that an earlier connection of the boat may not have been told to forget is that of
// a viewer all the same: a late word was about it. The boat is not told to forget it.
func TestTagThatIsForgottenAndPresent(t *testing.T) {
	present := tag{1}
	r := &roster{Boat: &boat{Conn: "boat", Proto: 2}, Viewers: []viewer{{Tag: present, Said: saidOnline}}}
	r.keep([]tag{present}, time.Now())
	if attach, detach := r.deltas(r.welcomed()); !slices.Equal(attach, []tag{present}) || len(detach) > 0 {
		t.Errorf("the boat is told to attach %v and to detach %v", attach, detach)
	}
}
