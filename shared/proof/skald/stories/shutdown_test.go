package stories

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"blindpost/shared/gateway"
	"blindpost/shared/proof/bubble"
	"blindpost/shared/push"
)

// get asks the front for a page, as something on the same machine would.
func (w *world) get(path string, header http.Header) *httptest.ResponseRecorder {
	req := httptest.NewRequest(http.MethodGet, "http://relay"+path, nil)
	req.RemoteAddr = "127.0.0.1:40000"
	for k, v := range header {
		req.Header[k] = v
	}
	rec := httptest.NewRecorder()
	w.Node.Server.ServeHTTP(rec, req)
	return rec
}

// A relay that is shut down says goodbye to its peers one by one, works for those
// that are still there, and loses nothing of what it has accepted.
func TestShutdown(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		const spread = 20 * time.Second
		h, agent := w.homeWith(8)
		want := map[*member][]parcel{}
		conns := map[*member]*peer{}
		for i, m := range h.phones {
			if i == 0 {
				continue // sleeps
			}
			conns[m] = m.connect()
			for _, p := range conns {
				if p != conns[m] {
					p.wantOnline(m)
				}
			}
			agent.wantOnline(m)
		}
		lost := h.phones[1] // its network is gone, though nobody knows
		conns[lost].vanish()
		w.Pushes.Take()
		if rec := w.get("/readyz", nil); rec.Code != http.StatusOK {
			t.Errorf("/readyz says %d before", rec.Code)
		}
		post := func() {
			for i, m := range h.phones {
				p := w.parcel(100 + i)
				agent.post(m, p)
				want[m] = append(want[m], p)
			}
		}
		post()

		start := time.Now()
		done := make(chan error, 1)
		go func() {
			ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
			defer cancel()
			done <- w.Node.Shutdown(ctx, spread)
		}()
		w.Settle()
		if rec := w.get("/readyz", nil); rec.Code != http.StatusServiceUnavailable {
			t.Errorf("/readyz says %d", rec.Code)
		}
		if rec := w.get("/healthz", nil); rec.Code != http.StatusOK {
			t.Errorf("/healthz says %d", rec.Code)
		}
		rec := w.get("/v1/ws", http.Header{"Connection": {"Upgrade"}, "Upgrade": {"websocket"}, "X-Forwarded-Proto": {"https"},
			"Sec-Websocket-Version": {"13"}, "Sec-Websocket-Key": {"dGhlIHNhbXBsZSBub25jZQ=="}})
		if rec.Code != http.StatusServiceUnavailable {
			t.Errorf("an upgrade is answered with %d", rec.Code)
		}
		for range 4 * spread / time.Second {
			time.Sleep(time.Second / 4)
			if agent.end() == nil && time.Since(start)%(4*time.Second) == 0 {
				post()
			}
		}
		w.Sleep(6 * time.Second) // for the one that does not answer
		select {
		case err := <-done:
			if err != nil {
				t.Errorf("failed to shut down: %v", err)
			}
		default:
			t.Fatal("the shutdown has not ended")
		}
		w.Gone()

		// The ends lie within the spread and are spread.
		moments := map[time.Time]bool{}
		for _, p := range append([]*peer{agent}, values(conns)...) {
			if p == conns[lost] {
				continue
			}
			e := p.end()
			if e == nil || e.code != gateway.CloseGoingAway || e.at.Sub(start) > spread {
				t.Errorf("%s: %s", p.name, p.fate())
				continue
			}
			moments[e.at] = true
		}
		if len(moments) != 7 {
			t.Errorf("7 peers were closed at %d moments", len(moments))
		}

		// Whoever sleeps was woken for each message before the process ended.
		woken := map[string]int{}
		for _, s := range w.Pushes.Take() {
			woken[s.Token]++
		}
		if n := woken[h.phones[0].token]; n != len(want[h.phones[0]]) {
			t.Errorf("%d pushes for %d messages", n, len(want[h.phones[0]]))
		}
		if woken[lost.token] == 0 {
			t.Error("the phone whose network is gone was not woken")
		}

		w.Open()
		if got := w.Pushes.Take(); len(got) != 0 {
			t.Errorf("%d pushes after a good end", len(got))
		}
		for _, m := range h.phones {
			var got []parcel
			for _, p := range []*peer{conns[m], m.connect()} {
				for p != nil {
					a := p.next()
					if a == nil {
						break
					}
					if msg := a.frame.GetMessage(); msg != nil {
						got = append(got, parcel{ciphertext: msg.GetCiphertext()})
					}
				}
			}
			if len(got) != len(want[m]) {
				t.Errorf("%s got %d messages of %d", m.name, len(got), len(want[m]))
				continue
			}
			for i := range got {
				if find(want[m], got[i].ciphertext) != i {
					t.Errorf("%s got message %d in place %d", m.name, find(want[m], got[i].ciphertext), i)
				}
			}
		}
	})
}

func values[K comparable, V any](m map[K]V) (all []V) {
	for _, v := range m {
		all = append(all, v)
	}
	return all
}

// A shutdown that runs out of time cuts what is left, and does not pass for a good
// end.
func TestShutdownOutOfTime(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		w.Loud = true
		h, agent := w.homeWith(1)
		w.Pushes.Delay.Store(int64(time.Hour)) // a handler that does not end
		m := w.parcel(100)
		agent.post(h.phones[0], m)
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		start := time.Now()
		if err := w.Node.Shutdown(ctx, time.Second); err == nil {
			t.Error("no error")
		}
		if d := time.Since(start); d > 10*time.Second {
			t.Errorf("it took %v", d)
		}
		w.Gone()
		w.Sleep(2 * time.Hour) // the provider answers at last, to nobody
		w.Pushes.Take()
		w.Pushes.Delay.Store(0)

		w.Open()
		if got := w.Pushes.Take(); len(got) != 1 || got[0].Kind != push.Content {
			t.Errorf("%d pushes, want one more", len(got))
		}
		h.phones[0].connect().wantMessages(h.agent, m)
	})
}

// A push that waits for its next attempt when the relay is shut down is not
// forgotten.
func TestShutdownBeforeTheNextAttemptOfAPush(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		w.Loud = true
		h, agent := w.homeWith(1)
		w.Pushes.FailNext(bubble.ErrProvider, bubble.ErrProvider, bubble.ErrProvider)
		agent.post(h.phones[0], w.parcel(100))
		w.Sleep(2 * time.Second) // three attempts
		if got := w.Pushes.Take(); len(got) != 3 {
			t.Fatalf("%d attempts", len(got))
		}
		w.Restart()
		w.Sleep(time.Hour)
		if got := w.Pushes.Take(); len(got) == 0 {
			t.Error("nobody wakes the phone")
		}
	})
}
