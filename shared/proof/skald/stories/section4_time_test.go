package stories

import (
	"testing"
	"time"

	"github.com/gobwas/ws"

	skaldclient "blindpost/shared/client/skald"
	"blindpost/shared/gateway"
)

// The challenge expires 30 s after the relay has spoken: 0.1 s earlier is in time.
func TestSection4_ChallengeTimeout(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		h := w.home()
		silent, late, onTime := h.agent.dial(), h.agent.dial(), h.agent.dial()
		dialed := time.Now()

		w.Sleep(29900 * time.Millisecond)
		onTime.answer(skaldclient.AgentAuth(h.agent.Identity))
		onTime.wantAuthOk(h)
		silent.wantNothing()

		// Not in time, at the very moment: whether the relay looks at its clock or
		// at the frame first, the answer is the same.
		time.Sleep(100 * time.Millisecond)
		if f, err := skaldclient.AgentAuth(h.agent.Identity)(late.nonce); err != nil {
			t.Fatal(err)
		} else if err := late.trySend(f); err != nil {
			t.Log("closed before the frame was read: ", err)
		}
		late.wantRefusal("challenge_timeout")
		silent.wantRefusal("challenge_timeout")
		if d := silent.end().at.Sub(dialed); d != 30*time.Second {
			t.Errorf("the silent one was closed after %v", d)
		}

		w.Sleep(time.Hour)
		onTime.wantNothing()
	})
}

// What is not an Auth gains no time: neither pings nor half a frame.
func TestSection4_ChallengeTimeoutIsNotPutOff(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		h := w.home()
		p := h.agent.dial()
		w.Sleep(15 * time.Second)
		p.control(ws.OpPing, []byte("here I am"))
		w.Sleep(14 * time.Second)
		if _, err := p.nc.Write([]byte{0x82, 0xfe, 0x01}); err != nil {
			t.Fatal(err)
		}
		w.Sleep(999 * time.Millisecond)
		p.wantNothing()
		w.Sleep(time.Millisecond)
		p.wantRefusal("challenge_timeout")
	})
}

// A peer that does not answer the close either is cut off soon.
func TestSection4_TimedOutPeerIsCutOff(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		p := w.home().agent.dial()
		p.mode.Store(deaf)
		w.Sleep(40 * time.Second)
		p.wantRefusal("challenge_timeout")
		if err := p.put(ws.NewPingFrame(nil)); err == nil {
			t.Error("the transport is still open")
		}
	})
}

// After AuthOk a pairing client closes. One that does not is closed 30 s later,
// whatever it sends, and was of no use meanwhile.
func TestSection4_PairingConnectionIsClosed(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		h, agent := w.homeWith(0)
		phone, polite := h.phone(), h.member("polite phone")
		w.Sleep(10 * time.Second)
		p := phone.tryPair(h.openWindow(agent, 0, 300))
		p.wantAuthOk(h)
		paired := time.Now()
		agent.wantPaired(phone)

		w.Sleep(29 * time.Second)
		p.post(h.agent, w.parcel(10))
		p.wantError("bad_request")
		p.wantNothing()
		w.Sleep(time.Second)
		if at := p.wantEnd(gateway.CloseNormal).at; at.Sub(paired) != 30*time.Second {
			t.Errorf("closed after %v", at.Sub(paired))
		}

		q := polite.tryPair(h.openWindow(agent, 0, 300))
		q.wantAuthOk(h)
		q.close()
		agent.wantPaired(polite)
		w.Sleep(time.Minute)
		agent.wantNothing()
	})
}
