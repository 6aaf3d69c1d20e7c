package chaos

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
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

// stormBound is how long 2,000 clients may take to be back, on any machine. Each of
// them also has to authenticate within the relay's own 30 s.
const stormBound = time.Minute

// 2,000 clients come back at once, first because their connections broke, while
// others are served; then because the relay was killed. Each has its own address,
// and the limit of 30 connections a minute is in force.
func playStorm(t *testing.T, u *suite) {
	began := time.Now()
	s := u.stage(t, t.TempDir(), perAddress("30")...)
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
	peers, first, tries1 := s.rush(members)
	s.wantAllArrived()
	for _, p := range peers {
		go p.w.abort()
	}
	for _, p := range peers {
		<-p.done
	}
	// Their connections have all broken in one moment.
	peers, second, tries2 := s.rush(members)
	live, login := probe.end()
	if n := s.relay.peek()[`blindpost_closes_total{code="1011"}`]; n != 0 {
		t.Errorf("%v connections were closed with 1011", n)
	}
	s.relay.scrape()

	// The relay is killed.
	s.relay.kill()
	s.relay.start()
	for _, p := range peers {
		<-p.done
	}
	peers, third, tries3 := s.rush(members)
	sum := s.wantAllArrived()
	if n := s.relay.peek()[`blindpost_closes_total{code="1011"}`]; n != 0 {
		t.Errorf("%v connections were closed with 1011 after the restart", n)
	}
	for _, p := range peers {
		go p.w.farewell()
	}
	for _, p := range peers {
		<-p.done
	}
	s.relay.stop()
	s.relay.wantNoErrors()
	report("storm", began, "%d clients with TLS at once (prepared in %.1f s): with %d messages waiting in %.1f s (%d tries), after a cut in %.1f s (%d tries), after a kill in %.1f s (%d tries), bound %v; bystanders: live %v, login %v; %d came again",
		clients, prepared.Seconds(), stored, first.Seconds(), tries1, second.Seconds(), tries2, third.Seconds(), tries3, stormBound, live, login, sum.repeated)
}

// rush lets all connect at once, each until it is in. It returns when the last is.
func (s *stage) rush(members []*member) (peers []*peer, took time.Duration, tries int64) {
	s.t.Helper()
	began := time.Now()
	ctx, cancel := context.WithTimeout(s.t.Context(), stormBound)
	defer cancel()
	peers = make([]*peer, len(members))
	var all sync.WaitGroup
	var n atomic.Int64
	for i, m := range members {
		all.Go(func() {
			for ctx.Err() == nil {
				n.Add(1)
				p, err := s.enter(ctx, m, s.wayOf(m))
				if err == nil {
					peers[i] = p
					return
				}
				println(time.Since(began).String(), err.Error())
				if !errors.Is(err, syscall.ECONNREFUSED) {
					s.judge(m, err, nil)
				}
				every(ctx, 50*time.Millisecond)
			}
		})
	}
	all.Wait()
	late := 0
	for _, p := range peers {
		if p == nil {
			late++
			continue
		}
		s.t.Cleanup(p.w.abort)
	}
	if late > 0 {
		s.t.Fatalf("%d of %d clients are not back after %v", late, len(members), stormBound)
	}
	return peers, time.Since(began), n.Load()
}

// needFiles fails the test at once if the process may not open so many files.
func needFiles(t *testing.T, n int) {
	t.Helper()
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil || limit.Cur < uint64(n) {
		t.Fatalf("this needs %d open files; the limit is %d (ulimit -n), %v", n, limit.Cur, err)
	}
}
