package stories

import (
	"strings"
	"testing"
	"time"

	"blindpost/shared/gateway"
	"blindpost/shared/proof/bubble"
	"blindpost/shared/standalone"
)

// abandoned is a home that everybody has left just now: one phone that is
// authorised, with a message in its mailbox, one that is pending, and an open
// pairing window.
func (w *world) abandoned() (h *home, left time.Time) {
	w.T.Helper()
	h, agent := w.homeWith(1)
	pending := h.phone()
	p := pending.tryPair(h.openWindow(agent, 0, 300))
	p.wantAuthOk(h)
	p.close()
	agent.wantPaired(pending)
	h.openWindow(agent, 600, 600)
	agent.post(h.phones[0], w.parcel(100))
	w.Sleep(777 * time.Millisecond)
	phone := h.phones[0].connect(line{mode: deaf}) // so that the message stays
	phone.want("the message")
	agent.wantOnline(h.phones[0])
	agent.close()
	phone.wantOffline(h.agent)
	w.Sleep(time.Hour)
	phone = h.phones[0].connect(line{mode: deaf})
	phone.want("the message")
	phone.Drop()
	w.Settle()
	return h, time.Now()
}

// A namespace without any connection lives for 7 days after the last one, to the
// millisecond, whether or not the sweeper runs.
func TestSection11_NamespaceExpires(t *testing.T) {
	for _, sweeps := range []bool{true, false} {
		name := map[bool]string{true: "with the sweeper", false: "without"}[sweeps]
		t.Run(name+", one millisecond before", func(t *testing.T) {
			inBubble(t, func(t *testing.T, w *world) {
				h, left := w.abandoned()
				if !sweeps {
					w.Node.StopSweep()
				}
				w.Sleep(time.Until(left.Add(7 * bubble.Day).Add(-time.Millisecond)))
				phone := h.phones[0].connect()
				phone.wantNothing() // the message is older, and has expired by itself
				agent := h.agent.connect()
				agent.want("ClientPaired for the one that is pending")
				phone.wantOnline(h.agent)
				m := w.parcel(10)
				agent.post(h.phones[0], m)
				phone.wantMessages(h.agent, m)
			})
		})
		for _, late := range []time.Duration{0, time.Second, 90 * time.Second, 30 * bubble.Day} {
			t.Run(name+", 7 days and "+late.String(), func(t *testing.T) {
				inBubble(t, func(t *testing.T, w *world) {
					h, left := w.abandoned()
					if !sweeps {
						w.Node.StopSweep()
					}
					w.Sleep(time.Until(left.Add(7 * bubble.Day).Add(late)))
					phone := h.phones[0]
					phone.try().wantRefusal("not_found")
					h.phone().tryPair([32]byte{1}).wantRefusal("not_found")

					// The agent begins from scratch: nobody is paired or pending.
					agent := h.agent.connect()
					agent.wantNothing()
					phone.try().wantRefusal("unauthorized")
					if online := agent.askPresence(); len(online) != 1 || !online[string(h.agent.key)] {
						t.Errorf("%d are online, want only the agent", len(online))
					}
					agent.post(phone, w.parcel(10))
					agent.wantError("not_found")
					h.phones = nil
					h.authorize(agent)
					h.pair(agent, phone)
					p := phone.connect()
					agent.wantOnline(phone)
					p.wantNothing() // the old mailbox is gone
					m := w.parcel(10)
					agent.post(phone, m)
					p.wantMessages(h.agent, m)
				})
			})
		}
	}
}

// The sweeper leaves nothing of it: members, push tokens, mailboxes, windows.
func TestSection11_NothingIsLeft(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		_, left := w.abandoned()
		w.Sleep(time.Until(left.Add(7 * bubble.Day).Add(2 * time.Minute)))
		if n := w.Node.Memory().Len(); n != 0 {
			t.Errorf("%d items are in memory", n)
		}
		w.Shutdown(0)
		for _, key := range w.Stored() {
			t.Errorf("still there: %.40q", key)
		}
	}, keepMessages)
}

// keepMessages lets messages live longer than namespaces, so that they do not go
// by themselves.
func keepMessages(c *standalone.Config) { c.Limits.Relay.MessageTTL = 30 * bubble.Day }

// The same where the agent comes back before the sweeper: of the life before
// nothing is left, only of the new one.
func TestSection11_NothingIsLeftOfTheLifeBefore(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		h, left := w.abandoned()
		w.Node.StopSweep()
		w.Sleep(time.Until(left.Add(7 * bubble.Day)))
		agent := h.agent.connect()
		agent.close()
		if err := w.Node.Sweep(t.Context()); err != nil {
			t.Fatal(err)
		}
		w.Shutdown(0)
		var kinds []string
		for _, key := range w.Stored() {
			key = strings.ReplaceAll(key, h.agent.PublicKey().Hex(), "AGENT")
			key = strings.ReplaceAll(key, h.ns.Hex(), "NS")
			if strings.HasPrefix(key, "due ") {
				key = "due"
			}
			kinds = append(kinds, key)
		}
		if got, want := strings.Join(kinds, ", "), "due, g/skald/NS m/AGENT, g/skald/NS x/root"; got != want {
			t.Errorf("stored is %s, want %s", got, want)
		}
	}, keepMessages)
}

// As long as somebody is connected, whoever it is, the 7 days do not begin.
func TestSection11_ConnectedIsNotIdle(t *testing.T) {
	for _, who := range []string{"client", "agent"} {
		t.Run(who, func(t *testing.T) {
			inBubble(t, func(t *testing.T, w *world) {
				h, agent := w.homeWith(2)
				away := h.phones[1]
				if who == "client" {
					agent.close()
					agent = h.phones[0].connect()
				}
				w.Sleep(8 * bubble.Day)
				away.connect().close()
				agent.wantOnline(away)
				agent.wantOffline(away)
				w.Sleep(time.Hour)
				agent.wantNothing()
				agent.close()
				w.Sleep(7*bubble.Day - time.Second)
				away.connect().close() // starts them again
				w.Sleep(7*bubble.Day - time.Second)
				away.connect().close()
				w.Sleep(7 * bubble.Day)
				away.try().wantRefusal("not_found")
			})
		})
	}
}

// Attempts that are refused are no connections.
func TestSection11_RefusedAttemptsDoNotCount(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		h, agent := w.homeWith(1)
		stranger := h.member("stranger")
		agent.close()
		left := time.Now()
		for range 6 {
			w.Sleep(bubble.Day)
			stranger.try().wantRefusal("unauthorized")
			stranger.tryPair([32]byte{1}).wantRefusal("pairing_closed")
		}
		w.Sleep(time.Until(left.Add(7 * bubble.Day)))
		h.phones[0].try().wantRefusal("not_found")
	})
}

// The end of a relay is the end of its connections, and no more than that: the
// days before and after a restart count together.
func TestSection11_RestartDoesNotCount(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		h, agent := w.homeWith(1)
		w.Sleep(2 * bubble.Day)
		w.Restart()
		agent.wantEnd(gateway.CloseGoingAway)
		w.Sleep(4 * bubble.Day)
		w.Restart()
		w.Sleep(3*bubble.Day - time.Second)
		h.phones[0].connect().close()
		w.Sleep(3 * bubble.Day)
		w.Restart()
		w.Sleep(4 * bubble.Day)
		h.phones[0].try().wantRefusal("not_found")
		w.Sleep(2 * time.Minute)
		w.Shutdown(0)
		if got := w.Stored(); len(got) != 0 {
			t.Errorf("%d items are left", len(got))
		}
	})
}
