package aelos

import (
	"testing"
	"time"

	"blindpost/shared/gateway"
)

// A peer that the relay has closed leaves at once, for all others, whenever the front
// reports the end: the peer may keep its end open.
func TestClosedIsGoneAtOnce(t *testing.T) {
	story(t, func(w *world) {
		boat, v := w.boat(2), w.viewer(2)
		tag := w.tagOf(v)
		boat.got()
		v.say(`{"t":"viewers"}`)
		v.want(welcome2, online, wrong)
		v.wantClosed(gateway.ClosePolicy)
		boat.want(viewers(0, nil, []string{tag}))

		other := w.viewer(2)
		other.got()
		boat.say(`{"t":"welcome"}`)
		boat.wantClosed(gateway.ClosePolicy)
		other.want(offline)
		boat.hangUp()
		v.hangUp()
		other.want()

		time.Sleep(time.Hour + time.Second)
		other.wantClosed(gateway.ClosePolicy)
		if r := w.roster("org", "boat"); !r.empty() {
			t.Errorf("roster is %+v", r)
		}
	})
}
