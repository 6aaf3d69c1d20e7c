package chaos

import (
	"math/rand/v2"
	"net/http"
	"sync"
	"testing"
	"time"
)

// The relay is killed with SIGKILL again and again while everybody talks, and
// started again at once: same port, same data. Whatever was accepted arrives.
func playKill(t *testing.T, u *run) {
	began := time.Now()
	s := u.stage(t, t.TempDir())
	chance := rand.New(rand.NewPCG(u.seed, 1))
	s.relay.serve()
	homes := s.settle(budget(4, 8), 2)
	c := s.gather(homes, habits{
		size: 600, pause: 4 * time.Millisecond, leaving: 0.02, away: 300 * time.Millisecond, liveOnes: 0.25,
	}, u.seed)

	changing := s.households(budget(2, 4), 300)
	stop := make(chan struct{})
	var running sync.WaitGroup
	for _, h := range changing {
		running.Go(func() { h.live(stop) })
	}

	var slowest time.Duration
	kills := budget(18, 90)
	for i := range kills {
		// Mostly in the middle of the traffic, sometimes while everybody comes back,
		// sometimes before the relay has begun to serve.
		switch chance.IntN(6) {
		case 0:
			time.Sleep(time.Duration(chance.IntN(60)) * time.Millisecond)
		case 1:
			s.relay.awaitReady()
			time.Sleep(time.Duration(chance.IntN(60)) * time.Millisecond)
		default:
			s.relay.awaitReady()
			before := s.book.arrivals.Load()
			s.eventually("somebody gets something", func() bool { return s.book.arrivals.Load() > before })
			time.Sleep(time.Duration(chance.IntN(600)) * time.Millisecond)
		}
		s.relay.kill()
		start := time.Now()
		s.relay.start()
		if i%4 == 0 {
			s.relay.awaitReady()
			slowest = max(slowest, time.Since(start))
		}
	}
	s.relay.awaitReady()
	close(stop)
	running.Wait()
	var rounds int64
	for _, h := range changing {
		rounds += h.rounds.Load()
	}
	c.hush()
	s.eventually("everybody comes back", c.allHere)
	sum := s.wantAllArrived()
	s.wantEmptyMailboxes(c, homes)
	s.wantGauge()
	s.wantExactCap(homes[0], 200)

	if status := s.relay.ready(); status != http.StatusOK {
		t.Errorf("/readyz answers %d", status)
	}
	s.relay.stop()
	s.relay.wantNoErrors()
	report("kill", began, "%d kills under load, ready again in %d ms at most; %d connections; %d times paired, authorised and revoked; %d messages sent, %d accepted, %d arrived, 0 lost, %d came again unconfirmed; cap exact",
		kills, slowest.Milliseconds(), c.logins.Load(), rounds, sum.sent, sum.accepted, sum.arrived, sum.repeated)
}

// wantEmptyMailboxes sends everybody away once the relay knows that all has
// arrived, and lets everybody come back: there must be nothing more.
func (s *stage) wantEmptyMailboxes(c *crowd, homes []*home) {
	s.t.Helper()
	s.eventually("everything is confirmed", func() bool { return s.unconfirmed.Load() == 0 })
	c.dismiss()
	before, _ := s.book.audit()
	for _, h := range homes {
		for _, m := range append([]*member{h.agent}, h.phones...) {
			p := s.mustEnter(m, way{})
			if _, err := p.barrier(); err != nil {
				s.t.Errorf("%s: %v", m, err)
			}
			p.leave()
		}
	}
	if after := s.wantAudit(); after != before {
		s.t.Errorf("confirmed mailboxes held something: %+v, and now %+v", before, after)
	}
}

// wantGauge wants the metric to agree that all mailboxes are empty.
func (s *stage) wantGauge() {
	s.t.Helper()
	if n := s.relay.peek().one(s.t, "blindpost_mailbox_messages"); n != 0 {
		s.t.Errorf("blindpost_mailbox_messages is %v, and all mailboxes are empty", n)
	}
}

// wantExactCap fills the mailbox of a phone that is away: counters that a crash
// has left wrong would show.
func (s *stage) wantExactCap(h *home, mailboxCap int) {
	s.t.Helper()
	agent := s.mustEnter(h.agent, way{})
	defer agent.leave()
	phone := h.phones[0]
	const more = 7
	var letters []letter
	for range mailboxCap + more {
		letters = append(letters, s.book.write(h.agent.id, phone.id, false))
	}
	if err := agent.post(100, letters...); err != nil {
		s.t.Fatalf("%s: %v", h.agent, err)
	}
	refused, err := agent.barrier()
	if err != nil || refused != more {
		s.t.Errorf("of %d messages %d were refused instead of %d, %v", len(letters), refused, more, err)
		return
	}
	s.book.accept(letters[:mailboxCap]...)
	p := s.mustEnter(phone, way{})
	defer p.leave()
	s.wantAllArrived()
}
