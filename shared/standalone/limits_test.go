package standalone

import (
	"net/http"
	"testing"
	"time"

	"blindpost/shared/dialect/skald/skaldpb"
	"blindpost/shared/gateway"
)

// New limits are in force at once, for connections that are open as well.
func TestSetLimits(t *testing.T) {
	live := func(w *world, size int) parcel {
		m := w.parcel(size)
		m.live = true
		return m
	}
	for _, c := range []struct {
		name  string
		story func(w *world, h *home, agent, phone *peer, set func(func(*Limits)))
	}{
		{"messages per minute", func(w *world, h *home, agent, phone *peer, set func(func(*Limits))) {
			ms := w.parcels(4, 10)
			agent.post(h.phones[0], ms[0])
			agent.post(h.phones[0], ms[1])
			set(func(l *Limits) { l.Relay.MessagesPerMinute = 2 })
			agent.post(h.phones[0], w.parcel(10))
			agent.wantError("rate_limited")
			set(func(l *Limits) { l.Relay.MessagesPerMinute = 3 })
			agent.post(h.phones[0], ms[2])
			agent.post(h.phones[0], w.parcel(10))
			agent.wantError("rate_limited")
			set(func(l *Limits) { l.Relay.MessagesPerMinute = 0 })
			agent.post(h.phones[0], ms[3])
			phone.wantMessages(h.agent, ms...)
		}},
		{"control frames per minute", func(w *world, h *home, agent, phone *peer, set func(func(*Limits))) {
			set(func(l *Limits) { l.Relay.ControlPerMinute = 1 })
			agent.send(&skaldpb.RelayFrame{Frame: &skaldpb.RelayFrame_PairingStop{PairingStop: &skaldpb.PairingStop{}}})
			agent.wantError("rate_limited") // pairing took more
			set(func(l *Limits) { l.Relay.ControlPerMinute = 0 })
			h.openWindow(agent, 0, 300)
		}},
		{"mailbox cap", func(w *world, h *home, agent, phone *peer, set func(func(*Limits))) {
			phone.drop()
			agent.wantOffline(h.phones[0])
			ms := w.parcels(3, 10)
			agent.post(h.phones[0], ms[0])
			agent.post(h.phones[0], ms[1])
			set(func(l *Limits) { l.Relay.MailboxCap = 1 })
			agent.post(h.phones[0], w.parcel(10))
			agent.wantError("queue_full")
			set(func(l *Limits) { l.Relay.MailboxCap = 3 })
			agent.post(h.phones[0], ms[2])
			agent.post(h.phones[0], w.parcel(10))
			agent.wantError("queue_full")
			h.phones[0].connect().wantMessages(h.agent, ms...)
		}},
		{"connections per address", func(w *world, h *home, agent, phone *peer, set func(func(*Limits))) {
			from := line{from: "192.0.2.1"}
			h.agent.dial(from)
			h.agent.dial(from)
			set(func(l *Limits) { l.Relay.ConnectionsPerIP = 2 })
			w.refused(http.StatusTooManyRequests, from)
			set(func(l *Limits) { l.Relay.ConnectionsPerIP = 10 })
			h.agent.dial(from)
			set(func(l *Limits) { l.Relay.ConnectionsPerIP = 1 })
			w.refused(http.StatusTooManyRequests, from)
			set(func(l *Limits) { l.Relay.ConnectionsPerIP = 0 })
			h.agent.dial(from)
		}},
		{"message life", func(w *world, h *home, agent, phone *peer, set func(func(*Limits))) {
			phone.drop()
			agent.wantOffline(h.phones[0])
			m := w.parcel(10)
			agent.post(h.phones[0], m)
			set(func(l *Limits) { l.Relay.MessageTTL = time.Minute })
			agent.post(h.phones[0], w.parcel(10))
			w.sleep(time.Minute)
			p := h.phones[0].connect()
			p.wantMessages(h.agent, m)
			p.wantNothing()
		}},
		{"smaller frames", func(w *world, h *home, agent, phone *peer, set func(func(*Limits))) {
			set(func(l *Limits) { l.Skald.MaxFrame, l.Skald.MaxLiveFrame = 1000, 2000 })
			agent.post(h.phones[0], w.parcel(1000))
			agent.wantError("payload_too_large")
			ms := []parcel{w.parcel(900), live(w, 1900)}
			agent.post(h.phones[0], ms[0])
			agent.post(h.phones[0], ms[1])
			phone.wantMessages(h.agent, ms...)
			agent.post(h.phones[0], live(w, 2000)) // more than any frame may have
			agent.wantError("payload_too_large")
			agent.wantEnd(gateway.CloseTooLarge)
		}},
		{"larger frames", func(w *world, h *home, agent, phone *peer, set func(func(*Limits))) {
			set(func(l *Limits) { l.Skald.MaxFrame, l.Skald.MaxLiveFrame = 128<<10, 1<<20 })
			ms := []parcel{w.parcel(100_000), live(w, 1_000_000)}
			agent.post(h.phones[0], ms[0])
			agent.post(h.phones[0], ms[1])
			phone.wantMessages(h.agent, ms...)
		}},
		{"shorter challenge timeout", func(w *world, h *home, agent, phone *peer, set func(func(*Limits))) {
			p := h.agent.dial()
			set(func(l *Limits) { l.Skald.ChallengeTimeout = 10 * time.Second })
			q := h.agent.dial()
			w.sleep(10 * time.Second)
			q.wantRefusal("challenge_timeout")
			p.send(&skaldpb.RelayFrame{})
			p.wantRefusal("challenge_timeout")
		}},
		{"longer challenge timeout", func(w *world, h *home, agent, phone *peer, set func(func(*Limits))) {
			p := h.member("late").dial()
			set(func(l *Limits) { l.Skald.ChallengeTimeout = 2 * time.Minute })
			w.sleep(90 * time.Second)
			p.wantNothing()
			w.sleep(30 * time.Second)
			p.wantRefusal("challenge_timeout")
		}},
		{"pairing window", func(w *world, h *home, agent, phone *peer, set func(func(*Limits))) {
			set(func(l *Limits) { l.Skald.PairingTTL, l.Skald.PairingTTLMax = 50*time.Second, 100*time.Second })
			h.openWindow(agent, 0, 50)
			h.openWindow(agent, 600, 100)
		}},
		{"namespace life", func(w *world, h *home, agent, phone *peer, set func(func(*Limits))) {
			phone.close()
			agent.close()
			w.sleep(2 * time.Hour)
			h.phones[0].connect().close()
			w.sleep(time.Hour)
			set(func(l *Limits) { l.Skald.NamespaceTTL = time.Hour })
			h.phones[0].try().wantRefusal("not_found")
		}},
		{"longer namespace life", func(w *world, h *home, agent, phone *peer, set func(func(*Limits))) {
			phone.close()
			agent.close()
			w.sleep(6 * day)
			set(func(l *Limits) { l.Skald.NamespaceTTL = 30 * day })
			w.sleep(20 * day)
			h.phones[0].connect().close()
			set(func(l *Limits) { l.Skald.NamespaceTTL = 0 }) // for ever
			w.sleep(40 * day)
			h.phones[0].connect()
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, w *world) {
				h, agent := w.homeWith(1)
				phone := h.phones[0].connect()
				agent.wantOnline(h.phones[0])
				l := w.cfg.Limits
				c.story(w, h, agent, phone, func(change func(*Limits)) {
					change(&l)
					w.node.SetLimits(l)
				})
			})
		})
	}
}
