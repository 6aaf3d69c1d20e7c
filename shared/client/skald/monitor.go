package skald

import (
	"context"
	"sync"
)

// monitor is a mutex with a condition, like sync.Cond, but a wait also ends with a context.
// The zero value is ready.
type monitor struct {
	sync.Mutex
	changed chan struct{} // closed by notify; nil if nobody waits
}

// notify wakes all that wait. The caller holds the lock.
func (m *monitor) notify() {
	if m.changed != nil {
		close(m.changed)
		m.changed = nil
	}
}

// await waits until ok, which is called with the lock held, reports true. If ctx ends
// first, it returns the cause.
func (m *monitor) await(ctx context.Context, ok func() bool) error {
	for {
		m.Lock()
		if ok() {
			m.Unlock()
			return nil
		}
		if m.changed == nil {
			m.changed = make(chan struct{})
		}
		changed := m.changed
		m.Unlock()
		select {
		case <-changed:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}
