package chaos

import (
	"fmt"
	"sync"
	"sync/atomic"
)

// ledger accounts for every message between any two members:
//
//   - What was accepted to be stored arrives.
//   - From one sender to one recipient nothing overtakes: the first arrival of a
//     number below one that has been seen is a fault, because a real recipient
//     could not accept it any more. Within one connection numbers only grow.
//   - What arrives again was stored and had not been confirmed.
//   - What arrives was sent.
//
// What was not accepted may arrive or not. All methods are safe for concurrent
// use, but the letters of one sender to one recipient are written, and those of
// one recipient are read, one after another.
type ledger struct {
	mu       sync.Mutex
	accounts map[route]*account
	faults   []string
	nFaults  int
	sum      totals

	arrivals atomic.Int64 // first arrivals, to watch progress without the lock
}

// totals are numbers of messages.
type totals struct {
	sent, accepted, arrived, repeated, live int
}

type route struct{ from, to uint32 }

// account is what is known about the letters on one route.
type account struct {
	marks []mark // by number, from 1
	high  uint32 // the highest that was seen
	// The same for the current connection of the recipient.
	line, last uint32
}

// mark is what is known about one letter.
type mark uint8

const (
	markLive mark = 1 << iota
	markAccepted
	markSeen
	markConfirmed
)

const maxFaults = 20

func newLedger() *ledger { return &ledger{accounts: make(map[route]*account)} }

// write gives out the next letter on a route.
func (b *ledger) write(from, to uint32, live bool) letter {
	b.mu.Lock()
	defer b.mu.Unlock()
	r := route{from, to}
	a := b.accounts[r]
	if a == nil {
		a = &account{marks: make([]mark, 1)}
		b.accounts[r] = a
	}
	var m mark
	if live {
		m = markLive
		b.sum.live++
	}
	a.marks = append(a.marks, m)
	b.sum.sent++
	return letter{from: from, to: to, n: uint32(len(a.marks) - 1), live: live}
}

// accept says that the relay has taken charge of stored letters.
func (b *ledger) accept(letters ...letter) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, l := range letters {
		m := b.mark(l)
		if m == nil || *m&markLive != 0 {
			b.fault("%v cannot be accepted", l)
			continue
		}
		if *m&markAccepted == 0 {
			*m |= markAccepted
			b.sum.accepted++
		}
	}
}

// arrive notes a letter that has come over a connection of its recipient.
// Connections are numbered; a number stands for one connection in all the run.
func (b *ledger) arrive(line uint32, l letter) {
	b.mu.Lock()
	defer b.mu.Unlock()
	m := b.mark(l)
	if m == nil || l.live != (*m&markLive != 0) {
		b.fault("%v was never sent", l)
		return
	}
	a := b.accounts[route{l.from, l.to}]
	if a.line == line && l.n <= a.last {
		b.fault("%v comes after number %d on one connection", l, a.last)
	}
	switch {
	case *m&markSeen == 0 && l.n < a.high:
		b.fault("%v comes after number %d was read", l, a.high)
	case *m&markSeen != 0 && l.live:
		b.fault("%v comes twice", l)
	case *m&markConfirmed != 0:
		b.fault("%v comes again, although it was confirmed", l)
	}
	if *m&markSeen == 0 {
		b.sum.arrived++
		b.arrivals.Add(1)
	} else {
		b.sum.repeated++
	}
	*m |= markSeen
	a.high = max(a.high, l.n)
	a.line, a.last = line, l.n
}

// confirm says that the relay knows that the letters have arrived.
func (b *ledger) confirm(letters ...letter) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, l := range letters {
		if m := b.mark(l); m != nil {
			*m |= markConfirmed
		}
	}
}

// forget takes everything for a member off the books: it is being revoked. From
// then on nothing may arrive there.
func (b *ledger) forget(to uint32) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for r := range b.accounts {
		if r.to == to {
			delete(b.accounts, r)
		}
	}
}

// mark finds the mark of a letter, nil if it was never written.
func (b *ledger) mark(l letter) *mark {
	a := b.accounts[route{l.from, l.to}]
	if a == nil || l.n == 0 || int(l.n) >= len(a.marks) {
		return nil
	}
	return &a.marks[l.n]
}

// fault notes what is wrong. The caller holds the lock.
func (b *ledger) fault(format string, args ...any) {
	b.nFaults++
	if len(b.faults) < maxFaults {
		b.faults = append(b.faults, fmt.Sprintf(format, args...))
	}
}

// blame notes what is wrong that only others can know.
func (b *ledger) blame(format string, args ...any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.fault(format, args...)
}

// missing counts what was accepted and has not arrived, and names some of it.
func (b *ledger) missing() (n int, some []letter) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for r, a := range b.accounts {
		for i, m := range a.marks {
			if m&markAccepted == 0 || m&markSeen != 0 {
				continue
			}
			n++
			if len(some) < maxFaults {
				some = append(some, letter{from: r.from, to: r.to, n: uint32(i)})
			}
		}
	}
	return n, some
}

// arrivedAt reports whether a member has everything that was accepted for it.
func (b *ledger) arrivedAt(to uint32) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	for r, a := range b.accounts {
		if r.to != to {
			continue
		}
		for _, m := range a.marks {
			if m&markAccepted != 0 && m&markSeen == 0 {
				return false
			}
		}
	}
	return true
}

// audit returns the totals and everything that is wrong.
func (b *ledger) audit() (totals, []string) {
	n, some := b.missing()
	b.mu.Lock()
	defer b.mu.Unlock()
	faults := append([]string(nil), b.faults...)
	if more := b.nFaults - len(b.faults); more > 0 {
		faults = append(faults, fmt.Sprintf("and %d more faults", more))
	}
	for _, l := range some {
		faults = append(faults, fmt.Sprintf("%v was accepted and is lost", l))
	}
	if more := n - len(some); more > 0 {
		faults = append(faults, fmt.Sprintf("and %d more are lost", more))
	}
	return b.sum, faults
}
