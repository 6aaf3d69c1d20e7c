package bench

import (
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	skaldclient "blindpost/shared/client/skald"
)

const (
	// inFlight is how many messages are on their way at most while the
	// throughput is measured, in all pairs together; a pair has its share of
	// that, but within bounds.
	inFlight      = 4096
	pairInFlight  = 64
	pairInFlight0 = 4
)

// pair sends live messages from an agent to its client.
type pair struct {
	// set once
	agent, client *conn
	clock         time.Time // durations are since then
	window        int
	looping       *atomic.Bool  // each message that arrives lets another one be sent
	recordFrom    *atomic.Int64 // latencies of messages that were due before are not counted

	// guarded by sendMu
	sendMu sync.Mutex
	letter *letter
	out    []byte
	credit int

	sent, received atomic.Uint64

	// owned by the reader, but latency, which is guarded by latencyMu
	reader    reader
	dues      []time.Duration
	latencyMu sync.Mutex
	latency   histogram
}

// send writes n messages at once.
func (p *pair) send(n int, due time.Duration) error {
	p.sendMu.Lock()
	defer p.sendMu.Unlock()
	return p.sendLocked(n, due)
}

func (p *pair) sendLocked(n int, due time.Duration) error {
	p.out = p.out[:0]
	for range n {
		p.out = p.letter.append(p.out, due)
	}
	p.sent.Add(uint64(n))
	return p.agent.write(p.out)
}

// arrived sends as many messages as have arrived, a quarter of the window at a
// time.
func (p *pair) arrived(n int) error {
	p.sendMu.Lock()
	defer p.sendMu.Unlock()
	p.credit += n
	if p.credit < max(p.window/4, 1) {
		return nil
	}
	n, p.credit = p.credit, 0
	return p.sendLocked(n, time.Since(p.clock))
}

// receive is the client.
func (p *pair) receive() error {
	for {
		b, err := p.client.next()
		if err != nil {
			return fmt.Errorf("live client: %w", err)
		}
		m, ok := parseMessage(b)
		if !ok {
			return fmt.Errorf("live client: %w", unexpected(b))
		}
		if err := p.reader.take(m); err != nil {
			return fmt.Errorf("live client: %w", err)
		}
		p.dues = append(p.dues, m.due())
		if !p.client.pending() {
			if err := p.count(); err != nil {
				return fmt.Errorf("live agent: %w", err)
			}
		}
	}
}

// count takes note of what has come in one piece.
func (p *pair) count() error {
	n := len(p.dues)
	from := time.Duration(p.recordFrom.Load())
	now := time.Since(p.clock)
	p.latencyMu.Lock()
	for _, due := range p.dues {
		if due >= from {
			p.latency.add(now - due)
		}
	}
	p.latencyMu.Unlock()
	p.dues = p.dues[:0]
	p.received.Add(uint64(n))
	if p.looping.Load() {
		return p.arrived(n)
	}
	return nil
}

// unexpected is an error about a frame that should not have come.
func unexpected(b []byte) error {
	f, err := decode(b)
	if err != nil {
		return err
	}
	return fmt.Errorf("an unexpected frame has come (%T)", f.GetFrame())
}

// liveRun is a number of pairs.
type liveRun struct {
	fleet      *fleet
	pairs      []*pair
	clock      time.Time
	looping    atomic.Bool
	recordFrom atomic.Int64
}

// openLive connects n pairs.
func openLive(f *fleet, n, size int) (*liveRun, error) {
	homes, err := f.pairUpAll(n)
	if err != nil {
		return nil, err
	}
	r := &liveRun{fleet: f, pairs: make([]*pair, n), clock: time.Now()}
	err = f.each(n, openers, func(i int) error {
		h := homes[i]
		c, err := f.enterClient(h)
		if err != nil {
			return err
		}
		c.within(callTime)
		if err := c.barrier(); err != nil { // from here on it takes live messages
			return err
		}
		c.within(0)
		l, err := newLetter(h.client.PublicKey(), size, true, skaldclient.AgentToClient)
		if err != nil {
			return err
		}
		r.pairs[i] = &pair{
			agent: h.agentConn, client: c, clock: r.clock, looping: &r.looping, recordFrom: &r.recordFrom,
			window: min(max(inFlight/n, pairInFlight0), pairInFlight),
			letter: l, reader: reader{from: h.agent.PublicKey(), size: size},
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	for _, p := range r.pairs {
		f.watch("live agent", p.agent)
		f.background(p.receive)
	}
	return r, nil
}

func (r *liveRun) received() (n uint64) {
	for _, p := range r.pairs {
		n += p.received.Load()
	}
	return n
}

func (r *liveRun) sent() (n uint64) {
	for _, p := range r.pairs {
		n += p.sent.Load()
	}
	return n
}

// throughput measures messages per second with a window of messages in flight.
func (r *liveRun) throughput(relay Relay, what string, warmup, measure time.Duration) (n uint64, l lap, err error) {
	r.recordFrom.Store(int64(measureNothing))
	r.looping.Store(true)
	err = r.fleet.each(len(r.pairs), openers, func(i int) error {
		p := r.pairs[i]
		return p.send(p.window, 0)
	})
	if err != nil {
		return 0, lap{}, err
	}
	if err := r.fleet.pause(warmup); err != nil {
		return 0, lap{}, err
	}
	watch := start(relay, what, measure)
	n, err = r.fleet.count(measure, r.received)
	l = watch.stop()
	r.looping.Store(false)
	if err != nil {
		return 0, lap{}, err
	}
	return n, l, r.settle()
}

const measureNothing = time.Duration(1<<63 - 1)

// settle waits until all that was sent has arrived.
func (r *liveRun) settle() error {
	return r.fleet.settle(func() error {
		sent, received := r.sent(), r.received()
		if received == sent && sent == r.sent() {
			return nil
		}
		return fmt.Errorf("%d of %d live messages have not arrived", sent-received, sent)
	})
}
