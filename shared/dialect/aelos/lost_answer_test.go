package aelos

import (
	"bytes"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"blindpost/shared/gateway"
)

// A front may fail to say that it has sent something. What was sent then is known to
// its recipient all the same.

// loseAnswers has the posts to a peer arrive and be reported as failed, or not.
func (l *line) loseAnswers(lost bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.broken, l.arrives = nil, lost
	if lost {
		l.broken = errors.New("the answer is lost")
	}
}

// A boat that was told of a viewer by a post that was reported as failed is told to forget
// the viewer too.
func TestBoatThatWasToldWithoutAnAnswer(t *testing.T) {
	story(t, func(w *world) {
		boat, stays := w.boat(2), w.viewer(2)
		got := append([]string{}, boat.got()...)
		boat.loseAnswers(true)
		goes := w.viewer(2)
		boat.loseAnswers(false)
		goes.hangUp()
		other := w.viewer(2)
		time.Sleep(time.Minute)
		got = append(got, boat.got()...)
		w.wantTruth(believe(t, got, false))
		for _, v := range []*line{stays, other} {
			v.want(welcome2, online)
		}
	}, functions)
}

// A viewer that has heard that the boat is gone hears that it is back.
func TestViewerThatWasToldWithoutAnAnswer(t *testing.T) {
	story(t, func(w *world) {
		boat, v := w.boat(2), w.viewer(2)
		v.want(welcome2, online)
		v.loseAnswers(true)
		boat.hangUp()
		v.loseAnswers(false)
		w.boat(2)
		time.Sleep(time.Minute)
		v.want(offline, online)
	}, functions)
}

// A handler whose lease has run out, and whose posts are reported as failed, has the boat
// told once more.
func TestSlowTellerWithoutAnAnswer(t *testing.T) {
	story(t, func(w *world) {
		boat := w.boat(2)
		got := append([]string{}, boat.got()...)
		var later atomic.Bool
		boat.mu.Lock()
		boat.posted = func(gateway.Message) {
			if !later.Swap(true) {
				time.Sleep(leaseTime + 10*time.Second)
				boat.loseAnswers(true)
			}
		}
		boat.mu.Unlock()
		var wg sync.WaitGroup
		wg.Go(func() { w.viewer(2, 1) })
		time.Sleep(time.Second)
		w.viewer(2, 2)
		wg.Wait()
		boat.loseAnswers(false)
		time.Sleep(time.Minute)
		w.wantTruth(believe(t, append(got, boat.got()...), false))
	}, functions)
}

// A boat that a failed post may have reached, but has not, is told all the same.
func TestBoatThatWasNotTold(t *testing.T) {
	story(t, func(w *world) {
		boat := w.boat(2)
		got := append([]string{}, boat.got()...)
		boat.mu.Lock()
		boat.broken = errors.New("throttled")
		boat.mu.Unlock()
		w.viewer(2)
		boat.loseAnswers(false)
		time.Sleep(time.Minute)
		w.wantTruth(believe(t, append(got, boat.got()...), false))
	}, functions)
}

// failOnce makes the first post fail that holds a text; nothing is sent.
func (l *line) failOnce(text string) {
	failed := false
	l.posted = func(m gateway.Message) {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.broken = nil
		if !failed && bytes.Contains(m.Data, []byte(text)) {
			failed, l.broken = true, errors.New("throttled")
		}
	}
}

// A viewer whose welcome was posted does not get a second one because the post after it
// has failed.
func TestWelcomeIsNotRepeated(t *testing.T) {
	story(t, func(w *world) {
		hello := func(role, fails string, claims jwt.MapClaims) *line {
			l := w.dial()
			l.failOnce(fails)
			l.deliver(l.event(fmt.Appendf(nil, `{"t":"hello","proto":2,"role":%q,"token":%q}`, role, mint(t, secretA, claims)), true))
			return l
		}
		v := hello("viewer", typeBoatStatus, viewerClaims("org", "boat"))
		v.want(welcome2, offline)
		boat := hello("boat", typeViewers, boatClaims("org", "boat"))
		boat.want(welcome2, viewers(1, []string{w.tagOf(v)}, nil))
		v.want(online)
	}, functions)
}

// The same when the lease has run out meanwhile, and when no handler waits for the outcome.
func TestWelcomeIsNotForgotten(t *testing.T) {
	n := &announcements{welcomed: []gateway.Conn{"boat", "viewer"}}
	n.failedFor("boat", errors.New("throttled"))
	n.failedFor("viewer", errors.New("throttled"))
	r := &roster{Boat: &boat{Conn: "boat"}, Viewers: []viewer{{Tag: tag{1}, Conn: "viewer"}, {Tag: tag{2}, Conn: "other"}}}
	if !n.markUncertain(r) || !r.Boat.Welcome || r.Viewers[0].Said != saidUncertain || r.Viewers[1].Said != saidNothing {
		t.Errorf("roster is %+v, boat %+v", r, r.Boat)
	}
}
