package chaos

import (
	"sync"
	"testing"
	"time"
)

// Traffic without a pause: everybody connects, pairs, is authorised, gets messages,
// leaves, is revoked, again and again. Between two rounds everybody leaves; what the relay
// holds then must not grow.
func playSoak(t *testing.T, u *run) {
	began := time.Now()
	// Timers that last longer would grow in number over the first rounds.
	s := u.stage(t, t.TempDir(), "--challenge-timeout", "1s", "--connections-per-ip", "1000000")
	s.window = 3
	s.relay.serve()
	all := s.households(8, 2000)
	talkers := s.settle(2, 3)
	each := budget(850*time.Millisecond, 6400*time.Millisecond)
	s.load(all, talkers, each, u.seed) // everything warm
	var held []usage
	for n := range soakRounds() {
		s.load(all, talkers, each, u.seed+1+uint64(n))
		held = append(held, s.measure())
	}
	wantNoGrowth(t, held)
	connections := s.relay.scrape().one(t, "blindpost_connects_accepted_total")
	sum := s.wantAudit()
	phones := int64(0)
	for _, h := range all {
		phones += h.rounds.Load()
	}
	s.relay.stop()
	s.relay.wantNoErrors()
	// A busy household: a phone looks in every four minutes, and its agent reconnects
	// twice an hour; in two hours that makes 34.
	report("soak", began, "%.0f connections, as of %.0f busy households in two hours; %d phones paired, authorised, revoked; %d messages; first: %v; last: %v",
		connections, connections/34, phones, sum.sent, held[0], held[len(held)-1])
}

// soakRounds is in how many rounds the soak looks; growth compares thirds of them.
func soakRounds() int { return budget(6, 12) }

// load lets everybody do what they do for a while, and then leave.
func (s *stage) load(all []*household, talkers []*home, d time.Duration, seed uint64) {
	s.t.Helper()
	stop := make(chan struct{})
	c := s.gather(talkers, habits{
		size: 500, pause: 10 * time.Millisecond, leaving: 0.1, away: 50 * time.Millisecond, liveOnes: 0.3,
	}, seed)
	var running sync.WaitGroup
	for _, h := range all {
		running.Go(func() { h.live(stop) })
	}
	time.Sleep(d)
	close(stop)
	running.Wait()
	c.hush()
	s.eventually("everybody comes back", c.allHere)
	s.wantAllArrived()
	s.eventually("all mailboxes are empty", func() bool { return s.relay.peek().one(s.t, "blindpost_mailbox_messages") == 0 })
	c.dismiss()
	s.eventually("everybody has left", func() bool {
		m := s.relay.peek()
		return m.one(s.t, "blindpost_sockets") == 0 && m.sum("blindpost_connections") == 0
	})
}
