package stories

import (
	"testing"
	"time"

	"blindpost/shared/gateway"
)

// blindWindow is how late a silent death is noticed: 120 s of silence, and the
// second that the peer has to answer the close.
const blindWindow = 121 * time.Second

// A connection whose network is gone is noticed 120 s after its last word. Until
// then the peer counts as online.
func TestSection7_SilentDeath(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		h, agent := w.homeWith(2)
		dead, other := h.phones[0].connect(), h.phones[1].connect()
		agent.wantOnline(h.phones[0])
		agent.wantOnline(h.phones[1])
		dead.wantOnline(h.phones[1])
		w.Sleep(50 * time.Second) // its last word is the pong at 30 s
		dead.vanish()

		w.Sleep(99 * time.Second)
		if !agent.askPresence()[string(h.phones[0].key)] {
			t.Error("it is not on the list any more, though nobody can know")
		}
		agent.wantNothing()
		w.Sleep(blindWindow - 119*time.Second)
		agent.wantOffline(h.phones[0])
		other.wantOffline(h.phones[0])
		if agent.askPresence()[string(h.phones[0].key)] {
			t.Error("it is on the list")
		}

		// Section 6.4: PeerOffline is what covers the blind window, from its end on.
		m := w.parcel(10)
		m.live = true
		agent.post(h.phones[0], m)
		agent.wantPeerOffline(h.phones[0])
		w.Sleep(time.Hour)
		agent.wantNothing()
		other.wantNothing()
	})
}

// A peer that comes back within the blind window was never away: nobody is told
// anything, neither then nor when the old connection ends.
func TestSection7_BackBeforeAnybodyNoticed(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		h, agent := w.homeWith(1)
		old := h.phones[0].connect()
		agent.wantOnline(h.phones[0])
		w.Sleep(10 * time.Second)
		old.vanish()

		w.Sleep(60 * time.Second)
		again := h.phones[0].connect()
		agent.wantNothing()
		w.Sleep(10 * time.Minute)
		agent.wantNothing()
		again.wantNothing()
		if !agent.askPresence()[string(h.phones[0].key)] {
			t.Error("it is not on the list")
		}
		ms := w.parcels(2, 10)
		ms[1].live = true
		for _, m := range ms {
			agent.post(h.phones[0], m)
		}
		again.wantMessages(h.agent, ms...)
	})
}

// The same for the agent, which has no push: its phones are not told either.
func TestSection7_AgentIsReplaced(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		h, old := w.homeWith(1)
		phone := h.phones[0].connect()
		old.wantOnline(h.phones[0])
		again := h.agent.connect()
		old.wantEnd(gateway.CloseReplaced)
		w.Sleep(10 * time.Minute)
		phone.wantNothing()
		again.wantNothing()
		if online := again.askPresence(); len(online) != 2 {
			t.Errorf("%d are online, want 2", len(online))
		}
	})
}
