package conformance

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"blindpost/shared/dialect/skald/skaldpb"
)

// ledger is what a recipient that comes and goes has seen, checked as it comes
// against what an app needs: from one sender, nothing overtakes. A message that
// arrives after a later one has been seen is unreadable, which is loss.
//
// It plays by the rules of a real app: once it has given up a connection, it
// sees nothing more of it and answers none of its pings.
type ledger struct {
	mu      sync.Mutex
	current int // number of the connection in use, 0 for none
	senders map[string]*account
	faults  []string
	got     int           // messages seen in the current connection
	news    chan struct{} // has a token when got has grown
	repeats int           // messages seen again on a later connection
}

// account is one sender's page.
type account struct {
	name string
	seen map[int]bool
	high int // highest number seen ever
	// The same for one connection, where nothing repeats.
	connection int
	last       int
}

func newLedger() *ledger {
	return &ledger{senders: make(map[string]*account), news: make(chan struct{}, 1)}
}

// expect opens a page for a sender. Call it before anything arrives.
func (l *ledger) expect(id *identity) {
	l.senders[string(id.key)] = &account{name: id.name, seen: make(map[int]bool)}
}

// connection returns what to watch a connection with, and makes it the current.
func (l *ledger) connection(number int) func(*skaldpb.RelayFrame) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.current, l.got = number, 0
	return func(f *skaldpb.RelayFrame) { l.read(number, f) }
}

// abandon makes the recipient turn away from its connection.
func (l *ledger) abandon(p *peer) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.current = 0
	p.deaf.Store(true)
}

func (l *ledger) read(number int, f *skaldpb.RelayFrame) {
	m := f.GetMessage()
	l.mu.Lock()
	defer l.mu.Unlock()
	if m == nil || number != l.current {
		return
	}
	l.got++
	select {
	case l.news <- struct{}{}:
	default:
	}
	from := l.senders[string(m.GetPeer())]
	if from == nil {
		l.fault("a message from a stranger")
		return
	}
	n, ok := numberOf(m)
	if !ok {
		l.fault("%s: message %q with live=%v", from.name, labelOf(m.GetCiphertext()), m.GetLive())
		return
	}
	if from.connection == number && n <= from.last {
		l.fault("%s: message %d after %d on one connection", from.name, n, from.last)
	}
	switch {
	case !from.seen[n] && n < from.high:
		l.fault("%s: message %d comes after %d was read", from.name, n, from.high)
	case from.seen[n] && m.GetLive():
		l.fault("%s: live message %d comes twice", from.name, n)
	case from.seen[n]:
		l.repeats++
	}
	from.seen[n] = true
	from.high = max(from.high, n)
	from.connection, from.last = number, n
}

func (l *ledger) fault(format string, args ...any) {
	if len(l.faults) < 20 {
		l.faults = append(l.faults, fmt.Sprintf(format, args...))
	}
}

// has reports whether the message was seen.
func (l *ledger) has(id *identity, n int) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.senders[string(id.key)].seen[n]
}

// wait waits until the current connection has seen some messages, for a while.
func (l *ledger) wait(messages int, limit time.Duration) {
	timeout := time.NewTimer(limit)
	defer timeout.Stop()
	for {
		l.mu.Lock()
		enough := l.got >= messages
		l.mu.Unlock()
		if enough {
			return
		}
		select {
		case <-l.news:
		case <-timeout.C:
			return
		}
	}
}

// numbered makes the n-th message of a sender, and numberOf reads it.
func (r *relay) numbered(n int, live bool) parcel {
	m := r.parcel("%d live=%v", n, live)
	m.live = live
	return m
}

func numberOf(m *skaldpb.Message) (int, bool) {
	var n int
	var live bool
	if _, err := fmt.Sscanf(labelOf(m.GetCiphertext()), "%d live=%t", &n, &live); err != nil {
		return 0, false
	}
	return n, live == m.GetLive()
}

// flood sends to one recipient until told to stop, live and stored mixed, and
// returns the numbers of those messages that the relay has accepted to store:
// the answer to a PresenceRequest came after them, and no queue_full before it.
// accepted counts them as it goes. It runs in a goroutine of its own and returns
// errors.
func flood(p *peer, to *identity, stop <-chan struct{}, chance *rand.Rand, accepted *atomic.Int64) (stored []int, err error) {
	next := 1
	for {
		select {
		case <-stop:
			return stored, nil
		default:
		}
		var batch []int
		for range 1 + chance.IntN(4) {
			m := p.r.numbered(next, chance.IntN(3) == 0)
			if err := p.post(m.to(to.key)); err != nil {
				return stored, fmt.Errorf("failed to send message %d: %w", next, err)
			}
			if !m.live {
				batch = append(batch, next)
			}
			next++
		}
		refused, err := p.verdict()
		if err != nil {
			return stored, fmt.Errorf("failed to hear of message %d: %w", next-1, err)
		}
		if !refused {
			stored = append(stored, batch...)
			accepted.Add(int64(len(batch)))
		}
	}
}

