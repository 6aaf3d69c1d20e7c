package chaos

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"blindpost/shared/base/backoff"
)

// probe is two members who mind their own business while something happens to
// others: one sends a live message every now and then, the other notes how long it
// took. A second phone logs in and leaves again and again. Nothing may go wrong
// for any of them.
type probe struct {
	s       *stage
	agent   *peer
	phone   *peer
	visitor *member
	// insist lets the visitor try again when its transport breaks.
	insist atomic.Bool

	mu   sync.Mutex
	sent map[uint32]time.Time
	live latencies
	// login is how long the visitor took from the first packet to AuthOk.
	login latencies

	stop    context.CancelFunc
	running sync.WaitGroup
}

// latencies can be sorted.
type latencies []time.Duration

func (l latencies) String() string {
	if len(l) == 0 {
		return "none"
	}
	sorted := slices.Clone(l)
	slices.Sort(sorted)
	at := func(q float64) string { return milliseconds(sorted[int(q*float64(len(sorted)-1))]) }
	return fmt.Sprintf("p50 %s, p99 %s, most %s ms", at(0.5), at(0.99), at(1))
}

// visitorWay lets a phone that comes again and again come from many addresses.
func visitorWay(n int) way {
	return ownAddress(&member{id: 250<<16 | uint32(n/20)})
}

func milliseconds(d time.Duration) string {
	ms := float64(d) / float64(time.Millisecond)
	if ms < 10 {
		return fmt.Sprintf("%.1f", ms)
	}
	return fmt.Sprintf("%.0f", ms)
}

const (
	probeEvery = 20 * time.Millisecond
	visitEvery = 200 * time.Millisecond
)

// probe starts with a home that has two phones and is nobody else's. It ends with
// the test at the latest.
func (s *stage) probe(h *home) *probe {
	s.t.Helper()
	p := &probe{s: s, visitor: h.phones[1], sent: make(map[uint32]time.Time)}
	p.agent = s.mustEnter(h.agent, s.wayOf(h.agent))
	phone, err := s.admit(s.t.Context(), h.phones[0], s.wayOf(h.phones[0]))
	if err != nil {
		s.t.Fatalf("%s: %v", h.phones[0], err)
	}
	phone.arrived = p.arrived
	phone.listen()
	p.phone = phone
	ctx, stop := context.WithCancel(context.Background())
	p.stop = stop
	p.running.Go(func() { p.send(ctx) })
	p.running.Go(func() { p.visit(ctx) })
	s.t.Cleanup(func() {
		stop()
		p.running.Wait()
		p.agent.abort()
		p.phone.abort()
	})
	return p
}

func (p *probe) arrived(l letter) {
	now := time.Now()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.live = append(p.live, now.Sub(p.sent[l.n]))
	delete(p.sent, l.n)
}

func (p *probe) send(ctx context.Context) {
	for every(ctx, probeEvery) {
		l := p.s.book.write(p.agent.m.id, p.phone.m.id, true)
		p.mu.Lock()
		p.sent[l.n] = time.Now()
		p.mu.Unlock()
		if err := p.agent.post(300, l); err != nil {
			p.s.book.blame("%s, a bystander: %v", p.agent.m, err)
			return
		}
	}
}

func (p *probe) visit(ctx context.Context) {
	for n := 0; every(ctx, visitEvery); n++ {
		began := time.Now()
		visitor, err := p.s.enter(ctx, p.visitor, visitorWay(n))
		if err != nil {
			if p.insist.Load() {
				p.s.judge(p.visitor, err, nil)
				continue
			}
			if ctx.Err() == nil {
				p.s.book.blame("%s, a bystander: %v", p.visitor, err)
			}
			return
		}
		took := time.Since(began)
		p.mu.Lock()
		p.login = append(p.login, took)
		p.mu.Unlock()
		visitor.leave()
	}
}

// logins counts the visits so far.
func (p *probe) logins() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.login)
}

// end waits until everything that was sent has arrived, and returns what was
// measured since the beginning.
func (p *probe) end() (live, login latencies) {
	p.s.t.Helper()
	p.stop()
	p.running.Wait()
	p.s.eventually("all live messages of the bystanders arrive", func() bool {
		p.mu.Lock()
		defer p.mu.Unlock()
		return len(p.sent) == 0
	})
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.live, p.login
}

// every waits, and reports false when ctx has ended.
func every(ctx context.Context, d time.Duration) bool {
	return backoff.Sleep(ctx, d) == nil
}

// converse connects an agent and a phone, and returns what sends a live message
// from each to the other and waits for it.
func (s *stage) converse(h *home) (once func()) {
	s.t.Helper()
	heard := make(chan letter, 16)
	var ends []*peer
	for _, m := range []*member{h.agent, h.phones[0]} {
		p, err := s.admit(s.t.Context(), m, way{})
		if err != nil {
			s.t.Fatalf("%s: %v", m, err)
		}
		p.arrived = func(l letter) { heard <- l }
		p.listen()
		s.t.Cleanup(p.abort)
		ends = append(ends, p)
	}
	return func() {
		s.t.Helper()
		for i, from := range ends {
			l := s.book.write(from.m.id, ends[1-i].m.id, true)
			if err := from.post(300, l); err != nil {
				s.t.Errorf("%s: %v", from.m, err)
				return
			}
			select {
			case <-heard:
			case <-time.After(patience):
				s.t.Errorf("%v does not arrive", l)
			}
		}
	}
}
