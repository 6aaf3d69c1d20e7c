package skald

import (
	"errors"
	"fmt"
	"math"
	"sync"
)

// reserveBlock is how many send counters one save reserves. A crash skips at
// most as many; a receiver minds no gaps.
const reserveBlock = 64

// ledger is the state in memory, always equal to the stored one: each change is saved
// before it takes effect.
type ledger struct {
	store Store

	mu    sync.Mutex
	state State
	// used is the last counter that was used for sending, per peer. It starts at the last
	// one that may have been used before the restart.
	used map[PublicKey]uint64
}

func newLedger(store Store, s State) *ledger {
	l := &ledger{store: store, state: s, used: make(map[PublicKey]uint64)}
	for _, p := range s.Peers {
		l.used[p.Key] = p.SendReserved
	}
	return l
}

// view returns a copy of the state.
func (l *ledger) view() State {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.state.clone()
}

// peer returns a copy of one peer.
func (l *ledger) peer(key PublicKey) (Peer, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if p := l.state.peer(key); p != nil {
		return p.Peer, true
	}
	return Peer{}, false
}

// errNothing ends an update without a change, which is no error of the update.
var errNothing = errors.New("nothing to change")

// update changes the state and saves it. If change or the save fails, the state stays the
// same.
func (l *ledger) update(change func(*State) error) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.updateLocked(change)
}

func (l *ledger) updateLocked(change func(*State) error) error {
	next := l.state.clone()
	switch err := change(&next); {
	case errors.Is(err, errNothing):
		return nil
	case err != nil:
		return err
	}
	if err := l.store.Save(next); err != nil {
		return fmt.Errorf("failed to save state: %w", err)
	}
	l.state = next
	return nil
}

// nextSend returns the next counter for a message to this peer. The counter is reserved in
// the store and never returned again.
func (l *ledger) nextSend(key PublicKey) (uint64, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	p := l.state.peer(key)
	if p == nil {
		return 0, ErrUnknownPeer
	}
	used := l.used[key]
	if used >= math.MaxUint64-reserveBlock {
		return 0, errors.New("failed to count: counters are used up")
	}
	next := used + 1
	if next > p.SendReserved {
		err := l.updateLocked(func(s *State) error {
			s.peer(key).SendReserved = used + reserveBlock
			return nil
		})
		if err != nil {
			return 0, err
		}
	}
	l.used[key] = next
	return next, nil
}

// accept stores the counter of a decrypted message from this peer. A counter that is not
// above the last one is [ErrReplay].
func (l *ledger) accept(key PublicKey, counter uint64) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	p := l.state.peer(key)
	if p == nil {
		return ErrUnknownPeer
	}
	if counter <= p.ReceiveSeen {
		return fmt.Errorf("%w: %d, last seen %d", ErrReplay, counter, p.ReceiveSeen)
	}
	return l.updateLocked(func(s *State) error {
		s.peer(key).ReceiveSeen = counter
		return nil
	})
}
