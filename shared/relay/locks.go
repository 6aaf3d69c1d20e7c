package relay

import (
	"context"
	"hash/maphash"
)

// locks is a fixed set of locks addressed by name. Two names may share a lock,
// so whoever holds one must not take a second one of the same set. A lock is a
// channel, so that waiting for it ends with the context and counts as waiting
// in a testing/synctest bubble.
type locks struct {
	seed maphash.Seed
	set  []chan struct{}
}

func newLocks(n int) *locks {
	l := &locks{seed: maphash.MakeSeed(), set: make([]chan struct{}, n)}
	for i := range l.set {
		l.set[i] = make(chan struct{}, 1)
	}
	return l
}

// lock waits for the lock of a name; the caller sends back into the channel
// with unlock.
func (l *locks) lock(ctx context.Context, a, b string) (chan struct{}, error) {
	var h maphash.Hash
	h.SetSeed(l.seed)
	h.WriteString(a)
	h.WriteByte(0)
	h.WriteString(b)
	ch := l.set[h.Sum64()%uint64(len(l.set))]
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

func unlock(ch chan struct{}) { <-ch }
