package aelos

import (
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

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

// A boat that has heard of a viewer hears of its end, though nobody knew that it had
// heard.
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

// Who has lost the lease and the answer has the boat told once more, too.
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

// A boat that may have heard and has not is told all the same.
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
