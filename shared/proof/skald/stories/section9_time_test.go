package stories

import (
	"fmt"
	"testing"
	"time"

	"blindpost/shared/dialect/skald/skaldpb"
)

// The window stays open for as long as the agent asks for, within bounds, and to
// the very end.
func TestSection9_Window(t *testing.T) {
	for _, c := range []struct{ ttl, want uint32 }{
		{0, 300}, {1, 1}, {2, 2}, {300, 300}, {599, 599}, {600, 600}, {601, 600}, {1 << 31, 600}, {1<<32 - 1, 600},
	} {
		t.Run(fmt.Sprint("ttl ", c.ttl), func(t *testing.T) {
			inBubble(t, func(t *testing.T, w *world) {
				h, agent := w.homeWith(0)
				w.Sleep(1234 * time.Millisecond) // not at the beginning of a second
				open := time.Duration(c.want) * time.Second

				token := h.openWindow(agent, c.ttl, c.want)
				w.Sleep(open - time.Millisecond)
				last := h.phone()
				p := last.tryPair(token)
				p.wantAuthOk(h)
				p.close()
				agent.wantPaired(last)

				token = h.openWindow(agent, c.ttl, c.want)
				w.Sleep(open)
				h.phone().tryPair(token).wantRefusal("pairing_closed")
				agent.wantNothing()
			})
		})
	}
}

// A token that was consumed stays consumed: for the same phone, for another, and
// after the window.
func TestSection9_ConsumedStaysConsumed(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		h, agent := w.homeWith(0)
		first, second := h.phone(), h.phone()
		token := h.openWindow(agent, 300, 300)
		p := first.tryPair(token)
		p.wantAuthOk(h)
		p.close()
		agent.wantPaired(first)
		for _, wait := range []time.Duration{0, time.Second, 298 * time.Second, 2 * time.Second, time.Hour} {
			w.Sleep(wait)
			first.tryPair(token).wantRefusal("pairing_closed")
			second.tryPair(token).wantRefusal("pairing_closed")
		}
		// The same token in a new window is a new token.
		agent.send(&skaldpb.RelayFrame{Frame: &skaldpb.RelayFrame_PairingStart{
			PairingStart: &skaldpb.PairingStart{PairingToken: token[:], Ttl: 10}}})
		if agent.want("PairingReady").GetPairingReady() == nil {
			t.Fatal("no new window")
		}
		p = second.tryPair(token)
		p.wantAuthOk(h)
		agent.wantPaired(second)
	})
}

// PairingStop closes the window; a new PairingStart replaces it, token and time.
func TestSection9_StopAndReplace(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		h, agent := w.homeWith(0)
		stop := func() {
			t.Helper()
			agent.send(&skaldpb.RelayFrame{Frame: &skaldpb.RelayFrame_PairingStop{PairingStop: &skaldpb.PairingStop{}}})
			if f := agent.want("PairingStopOk"); f.GetPairingStopOk() == nil {
				t.Fatalf("got %s, want PairingStopOk", describe(f))
			}
		}
		token := h.openWindow(agent, 300, 300)
		w.Sleep(time.Second)
		stop()
		h.phone().tryPair(token).wantRefusal("pairing_closed")
		stop() // nothing is open: as good

		old := h.openWindow(agent, 600, 600)
		w.Sleep(10 * time.Second)
		token = h.openWindow(agent, 20, 20)
		h.phone().tryPair(old).wantRefusal("pairing_closed")
		w.Sleep(19 * time.Second)
		phone := h.phone()
		phone.tryPair(token).wantAuthOk(h)
		agent.wantPaired(phone)
		w.Sleep(time.Second) // the end of the second window is not that of the first
		h.phone().tryPair(token).wantRefusal("pairing_closed")
		h.phone().tryPair(old).wantRefusal("pairing_closed")
		w.Sleep(time.Minute)
		agent.wantNothing()
	})
}

// The window is the agent's and outlives its connection, and a restart.
func TestSection9_WindowOutlivesTheConnection(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		h, agent := w.homeWith(0)
		token := h.openWindow(agent, 300, 300)
		agent.close()
		w.Sleep(100 * time.Second)
		w.Restart()
		w.Sleep(100 * time.Second)
		phone := h.phone()
		phone.tryPair(token).wantAuthOk(h)
		w.Sleep(99 * time.Second)
		agent = h.agent.connect()
		agent.wantPaired(phone)
		agent.wantNothing()
	})
}
