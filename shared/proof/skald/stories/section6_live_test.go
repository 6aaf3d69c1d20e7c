package stories

import (
	"testing"
	"time"
)

// A live message and a presence event for a phone that is busy with a long mailbox
// wait their turn, however long that takes; a live message that does not get there
// is answered with PeerOffline.
func TestSection6_LiveDuringALongDrain(t *testing.T) {
	for _, c := range []struct {
		name  string
		drops bool
	}{{"the phone stays", false}, {"the phone goes", true}} {
		t.Run(c.name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, w *world) {
				h, agent := w.homeWith(2)
				ms := w.parcels(170, 60_000)
				for i, m := range ms {
					if i > 0 && i%50 == 0 {
						w.Sleep(time.Minute)
					}
					agent.post(h.phones[0], m)
				}
				phone := h.phones[0].connect(line{pace: pace{12 << 10, time.Second}})
				agent.wantOnline(h.phones[0])
				w.Sleep(10 * time.Second)
				live := w.parcel(100)
				live.live = true
				agent.post(h.phones[0], live)
				other := h.phones[1].connect()
				agent.wantOnline(h.phones[1])
				agent.wantNothing()

				if c.drops {
					w.Sleep(11 * time.Minute)
					phone.Drop()
					agent.wantPeerOffline(h.phones[0])
					agent.wantOffline(h.phones[0])
					other.wantOffline(h.phones[0])
					return
				}
				w.Sleep(20 * time.Minute)
				phone.wantMessages(h.agent, ms...)
				phone.wantMessages(h.agent, live)
				phone.wantOnline(h.phones[1])
				agent.wantNothing()
			})
		})
	}
}
