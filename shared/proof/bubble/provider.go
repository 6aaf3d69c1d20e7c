package bubble

import (
	"bytes"
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing/synctest"
	"time"

	"blindpost/shared/push"
)

// Provider is a push provider that keeps what it is given.
type Provider struct {
	Delay atomic.Int64 // how long an answer takes

	mu     sync.Mutex
	pushes []SentPush
	fail   []error // answers to the next pushes
}

// SentPush is a push, and how it was answered.
type SentPush struct {
	push.Notification
	At  time.Time
	Err error
}

var _ push.Sender = (*Provider)(nil)

// Send implements push.Sender.
func (p *Provider) Send(_ context.Context, n push.Notification) error {
	time.Sleep(time.Duration(p.Delay.Load()))
	p.mu.Lock()
	defer p.mu.Unlock()
	n.Payload = bytes.Clone(n.Payload)
	s := SentPush{Notification: n, At: time.Now()}
	if len(p.fail) > 0 {
		s.Err, p.fail = p.fail[0], p.fail[1:]
	}
	p.pushes = append(p.pushes, s)
	return s.Err
}

// FailNext makes the next pushes fail.
func (p *Provider) FailNext(errs ...error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.fail = append(p.fail, errs...)
}

// Take returns the pushes since it was called last.
func (p *Provider) Take() []SentPush {
	synctest.Wait()
	p.mu.Lock()
	defer p.mu.Unlock()
	got := p.pushes
	p.pushes = nil
	return got
}

// ErrProvider is what a broken provider answers.
var ErrProvider = errors.New("the provider is out of order")
