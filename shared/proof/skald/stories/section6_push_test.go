package stories

import (
	"testing"
	"time"

	"blindpost/shared/proof/bubble"
	"blindpost/shared/push"
)

// Section 6.3: a stored message for a client with a token is a push, with the
// message in it if it fits.
func TestSection6_Push(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		h, agent := w.homeWith(3)
		ios, android, none := h.phones[0], h.phones[1], h.phones[2]
		android.platform, none.token = 2, ""
		for _, m := range []*member{android, none} { // tokens and platforms change here
			m.connect().close()
			agent.wantOnline(m)
			agent.wantOffline(m)
		}
		for _, c := range []struct {
			name string
			to   *member
			size int
			want push.Kind
			on   push.Platform
		}{
			{"small to iOS", ios, 1000, push.Content, push.IOS},
			{"large to iOS", ios, 5000, push.Wake, push.IOS},
			{"small to Android", android, 1000, push.Content, push.Android},
			{"large to Android", android, 60_000, push.Wake, push.Android},
			{"no token", none, 1000, 0, 0},
			{"the agent to itself", h.agent, 1000, 0, 0},
		} {
			agent.post(c.to, w.parcel(c.size))
			got := w.Pushes.Take()
			switch {
			case c.want == 0 && len(got) != 0:
				t.Errorf("%s: %d pushes, want none", c.name, len(got))
			case c.want == 0:
			case len(got) != 1:
				t.Errorf("%s: %d pushes, want one", c.name, len(got))
			case got[0].Kind != c.want || got[0].Platform != c.on || got[0].Token != c.to.token:
				t.Errorf("%s: %v", c.name, got[0])
			case len(got[0].Payload) == 0 || len(got[0].Payload) > push.MaxPayload:
				t.Errorf("%s: payload of %d bytes", c.name, len(got[0].Payload))
			}
		}
		live := w.parcel(10)
		live.live = true
		agent.want("its message to itself")
		agent.post(ios, live)
		agent.want("PeerOffline")
		if got := w.Pushes.Take(); len(got) != 0 {
			t.Error("a live message was pushed")
		}
	})
}

// A token that the provider does not know is forgotten, until the phone brings
// one again; any other failure is tried again.
func TestSection6_PushFailures(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		w.Loud = true
		h, agent := w.homeWith(1)
		phone := h.phones[0]
		w.Pushes.FailNext(bubble.ErrProvider, bubble.ErrProvider)
		start := time.Now()
		agent.post(phone, w.parcel(10))
		w.Sleep(time.Minute)
		got := w.Pushes.Take()
		if len(got) != 3 || got[2].Err != nil {
			t.Fatalf("%d attempts, want 3", len(got))
		}
		if d := got[2].At.Sub(start); d > 10*time.Second {
			t.Errorf("the third attempt came after %v", d)
		}

		w.Pushes.FailNext(bubble.ErrProvider)
		agent.post(phone, w.parcel(10))
		p := phone.connect(line{mode: deaf}) // before the second attempt: there is nothing to wake
		agent.wantOnline(phone)
		w.Sleep(time.Minute)
		if got := w.Pushes.Take(); len(got) != 1 {
			t.Errorf("%d attempts for a phone that came by itself, want 1", len(got))
		}
		p.Drop() // but it has confirmed nothing
		agent.wantOffline(phone)
		if got := w.Pushes.Take(); len(got) != 1 {
			t.Errorf("%d pushes for a phone that went without confirming, want 1", len(got))
		}

		w.Pushes.FailNext(push.ErrTokenGone)
		agent.post(phone, w.parcel(10))
		agent.post(phone, w.parcel(10))
		w.Sleep(time.Hour)
		if got := w.Pushes.Take(); len(got) != 1 || got[0].Err != push.ErrTokenGone {
			t.Errorf("%d pushes to a token that is gone, want 1", len(got))
		}

		phone.token = "device-another-token"
		phone.connect().close()
		agent.wantOnline(phone)
		agent.wantOffline(phone)
		agent.post(phone, w.parcel(10))
		if got := w.Pushes.Take(); len(got) != 1 || got[0].Token != phone.token {
			t.Errorf("%d pushes to the new token, want 1", len(got))
		}
	})
}

// An answer that comes late, about the token that the phone had before, does not
// cost it the new one.
func TestSection6_TokenIsReplacedDuringThePush(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		h, agent := w.homeWith(1)
		phone := h.phones[0]
		w.Pushes.FailNext(push.ErrTokenGone)
		w.Pushes.Delay.Store(int64(5 * time.Second))
		agent.post(phone, w.parcel(10))
		w.Sleep(time.Second)
		phone.token = "device-another-token"
		phone.connect().close()
		agent.wantOnline(phone)
		agent.wantOffline(phone)
		w.Sleep(time.Minute)
		if got := w.Pushes.Take(); len(got) != 1 || got[0].Err == nil {
			t.Fatalf("%d pushes, want the one that fails", len(got))
		}
		agent.post(phone, w.parcel(10))
		w.Sleep(time.Minute)
		if got := w.Pushes.Take(); len(got) != 1 || got[0].Token != phone.token {
			t.Errorf("%d pushes to the new token, want 1", len(got))
		}
	})
}
