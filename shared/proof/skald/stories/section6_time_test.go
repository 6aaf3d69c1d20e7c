package stories

import (
	"testing"
	"time"

	"blindpost/shared/proof/bubble"
)

// A stored message lives for 7 days. Namespaces do as well, so the agent looks in
// between.
func TestSection6_MessageTTL(t *testing.T) {
	for _, c := range []struct {
		name string
		wait time.Duration
		want bool
	}{
		{"6d23h", 7*bubble.Day - time.Hour, true},
		{"one second before", 7*bubble.Day - time.Second, true},
		{"7d", 7 * bubble.Day, false},
		{"8d", 8 * bubble.Day, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, w *world) {
				h, agent := w.homeWith(1)
				old := w.parcels(2, 100)
				for _, m := range old {
					agent.post(h.phones[0], m)
				}
				agent.close()
				w.Sleep(3 * bubble.Day)
				agent = h.agent.connect()
				fresh := w.parcel(100)
				agent.post(h.phones[0], fresh)
				agent.close()
				w.Sleep(c.wait - 3*bubble.Day)
				phone := h.phones[0].connect()
				if c.want {
					phone.wantMessages(h.agent, old...)
				}
				phone.wantMessages(h.agent, fresh)
				phone.wantNothing()
			})
		})
	}
}

// A mailbox that is full of expired messages is not full.
func TestSection6_ExpiredMessagesMakeRoom(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		h, agent := w.homeWith(1)
		for i := range 200 {
			if i > 0 && i%60 == 0 {
				w.Sleep(time.Minute) // the budget of the connection
			}
			agent.post(h.phones[0], w.parcel(10))
		}
		agent.wantNothing()
		w.Sleep(time.Minute)
		agent.post(h.phones[0], w.parcel(10))
		agent.wantError("queue_full")

		w.Sleep(7*bubble.Day - 4*time.Minute) // the oldest 60 have expired, the others not
		ms := w.parcels(60, 10)
		for _, m := range ms {
			agent.post(h.phones[0], m)
		}
		agent.wantNothing()
		w.Sleep(time.Minute) // and 60 more
		agent.post(h.phones[0], w.parcel(10))
		agent.wantNothing()

		w.Sleep(6 * bubble.Day)
		phone := h.phones[0].connect()
		agent.wantOnline(h.phones[0])
		phone.wantMessages(h.agent, ms...)
		phone.want("the last message")
		phone.wantNothing()
	})
}

// What has expired is not worth a push: after a message that nobody fetched, a
// phone that comes and goes is left in peace.
func TestSection6_NoPushForExpiredMessages(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		h, agent := w.homeWith(1)
		agent.post(h.phones[0], w.parcel(10))
		w.Pushes.Take()
		w.Sleep(7*bubble.Day + time.Minute)
		phone := h.phones[0].connect()
		phone.wantNothing()
		phone.close()
		w.Sleep(time.Hour)
		if got := w.Pushes.Take(); len(got) != 0 {
			t.Errorf("%d pushes for a mailbox with nothing in it", len(got))
		}
	})
}

// A phone whose network is gone: what is posted to the dead connection comes back
// when that is closed, is pushed then and not before, and is delivered in its
// place.
func TestSection6_VanishedPhone(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		h, agent := w.homeWith(1)
		before := w.parcel(100)
		agent.post(h.phones[0], before)
		phone := h.phones[0].connect()
		agent.wantOnline(h.phones[0])
		phone.wantMessages(h.agent, before)
		w.Sleep(45 * time.Second)
		phone.vanish()
		w.Pushes.Take()
		w.Sleep(20 * time.Second)
		posted := w.parcels(5, 100)
		for _, m := range posted {
			agent.post(h.phones[0], m)
		}
		live := w.parcel(100)
		live.live = true
		agent.post(h.phones[0], live)
		agent.wantNothing()

		w.Sleep(80 * time.Second) // 145 s: its last word was at 30 s
		if got := w.Pushes.Take(); len(got) != 0 {
			t.Errorf("%d pushes to a phone that counts as connected", len(got))
		}
		w.Sleep(10 * time.Second)
		agent.wantOffline(h.phones[0])
		got := w.Pushes.Take()
		if len(got) != 1 {
			t.Fatalf("%d pushes when the connection was closed, want 1", len(got))
		}
		if got[0].Token != h.phones[0].token {
			t.Error("the push has another token")
		}
		after := w.parcels(3, 100)
		for _, m := range after {
			agent.post(h.phones[0], m)
		}
		if got := w.Pushes.Take(); len(got) != len(after) {
			t.Errorf("%d pushes for %d messages", len(got), len(after))
		}

		w.Sleep(time.Hour)
		again := h.phones[0].connect()
		agent.wantOnline(h.phones[0])
		again.wantMessages(h.agent, append(posted, after...)...)
		again.wantNothing()
		again.close()
		again = h.phones[0].connect()
		again.wantNothing()
	})
}