// verdict is a barrier for floods: it reports whether a message was refused.
func (p *peer) verdict() (refused bool, err error) {
	if err := p.post(framePresenceRequest()); err != nil {
		return false, err
	}
	for {
		f, err := p.frame()
		switch {
		case err != nil:
			return refused, err
		case f.GetPresenceList() != nil:
			return refused, nil
		case f.GetError().GetCode() == "queue_full":
			refused = true
		case f.GetPeerOffline() == nil && f.GetPresenceEvent() == nil:
			return refused, fmt.Errorf("unexpected %s", describe(f))
		}
	}
}

// Property 2 and 1: twenty senders write without a break, live and stored
// mixed, while the recipient reconnects a hundred times in every way there is.
// From one sender nothing overtakes, and nothing stored is lost.
func propertyOrder(toAgent bool) func(t *testing.T, r *relay) {
	return func(t *testing.T, r *relay) {
		const senders, reconnects = 20, 100
		h := r.home(t)
		agent := h.dialAgent()
		recipient := h.agent
		all := h.phones(agent, senders)
		writing := make(map[*identity]*peer)
		dial := h.dialAgent
		if !toAgent {
			recipient, dial = all[0].identity, all[0].dial
			writing[h.agent] = agent
			all = all[1:]
		} else {
			agent.drop()
		}
		for _, ph := range all {
			writing[ph.identity] = ph.dial()
		}

		book := newLedger()
		for id := range writing {
			book.expect(id)
		}
		stop := make(chan struct{})
		var accepted atomic.Int64
		var mu sync.Mutex
		stored := make(map[*identity][]int)
		var wg sync.WaitGroup
		for id, p := range writing {
			chance := rand.New(rand.NewPCG(rand.Uint64(), rand.Uint64()))
			wg.Go(func() {
				numbers, err := flood(p, recipient, stop, chance, &accepted)
				if err != nil {
					t.Errorf("%s: %v", id, err)
				}
				mu.Lock()
				defer mu.Unlock()
				stored[id] = numbers
			})
		}

		for i := range reconnects {
			wire := r.proxy(t)
			p := dial(line{through: wire, watch: book.connection(i + 1)})
			book.wait(rand.IntN(40), 40*time.Millisecond)
			book.abandon(p)
			switch rand.IntN(5) {
			case 0:
				p.close()
			case 1:
				p.drop()
			case 2:
				wire.Cut()
			case 3:
				wire.Freeze()
			case 4: // the old one is left open for the relay to replace
			}
			if t.Failed() {
				break
			}
		}
		close(stop)
		wg.Wait()
		last := dial(line{watch: book.connection(reconnects + 1)})

		mu.Lock()
		defer mu.Unlock()
		count, missing := 0, 0
		deadline := time.Now().Add(patience)
		for id, numbers := range stored {
			for _, n := range numbers {
				count++
				for r.KnowsDelivery && !book.has(id, n) && time.Now().Before(deadline) {
					time.Sleep(time.Millisecond)
				}
				if r.KnowsDelivery && !book.has(id, n) {
					if missing++; missing <= 10 {
						t.Errorf("%s: stored message %d is lost", id, n)
					}
				}
			}
		}
		if missing > 0 {
			t.Errorf("%d of %d stored messages are lost", missing, count)
		}
		if _, err := last.verdictLoose(); err != nil {
			t.Errorf("the last connection: %v", err)
		}
		book.mu.Lock()
		defer book.mu.Unlock()
		for _, fault := range book.faults {
			t.Error(fault)
		}
		t.Logf("%d stored messages, %d repeated", count, book.repeats)
	}
}

// verdictLoose is a barrier that reads over everything.
func (p *peer) verdictLoose() (frames int, err error) {
	if err := p.post(framePresenceRequest()); err != nil {
		return 0, err
	}
	for {
		f, err := p.frame()
		if err != nil || f.GetPresenceList() != nil {
			return frames, err
		}
		frames++
	}
}
