package chaos

import (
	"testing"
	"time"

	"blindpost/shared/proof/tcpproxy"
)

// 200 phones vanish: their packets are dropped, and nobody is told; first those to
// the relay, so that it hears of nothing that arrives, then all. What is sent to
// them meanwhile is posted into the void. Half of them come back from elsewhere
// while the relay still believes in their old connections, the others when it has
// given these up. Each finds everything, in order.
func playVanish(t *testing.T, u *run) {
	began := time.Now()
	s := u.stage(t, t.TempDir(), "--ping-interval", "1s", "--idle-timeout", "5s")
	s.relay.serve()
	const homesN, phonesN, each = 20, 10, 4
	homes := s.settle(homesN, phonesN)
	network := tcpproxy.New(t, s.relay.address)

	agents := make([]*peer, homesN)
	before := make(map[*member]*peer)
	for i, h := range homes {
		agents[i] = s.mustEnter(h.agent, way{})
		for _, ph := range h.phones {
			before[ph] = s.mustEnter(ph, way{via: network.Address()})
		}
	}
	send := func(live bool) {
		t.Helper()
		err := s.each(homesN, func(i int) error {
			var stored []letter
			for _, ph := range homes[i].phones {
				var letters []letter
				for range each {
					letters = append(letters, s.book.write(homes[i].agent.id, ph.id, false))
				}
				stored = append(stored, letters...)
				if live {
					letters = append(letters, s.book.write(homes[i].agent.id, ph.id, true))
				}
				if err := agents[i].post(400, letters...); err != nil {
					return err
				}
			}
			if _, err := agents[i].barrier(); err != nil {
				return err
			}
			s.book.accept(stored...)
			return nil
		})
		if err != nil {
			t.Fatalf("failed to send: %v", err)
		}
	}
	waiting := func() float64 { return s.relay.peek().one(t, "blindpost_mailbox_messages") }

	send(true)
	s.wantAllArrived()
	s.eventually("everything is confirmed", func() bool { return waiting() == 0 })
	if sockets := s.relay.peek().one(t, "blindpost_sockets"); sockets != homesN*(1+phonesN) {
		t.Errorf("the relay has %v connections", sockets)
	}

	// What comes now arrives, but the relay does not hear of it.
	network.FreezeUp()
	silence := time.Now()
	send(true)
	s.wantAllArrived()
	network.Freeze()
	send(true)
	if n := waiting(); n != homesN*phonesN*each*2 {
		t.Errorf("%v messages wait for the phones that have vanished, want %d", n, homesN*phonesN*each*2)
	}
	// The new connections of the first half; the relay replaces the old ones.
	comeBack := func(first int) {
		t.Helper()
		err := s.each(homesN, func(i int) error {
			for k := first; k < phonesN; k += 2 {
				ph := homes[i].phones[k]
				before[ph].abort() // the network does not tell the relay
				p, err := s.enter(t.Context(), ph, way{})
				if err != nil {
					return err
				}
				t.Cleanup(p.abort)
			}
			return nil
		})
		if err != nil {
			t.Fatalf("failed to come back: %v", err)
		}
	}
	comeBack(0)
	early := time.Since(silence)
	send(false)
	s.eventually("the relay gives the silent connections up", func() bool {
		return s.relay.peek().one(t, "blindpost_sockets") == homesN*(1+phonesN/2)
	})
	gone := time.Since(silence)
	send(false)
	s.eventually("only what is for the other half waits", func() bool {
		return waiting() == homesN*phonesN/2*each*4
	})
	comeBack(1)
	sum := s.wantAllArrived()
	if sum.repeated != homesN*phonesN*each {
		t.Errorf("%d messages came again, want the %d that were never confirmed", sum.repeated, homesN*phonesN*each)
	}
	s.eventually("everything is confirmed", func() bool { return waiting() == 0 })
	s.relay.stop()
	s.relay.wantNoErrors()
	report("vanish", began, "%d phones silent; half came back after %.1f s, the relay gave the others up after %.1f s and they came back then; %d stored messages accepted, 0 lost, the %d whose pong was dropped came again; order held",
		homesN*phonesN, early.Seconds(), gone.Seconds(), sum.accepted, sum.repeated)
}
