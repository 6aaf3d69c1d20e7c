package stories

import (
	"net/http"
	"testing"
	"time"

	"blindpost/shared/dialect/skald/skaldpb"
	"blindpost/shared/gateway"
	"blindpost/shared/proof/bubble"
	"blindpost/shared/standalone"
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
		story func(w *world, h *home, agent, phone *peer, set func(func(*standalone.Limits)))
	}{
		{"messages per minute", func(w *world, h *home, agent, phone *peer, set func(func(*standalone.Limits))) {
			ms := w.parcels(4, 10)
			agent.post(h.phones[0], ms[0])
			agent.post(h.phones[0], ms[1])
			set(func(l *standalone.Limits) { l.Relay.MessagesPerMinute = 2 })
			agent.post(h.phones[0], w.parcel(10))
			agent.wantError("rate_limited")
			set(func(l *standalone.Limits) { l.Relay.MessagesPerMinute = 3 })
			agent.post(h.phones[0], ms[2])
			agent.post(h.phones[0], w.parcel(10))
			agent.wantError("rate_limited")
			set(func(l *standalone.Limits) { l.Relay.MessagesPerMinute = 0 })
			agent.post(h.phones[0], ms[3])
			phone.wantMessages(h.agent, ms...)
		}},
		{"control frames per minute", func(w *world, h *home, agent, phone *peer, set func(func(*standalone.Limits))) {
			set(func(l *standalone.Limits) { l.Relay.ControlPerMinute = 1 })
			agent.send(&skaldpb.RelayFrame{Frame: &skaldpb.RelayFrame_PairingStop{PairingStop: &skaldpb.PairingStop{}}})
			agent.wantError("rate_limited") // pairing took more
			set(func(l *standalone.Limits) { l.Relay.ControlPerMinute = 0 })
			h.openWindow(agent, 0, 300)
		}},
		{"mailbox cap", func(w *world, h *home, agent, phone *peer, set func(func(*standalone.Limits))) {
			phone.Drop()
			agent.wantOffline(h.phones[0])
			ms := w.parcels(3, 10)
			agent.post(h.phones[0], ms[0])
			agent.post(h.phones[0], ms[1])
			set(func(l *standalone.Limits) { l.Relay.MailboxCap = 1 })
			agent.post(h.phones[0], w.parcel(10))
			agent.wantError("queue_full")
			set(func(l *standalone.Limits) { l.Relay.MailboxCap = 3 })
			agent.post(h.phones[0], ms[2])
			agent.post(h.phones[0], w.parcel(10))
			agent.wantError("queue_full")
			h.phones[0].connect().wantMessages(h.agent, ms...)
		}},
		{"connections per address", func(w *world, h *home, agent, phone *peer, set func(func(*standalone.Limits))) {
			from := line{from: "192.0.2.1"}
			h.agent.dial(from)
			h.agent.dial(from)
			set(func(l *standalone.Limits) { l.Relay.ConnectionsPerIP = 2 })
			w.refused(http.StatusTooManyRequests, from)
			set(func(l *standalone.Limits) { l.Relay.ConnectionsPerIP = 10 })
			h.agent.dial(from)
			set(func(l *standalone.Limits) { l.Relay.ConnectionsPerIP = 1 })
			w.refused(http.StatusTooManyRequests, from)
			set(func(l *standalone.Limits) { l.Relay.ConnectionsPerIP = 0 })
			h.agent.dial(from)
		}},
		{"message life", func(w *world, h *home, agent, phone *peer, set func(func(*standalone.Limits))) {
			phone.Drop()
			agent.wantOffline(h.phones[0])
			m := w.parcel(10)
			agent.post(h.phones[0], m)
			set(func(l *standalone.Limits) { l.Relay.MessageTTL = time.Minute })
			agent.post(h.phones[0], w.parcel(10))
			w.Sleep(time.Minute)
			p := h.phones[0].connect()
			p.wantMessages(h.agent, m)
			p.wantNothing()
		}},
		{"smaller frames", func(w *world, h *home, agent, phone *peer, set func(func(*standalone.Limits))) {
			set(func(l *standalone.Limits) { l.Skald.MaxFrame, l.Skald.MaxLiveFrame = 1000, 2000 })
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
		{"larger frames", func(w *world, h *home, agent, phone *peer, set func(func(*standalone.Limits))) {
			set(func(l *standalone.Limits) { l.Skald.MaxFrame, l.Skald.MaxLiveFrame = 128<<10, 1<<20 })
			ms := []parcel{w.parcel(100_000), live(w, 1_000_000)}
			agent.post(h.phones[0], ms[0])
			agent.post(h.phones[0], ms[1])
			phone.wantMessages(h.agent, ms...)
		}},
		{"shorter challenge timeout", func(w *world, h *home, agent, phone *peer, set func(func(*standalone.Limits))) {
			p := h.agent.dial()
			set(func(l *standalone.Limits) { l.Skald.ChallengeTimeout = 10 * time.Second })
			q := h.agent.dial()
			w.Sleep(10 * time.Second)
			q.wantRefusal("challenge_timeout")
			p.send(&skaldpb.RelayFrame{})
			p.wantRefusal("challenge_timeout")
		}},
		{"longer challenge timeout", func(w *world, h *home, agent, phone *peer, set func(func(*standalone.Limits))) {
			p := h.member("late").dial()
			set(func(l *standalone.Limits) { l.Skald.ChallengeTimeout = 2 * time.Minute })
			w.Sleep(90 * time.Second)
			p.wantNothing()
			w.Sleep(30 * time.Second)
			p.wantRefusal("challenge_timeout")
		}},
		{"pairing window", func(w *world, h *home, agent, phone *peer, set func(func(*standalone.Limits))) {
			set(func(l *standalone.Limits) {
				l.Skald.PairingTTL, l.Skald.PairingTTLMax = 50*time.Second, 100*time.Second
			})
			h.openWindow(agent, 0, 50)
			h.openWindow(agent, 600, 100)
		}},
		{"namespace life", func(w *world, h *home, agent, phone *peer, set func(func(*standalone.Limits))) {
			phone.close()
			agent.close()
			w.Sleep(2 * time.Hour)
			h.phones[0].connect().close()
			w.Sleep(time.Hour)
			set(func(l *standalone.Limits) { l.Skald.NamespaceTTL = time.Hour })
			h.phones[0].try().wantRefusal("not_found")
		}},
		{"longer namespace life", func(w *world, h *home, agent, phone *peer, set func(func(*standalone.Limits))) {
			phone.close()
			agent.close()
			w.Sleep(6 * bubble.Day)
			set(func(l *standalone.Limits) { l.Skald.NamespaceTTL = 30 * bubble.Day })
			w.Sleep(20 * bubble.Day)
			h.phones[0].connect().close()
			set(func(l *standalone.Limits) { l.Skald.NamespaceTTL = 0 }) // for ever
			w.Sleep(40 * bubble.Day)
			h.phones[0].connect()
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, w *world) {
				h, agent := w.homeWith(1)
				phone := h.phones[0].connect()
				agent.wantOnline(h.phones[0])
				l := w.Cfg.Limits
				c.story(w, h, agent, phone, func(change func(*standalone.Limits)) {
					change(&l)
					w.Node.SetLimits(l)
				})
			})
		})
	}
}