// The phone is back before the dead connection is noticed: it gets what was
// posted into that, and no push is needed.
func TestSection6_VanishedPhoneComesBackFirst(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		h, agent := w.homeWith(1)
		old := h.phones[0].connect()
		agent.wantOnline(h.phones[0])
		w.Sleep(10 * time.Second)
		old.vanish()
		ms := w.parcels(4, 100)
		for _, m := range ms[:3] {
			agent.post(h.phones[0], m)
		}
		w.Sleep(20 * time.Second)
		again := h.phones[0].connect()
		agent.post(h.phones[0], ms[3])
		again.wantMessages(h.agent, ms...)
		w.Sleep(10 * time.Minute)
		again.wantNothing()
		agent.wantNothing()
		if got := w.Pushes.Take(); len(got) != 0 {
			t.Errorf("%d pushes", len(got))
		}
	})
}

// A long mailbox, 200 messages of 60 KB, drains to a phone on a slow line, which
// is alive all the time and so neither idle nor too slow. Messages that are sent
// meanwhile come after it.
func TestSection6_DrainToASlowReader(t *testing.T) {
	for _, c := range []struct {
		name string
		pace pace
	}{
		{"32 KB/s", pace{64 << 10, 2 * time.Second}},
		{"12 KB/s", pace{12 << 10, time.Second}},
		{"8 KB/s", pace{8 << 10, time.Second}}, // a mobile contract whose volume is used up
	} {
		t.Run(c.name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, w *world) {
				h, agent := w.homeWith(1)
				ms := w.parcels(200, 60_000)
				for i, m := range ms {
					if i > 0 && i%60 == 0 {
						w.Sleep(time.Minute)
					}
					agent.post(h.phones[0], m)
				}
				agent.wantNothing()
				phone := h.phones[0].connect(line{pace: c.pace})
				agent.wantOnline(h.phones[0])

				total := time.Duration(200*60_000/c.pace.bytes) * c.pace.pause
				w.Sleep(total / 2)
				late := w.parcel(100)
				late.live = true
				agent.post(h.phones[0], late)
				w.Sleep(total)
				phone.wantMessages(h.agent, append(ms, late)...)
				phone.wantNothing()
				agent.wantNothing()
				phone.close()
				again := h.phones[0].connect()
				again.wantNothing()
			})
		})
	}
}

// A phone that goes away in the middle of a long drain gets the rest the next
// time, and perhaps some of it twice, but in order and with nothing left out.
func TestSection6_DrainIsInterrupted(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		h, agent := w.homeWith(1)
		ms := w.parcels(60, 60_000)
		for _, m := range ms {
			agent.post(h.phones[0], m)
		}
		agent.close()
		next := 0 // first message that has not been seen
		for range 20 {
			phone := h.phones[0].connect(line{pace: pace{64 << 10, time.Second}})
			w.Sleep(10 * time.Second)
			phone.Drop()
			for first := true; ; first = false {
				a := phone.next()
				if a == nil {
					break
				}
				at := find(ms, a.frame.GetMessage().GetCiphertext())
				if at < 0 || (first && at > next) || (!first && at != next) {
					t.Fatalf("got message %d, want %d", at, next)
				}
				next = at + 1
			}
			w.Settle()
		}
		if next != len(ms) {
			t.Errorf("got %d messages of %d", next, len(ms))
		}
	})
}

func find(ms []parcel, ciphertext []byte) int {
	for i, m := range ms {
		if string(m.ciphertext) == string(ciphertext) {
			return i
		}
	}
	return -1
}
