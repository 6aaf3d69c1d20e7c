package aelos

import (
	"errors"
	"slices"
	"testing"
	"time"

	"blindpost/shared/gateway"
)

// stick makes the relay fail to close a connection, or not any more.
func (l *line) stick(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.stuck = err
}

// A connection that was replaced is closed, though the front has failed to do so at
// first: its peer would wait for viewers for ever. Meanwhile no other peer waits for it.
func TestReplacedConnectionThatCouldNotBeClosed(t *testing.T) {
	story(t, func(w *world) {
		old, v := w.boat(2), w.viewer(2)
		tag := w.tagOf(v)
		old.stick(errors.New("throttled"))
		boat := w.boat(2, 1)
		boat.want(welcome2, viewers(1, []string{tag}, nil))
		other := w.viewer(2, 2)
		other.want(welcome2, online)
		time.Sleep(20 * time.Second)
		old.wantOpen()
		old.stick(nil)
		time.Sleep(20 * time.Second)
		old.wantClosed(gateway.CloseReplaced)
		boat.wantOpen()
		v.want(welcome2, online)
		if r := w.roster("org", "boat"); len(r.Replaced) > 0 {
			t.Errorf("%v are still to be closed", r.Replaced)
		}
	}, functions)
}

// The same when the one that has replaced it is gone by then.
func TestReplacedConnectionOutlivesTheNewerOne(t *testing.T) {
	story(t, func(w *world) {
		old := w.boat(2)
		old.stick(errors.New("throttled"))
		w.boat(2, 1).hangUp()
		old.stick(nil)
		time.Sleep(time.Minute)
		old.wantClosed(gateway.CloseReplaced)
		if r := w.roster("org", "boat"); r.version != "" {
			t.Errorf("roster is %+v", r)
		}
	}, functions)
}

// A replaced connection that has ended is no longer to be closed.
func TestReplacedConnectionThatHangsUp(t *testing.T) {
	for _, told := range []bool{true, false} {
		story(t, func(w *world) {
			old := w.boat(2)
			old.stick(errors.New("throttled"))
			boat := w.boat(2, 1)
			if told {
				old.hangUp()
			} else {
				old.end(gateway.CloseNormal)
				time.Sleep(time.Minute)
			}
			if r := w.roster("org", "boat"); slices.Contains(r.conns(), old.id) {
				t.Errorf("roster is %+v", r)
			}
			boat.wantOpen()
		}, functions)
	}
}

// A hello that comes again does not bring a replaced connection back.
func TestReplacedConnectionSaysHelloAgain(t *testing.T) {
	story(t, func(w *world) {
		old := w.dial()
		e := old.event([]byte(`{"t":"hello","proto":2,"role":"boat","token":"`+mint(t, secretA, boatClaims("org", "boat"))+`"}`), true)
		old.deliver(e)
		old.stick(errors.New("throttled"))
		w.boat(2, 1).hangUp()
		old.stick(nil)
		old.deliver(e)
		old.wantClosed(gateway.CloseReplaced)
		if r := w.roster("org", "boat"); r.Boat != nil {
			t.Errorf("roster is %+v", r)
		}
	}, functions)
}

// A handler whose lease has run out does not know whether the boat was told of a viewer. By
// then the boat has a newer connection, which was told only of others: it is told of that
// viewer all the same.
func TestLateWordToAReplacedBoat(t *testing.T) {
	stays, late := tag{1}, tag{2}
	r := &roster{
		Boat:    &boat{Conn: "newer", Proto: 2, Welcome: true, Listed: true},
		Viewers: []viewer{{Tag: stays, Said: saidOnline}, {Tag: late, Said: saidOnline}},
		Told:    []tag{stays},
	}
	n := &announcements{tried: []tag{late}}
	n.failedFor("older", errors.New("throttled"))
	if !n.markUncertain(r) {
		t.Fatal("nothing is to be told again")
	}
	if attach, _ := r.deltas(r.welcomed()); !slices.Contains(attach, late) || r.settled(time.Now()) {
		t.Errorf("the boat is told of %v", attach)
	}
}
