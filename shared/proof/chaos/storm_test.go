package chaos

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// perAddress sets the limit of new connections, where addresses can tell clients
// apart.
func perAddress(limit string) []string {
	if runtime.GOOS != "linux" {
		limit = "0"
	}
	return []string{"--connections-per-ip", limit}
}

// stormBound is how long 2,000 clients may take to be back. On a machine of two
// cores that does nothing else they take 2 to 4 s.
const stormBound = 90 * time.Second

// 2,000 clients come back at once, first because their connections broke, while
// others are served; then because the relay was killed. Each has its own address,
// and the limit of 30 connections a minute is in force.
func playStorm(t *testing.T, u *run) {
	began := time.Now()
	s := u.stage(t, t.TempDir(), append(perAddress("30"), "--challenge-timeout", "2m")...)
	s.ways = ownAddress
	s.relay.serve()
	const clients = 2000
	needFiles(t, 2*clients)
	phonesN := 3
	homes := s.settle(budget(120, 500), phonesN)
	var members []*member
	for _, h := range homes {
		members = append(members, h.agent)
		members = append(members, h.phones...)
	}
	for len(members) < clients { // agents without a phone
		members = append(members, s.know(s.people.newAgent()))
	}
	// Something waits for each phone.
	err := s.each(len(homes), func(i int) error {
		agent, err := s.enter(t.Context(), homes[i].agent, s.wayOf(homes[i].agent))
		if err != nil {
			return err
		}
		defer agent.leave()
		var letters []letter
		for _, ph := range homes[i].phones {
			for range 2 {
				letters = append(letters, s.book.write(homes[i].agent.id, ph.id, false))
			}
		}
		if err := agent.post(300, letters...); err != nil {
			return err
		}
		if _, err := agent.barrier(); err != nil {
			return err
		}
		s.book.accept(letters...)
		return nil
	})
	if err != nil {
		t.Fatalf("failed to prepare: %v", err)
	}
	stored := len(homes) * phonesN * 2
	bystanders := s.settle(1, 2)[0]
	prepared := time.Since(began)

	// They come for the first time, to find their messages.
	probe := s.probe(bystanders)
	probe.insist.Store(true)
	first := s.rush(members)
	s.wantAllArrived()
	// Their connections break in one moment.
	first.scatter((*wire).abort)
	second := s.rush(members)
	live, login := probe.end()
	s.wantNoInternal()
	s.relay.scrape()
	// The relay is killed.
	s.relay.kill()
	s.relay.start()
	second.scatter((*wire).abort)
	third := s.rush(members)
	sum := s.wantAllArrived()
	s.wantNoInternal()
	third.scatter((*wire).farewell)
	s.relay.stop()
	s.relay.wantNoErrors()
	report("storm", began, "%d clients with TLS at once (prepared in %.1f s), back with %d messages waiting in %v, after a cut in %v, after a kill in %v, bound %v; bystanders: live %v, login %v; %d came again",
		clients, prepared.Seconds(), stored, first, second, third, stormBound, live, login, sum.repeated)
}

// wantNoInternal fails the test if a connection was closed for a fault of the
// relay.
func (s *stage) wantNoInternal() {
	s.t.Helper()
	if n := s.relay.peek()[`blindpost_closes_total{code="1011"}`]; n != 0 {
		s.t.Errorf("%v connections were closed with 1011", n)
	}
}

// rush is one return of everybody.
type rush struct {
	peers []*peer
	took  time.Duration
	// again counts attempts that had to be repeated: nobody listened yet, or the
	// relay gave up a handshake that it had no time for.
	again int64
}

func (r rush) String() string {
	return fmt.Sprintf("%.1f s (%d tries repeated)", r.took.Seconds(), r.again)
}

// rush lets all connect at once, each until it is in. It returns when the last is.
func (s *stage) rush(members []*member) rush {
	s.t.Helper()
	began := time.Now()
	ctx, cancel := context.WithTimeout(s.t.Context(), stormBound)
	defer cancel()
	r := rush{peers: make([]*peer, len(members))}
	var again atomic.Int64
	var all sync.WaitGroup
	for i, m := range members {
		all.Go(func() {
			for ctx.Err() == nil {
				p, err := s.enter(ctx, m, s.wayOf(m))
				if err == nil {
					r.peers[i] = p
					return
				}
				again.Add(1)
				s.judge(m, err, nil)
				every(ctx, 50*time.Millisecond)
			}
		})
	}
	all.Wait()
	r.took, r.again = time.Since(began), again.Load()
	late := 0
	for _, p := range r.peers {
		if p == nil {
			late++
			continue
		}
		s.t.Cleanup(p.w.abort)
	}
	if late > 0 {
		s.t.Fatalf("%d of %d clients are not back after %v, with %d tries repeated", late, len(members), stormBound, r.again)
	}
	return r
}

// scatter ends all connections at once.
func (r rush) scatter(end func(*wire)) {
	for _, p := range r.peers {
		go end(p.w)
	}
	for _, p := range r.peers {
		<-p.done
	}
}
