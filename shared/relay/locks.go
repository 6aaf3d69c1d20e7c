package relay

import (
	"context"
	"encoding/binary"
	"io"
	"sync"
)

// locks is a fixed set of locks addressed by name. Two names may share a lock,
// so a handler that holds one must not take a second one of the same set. A lock is a
// channel, so that waiting for it ends with the context and counts as waiting
// in a testing/synctest bubble.
type locks struct {
	seed uint64
	set  []lock
}

// lock makes its channel at first use: a process that lives for one frame needs two.
type lock struct {
	made sync.Once
	ch   chan struct{}
}

func (l *lock) get() chan struct{} {
	l.made.Do(func() { l.ch = make(chan struct{}, 1) })
	return l.ch
}

// newLocks takes a seed from random, so that an attacker cannot choose names that
// share a lock.
func newLocks(n int, random io.Reader) *locks {
	l := &locks{set: make([]lock, n)}
	var seed [8]byte
	if _, err := io.ReadFull(random, seed[:]); err == nil {
		l.seed = binary.LittleEndian.Uint64(seed[:])
	}
	return l
}

// lock waits for the lock of a name. The caller gives the channel to unlock.
func (l *locks) lock(ctx context.Context, a, b string) (chan struct{}, error) {
	ch := l.set[l.hash(a, b)%uint64(len(l.set))].get()
	select {
	case ch <- struct{}{}:
		return ch, nil
	default:
	}
	select {
	case ch <- struct{}{}:
		return ch, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// hash is FNV-1a over the seed and both parts of a name.
func (l *locks) hash(a, b string) uint64 {
	const prime = 1099511628211
	h := 14695981039346656037 ^ l.seed
	for i := range len(a) {
		h = (h ^ uint64(a[i])) * prime
	}
	h *= prime // the end of a
	for i := range len(b) {
		h = (h ^ uint64(b[i])) * prime
	}
	return h ^ h>>32
}

func unlock(ch chan struct{}) { <-ch }
