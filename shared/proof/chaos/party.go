package chaos

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gobwas/ws"

	"blindpost/shared/gateway"
)

// party is a member that wants to stay connected and to talk, whatever happens to
// the relay: it connects again and again, writes in batches, and goes by the
// answer to the question behind each batch. Now and then it goes by itself.
type party struct {
	s      *stage
	m      *member
	to     []*member
	chance *rand.Rand
	habits
}

// habits are how parties behave.
type habits struct {
	size     int           // of a ciphertext, in bytes; about
	pause    time.Duration // between batches, about
	leaving  float64       // the chance to go, after a batch
	away     time.Duration // for so long at most
	liveOnes float64       // the share of live messages
	// failing says that the relay may have failures of its own, so that 1011 is
	// no fault.
	failing func() bool
}

// crowd is parties that talk at the same time.
type crowd struct {
	s         *stage
	parties   []*party
	connected atomic.Int64
	writing   atomic.Int64 // batches that are under way
	// quiet is closed when they shall write no more, but stay; end when they shall
	// go.
	quiet   chan struct{}
	ctx     context.Context
	end     context.CancelFunc
	running sync.WaitGroup
	logins  atomic.Int64
}

// gather makes everybody in the homes talk to everybody they may talk to.
func (s *stage) gather(homes []*home, h habits, seed uint64) *crowd {
	c := &crowd{s: s, quiet: make(chan struct{})}
	c.ctx, c.end = context.WithCancel(s.t.Context())
	add := func(m *member, to ...*member) {
		chance := rand.New(rand.NewPCG(seed, uint64(len(c.parties))))
		c.parties = append(c.parties, &party{s: s, m: m, to: to, chance: chance, habits: h})
	}
	for _, home := range homes {
		add(home.agent, home.phones...)
		for _, ph := range home.phones {
			add(ph, home.agent)
		}
	}
	s.t.Cleanup(func() {
		c.end()
		c.running.Wait()
	})
	for _, p := range c.parties {
		c.running.Go(func() { p.run(c) })
	}
	return c
}

// hush ends the writing and waits for the last word. Everybody stays, or comes
// back, to read.
func (c *crowd) hush() {
	c.s.t.Helper()
	close(c.quiet)
	c.s.eventually("everybody is quiet", func() bool { return c.writing.Load() == 0 })
}

// dismiss sends everybody away, in good order.
func (c *crowd) dismiss() {
	c.end()
	c.running.Wait()
}

// allHere reports whether everybody is connected.
func (c *crowd) allHere() bool { return int(c.connected.Load()) == len(c.parties) }

func (c *crowd) hushed() bool {
	select {
	case <-c.quiet:
		return true
	default:
		return false
	}
}

func (p *party) run(c *crowd) {
	const firstWait, longestWait = 10 * time.Millisecond, 160 * time.Millisecond
	wait := firstWait
	for c.ctx.Err() == nil {
		peer, err := p.s.enter(c.ctx, p.m, way{})
		if err != nil {
			p.s.judge(p.m, err, p.failing)
			every(c.ctx, time.Duration(p.chance.Int64N(int64(wait))))
			wait = min(2*wait, longestWait)
			continue
		}
		wait = firstWait
		c.connected.Add(1)
		c.logins.Add(1)
		p.talk(c, peer)
		p.listenOn(c, peer)
		c.connected.Add(-1)
	}
}

// talk writes until it is hushed, or has enough of this connection.
func (p *party) talk(c *crowd, peer *peer) {
	refused := 0
	for c.ctx.Err() == nil {
		c.writing.Add(1)
		if c.hushed() {
			c.writing.Add(-1)
			return
		}
		err := p.batch(peer, &refused)
		c.writing.Add(-1)
		if err != nil {
			peer.abort()
			p.s.judge(p.m, err, p.failing)
			return
		}
		if p.chance.Float64() < p.leaving {
			switch p.chance.IntN(3) {
			case 0:
				peer.leave()
			case 1:
				peer.abort()
			case 2:
				peer.abort()
				p.glance(c)
			}
			every(c.ctx, time.Duration(p.chance.Int64N(int64(p.away))))
			return
		}
		every(c.ctx, time.Duration(p.chance.Int64N(int64(2*p.pause))))
	}
}

// glance connects and is gone again before it has read anything.
func (p *party) glance(c *crowd) {
	every(c.ctx, time.Duration(p.chance.Int64N(int64(p.away)))) // something comes meanwhile
	peer, err := p.s.admit(c.ctx, p.m, way{})
	if err != nil {
		p.s.judge(p.m, err, p.failing)
		return
	}
	c.logins.Add(1)
	every(c.ctx, time.Duration(p.chance.Int64N(int64(20*time.Millisecond))))
	peer.w.abort()
}

// listenOn reads as long as there is a connection. At the end it leaves.
func (p *party) listenOn(c *crowd, peer *peer) {
	select {
	case <-peer.done:
		p.s.judge(p.m, peer.err, p.failing)
	case <-c.ctx.Done():
		peer.leave()
	}
}

// batch writes some letters to one recipient and finds out whether they were
// accepted. A refusal does not say which one it is for, so none of them counts
// then.
func (p *party) batch(peer *peer, refused *int) error {
	to := p.to[p.chance.IntN(len(p.to))]
	var letters, stored []letter
	for range 1 + p.chance.IntN(8) {
		l := p.s.book.write(p.m.id, to.id, p.chance.Float64() < p.liveOnes)
		letters = append(letters, l)
		if !l.live {
			stored = append(stored, l)
		}
	}
	if err := peer.post(p.size/2+p.chance.IntN(p.size), letters...); err != nil {
		return err
	}
	n, err := peer.barrier()
	if err != nil {
		return err
	}
	if n == *refused {
		p.s.book.accept(stored...)
	}
	*refused = n
	return nil
}

// judge enters an end into the books that cannot be explained by what is done to
// the relay. failing, if set, says whether the relay may have failures of its own
// at the moment.
func (s *stage) judge(m *member, err error, failing func() bool) {
	var closed *closeError
	var upgrade ws.StatusError
	ownFault := false
	switch {
	case errors.As(err, &closed):
		switch gateway.CloseCode(closed.code) {
		case gateway.CloseNormal, gateway.CloseGoingAway:
			return
		case gateway.CloseInternal:
			ownFault = true
		}
	case errors.As(err, &upgrade):
		ownFault = upgrade >= 500
	case errors.Is(err, errSilent):
	default:
		var refused *authError
		if !errors.As(err, &refused) {
			return // the transport broke
		}
	}
	if !ownFault || failing == nil || !failing() {
		s.book.blame("%s: %v", m, err)
	}
}
