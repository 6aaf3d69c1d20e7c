package chaos

import (
	"testing"
	"time"

	"github.com/gobwas/ws"

	"blindpost/shared/gateway"
)

// Phones stop reading while their agents send them live messages. Each is closed
// with 4008 when more waits for it than the relay will hold, or when it takes too
// long over what there is. Their senders and everybody else do not notice; and
// what is stored for them waits until they read again.
func playSlowReader(t *testing.T, u *run) {
	began := time.Now()
	const sendBuffer = 1 << 20
	s := u.stage(t, t.TempDir(), "--send-buffer", "1048576", "--write-timeout", "2s")
	s.relay.serve()
	n := budget(2, 8)
	homes := s.settle(n, 2)
	probe := s.probe(s.settle(1, 2)[0])
	slowReaders := func() float64 { return s.relay.peek().one(t, "blindpost_slow_readers_total") }

	var toSlow, toGood latencies
	posted := 0
	most := 0.0
	for i, h := range homes {
		slow, err := s.admit(t.Context(), h.phones[0], way{small: true})
		if err != nil {
			t.Fatalf("%s: %v", h.phones[0], err)
		}
		heard := make(chan letter, 1)
		good, err := s.admit(t.Context(), h.phones[1], way{})
		if err != nil {
			t.Fatalf("%s: %v", h.phones[1], err)
		}
		good.arrived = func(l letter) { heard <- l }
		good.listen()
		t.Cleanup(good.abort)
		agent := s.mustEnter(h.agent, way{})
		t.Cleanup(agent.abort)

		// Every second one gets so much that it only fills the buffers of the system,
		// and then takes too long.
		patient := i%2 == 1
		for closed := false; !closed; {
			if posted++; posted > 1000*n {
				t.Fatal("the slow reader is never closed")
			}
			start := time.Now()
			if err := agent.post(200<<10, s.book.write(h.agent.id, h.phones[0].id, true)); err != nil {
				t.Fatalf("%s: %v", h.agent, err)
			}
			if _, err := agent.barrier(); err != nil {
				t.Fatalf("%s: %v", h.agent, err)
			}
			toSlow = append(toSlow, time.Since(start))
			start = time.Now()
			if err := agent.post(200, s.book.write(h.agent.id, h.phones[1].id, true)); err != nil {
				t.Fatalf("%s: %v", h.agent, err)
			}
			select {
			case <-heard:
			case <-time.After(patience):
				t.Fatal("nothing gets to another phone")
			}
			toGood = append(toGood, time.Since(start))
			agent.mu.Lock()
			closed = agent.offline > 0
			agent.mu.Unlock()
			buffered := s.relay.peek().one(t, "blindpost_send_buffer_bytes")
			most = max(most, buffered)
			if patient && !closed && s.staysBuffered() {
				before := slowReaders()
				s.eventually("a reader that takes too long is closed", func() bool { return slowReaders() > before })
			}
		}
		var stored []letter
		for range 3 {
			stored = append(stored, s.book.write(h.agent.id, h.phones[0].id, false))
		}
		if err := agent.post(300, stored...); err != nil {
			t.Fatalf("%s: %v", h.agent, err)
		}
		if _, err := agent.barrier(); err != nil {
			t.Fatalf("%s: %v", h.agent, err)
		}
		s.book.accept(stored...)

		// It reads again: what had got through before, and then the end.
		slow.listen()
		select {
		case <-slow.done:
			if !patient && !closedWith(slow.err, ws.StatusCode(gateway.CloseSlowReader)) {
				t.Logf("the slow reader sees %v", slow.err)
			}
		case <-time.After(patience):
			t.Fatal("the slow reader is not cut off")
		}
		back := s.mustEnter(h.phones[0], way{})
		t.Cleanup(back.abort)
		s.eventually("the slow reader gets what was stored", func() bool { return s.book.arrivedAt(h.phones[0].id) })
	}
	live, login := probe.end()
	m := s.relay.scrape()
	if got := m[`blindpost_closes_total{code="4008"}`]; got != float64(n) {
		t.Errorf("%v connections were closed with 4008, want %d", got, n)
	}
	if most > float64(sendBuffer*2) {
		t.Errorf("%.0f bytes were held for one slow reader, its bound is %d", most, sendBuffer)
	}
	s.eventually("nothing is held any more", func() bool { return s.relay.peek().one(t, "blindpost_send_buffer_bytes") == 0 })
	s.wantAllArrived()
	s.relay.stop()
	s.relay.wantNoErrors()
	report("slow reader", began, "%d readers closed with 4008, at most %.0f KB held; their senders: question behind a live message of 200 KB %v, message to another phone %v; bystanders: live %v, login %v",
		n, most/1024, toSlow, toGood, live, login)
}

// staysBuffered reports whether something waits to be written and is not.
func (s *stage) staysBuffered() bool {
	s.t.Helper()
	for range 4 {
		if s.relay.peek().one(s.t, "blindpost_send_buffer_bytes") < 100<<10 {
			return false
		}
		time.Sleep(50 * time.Millisecond)
	}
	return true
}
