package stories

import (
	"testing"
	"time"

	"blindpost/shared/gateway"
)

// The relay pings every 30 s.
func TestSection8_PingEvery30s(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		h := w.home()
		agent := h.agent.connect()
		start := time.Now()
		w.Sleep(10 * time.Minute)
		agent.wantNothing()
		agent.mu.Lock()
		defer agent.mu.Unlock()
		if len(agent.pings) != 20 {
			t.Errorf("%d pings in 10 minutes", len(agent.pings))
		}
		for i, at := range agent.pings {
			want := start.Add(time.Duration(i+1) * 30 * time.Second)
			if d := at.Sub(want); d < 0 || d > time.Second {
				t.Errorf("ping %d came %v off", i+1, d)
			}
		}
	})
}

// Who never answers is closed after 120 s; who answers stays.
func TestSection8_IdleTimeout(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		h, agent := w.homeWith(1)
		phone := h.phones[0].connect()
		agent.wantOnline(h.phones[0])
		phone.mode.Store(deaf)
		start := time.Now()
		w.Sleep(119 * time.Second)
		phone.wantNothing()
		w.Sleep(2 * time.Second)
		if d := phone.wantEnd(gateway.CloseGoingAway).at.Sub(start); d < 120*time.Second || d > 121*time.Second {
			t.Errorf("closed after %v", d)
		}
		phone.mu.Lock()
		if n := len(phone.pings); n < 3 || n > 4 {
			t.Errorf("pinged %d times before", n)
		}
		phone.mu.Unlock()

		w.Sleep(12 * time.Hour)
		agent.wantOffline(h.phones[0])
		agent.wantNothing()
	})
}

// Traffic is traffic: who sends frames need not answer pings.
func TestSection8_FramesKeepAlive(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		h := w.home()
		agent := h.agent.connect()
		agent.mode.Store(deaf)
		for range 20 {
			w.Sleep(119 * time.Second)
			agent.askPresence()
		}
		w.Sleep(121 * time.Second)
		agent.wantEnd(gateway.CloseGoingAway)
	})
}

// A peer that reads slowly is not silent: pongs come late, behind what it has to
// read first, but it takes what it is sent all the time.
func TestSection8_SlowReaderIsNotSilent(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		h, agent := w.homeWith(1)
		phone := h.phones[0].connect(line{pace: pace{16 << 10, time.Second}})
		agent.wantOnline(h.phones[0])
		ms := w.parcels(7, 500_000)
		for i := range ms {
			ms[i].live = true
			agent.post(h.phones[0], ms[i])
		}
		agent.wantNothing()
		w.Sleep(7 * 500_000 / (16 << 10) * time.Second)
		phone.wantMessages(h.agent, ms...)
		w.Sleep(time.Hour)
		phone.wantNothing()
		agent.wantNothing()
	})
}
