package bench

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"blindpost/shared/base/backoff"
	skaldclient "blindpost/shared/client/skald"
)

const (
	// openers is how many connections are opened at a time where that is not
	// measured.
	openers = 64
	// rush is how many connections are opened at a time where it is. A relay
	// writes what many want to have written in one go, so it needs many.
	rush = 256
	// settleTime is how long what is on its way may take to arrive when nothing is
	// sent any more.
	settleTime = 20 * time.Second
)

// fleet is the connections of one part of a measurement. The first failure ends
// them all.
type fleet struct {
	target Target
	ctx    context.Context // ends with the fleet; its cause is the first failure
	fail   context.CancelCauseFunc
	ending atomic.Bool
	wg     sync.WaitGroup // background readers

	mu    sync.Mutex
	conns map[*conn]struct{}
}

func newFleet(ctx context.Context, t Target) *fleet {
	f := &fleet{target: t, conns: map[*conn]struct{}{}}
	f.ctx, f.fail = context.WithCancelCause(ctx)
	// Not only the waits end with ctx, but also reads and writes.
	context.AfterFunc(f.ctx, f.abort)
	return f
}

func (f *fleet) abort() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for c := range f.conns {
		c.abort()
	}
}

// end cuts all connections and waits for their readers.
func (f *fleet) end() {
	f.ending.Store(true)
	f.fail(errors.New("fleet has ended"))
	f.wg.Wait()
}

// enter opens a connection and authenticates.
func (f *fleet) enter(auth skaldclient.AuthFunc) (*conn, error) {
	c, err := f.dial(skaldPath)
	if err != nil {
		return nil, err
	}
	if err := c.authenticate(auth); err != nil {
		f.drop(c)
		return nil, f.because(err)
	}
	c.within(0)
	return c, nil
}

// dial opens a connection of the fleet.
func (f *fleet) dial(path string) (*conn, error) {
	c, err := f.target.dial(f.ctx, path)
	if err != nil {
		return nil, f.because(err)
	}
	return c, f.keep(c)
}

func (f *fleet) keep(c *conn) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.ctx.Err() != nil {
		c.abort()
		return context.Cause(f.ctx)
	}
	f.conns[c] = struct{}{}
	return nil
}

func (f *fleet) drop(c *conn) {
	c.abort()
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.conns, c)
}

// leave closes a connection in good manners.
func (f *fleet) leave(c *conn) {
	c.close()
	f.drop(c)
}

// because prefers the first failure of the fleet to what it has led to.
func (f *fleet) because(err error) error {
	if cause := context.Cause(f.ctx); cause != nil && err != nil {
		return cause
	}
	return err
}

// background runs a reader. Its error ends the fleet.
func (f *fleet) background(read func() error) {
	f.wg.Go(func() {
		if err := read(); err != nil && !f.ending.Load() {
			f.fail(err)
		}
	})
}

// watch reads a connection on which nothing is to come but pings and news of
// others.
func (f *fleet) watch(who string, c *conn) {
	f.background(func() error {
		for {
			b, err := c.next()
			if err != nil {
				return fmt.Errorf("%s: %w", who, err)
			}
			frame, err := decode(b)
			if err != nil {
				return fmt.Errorf("%s: %w", who, err)
			}
			if frame.GetPresenceEvent() == nil {
				return fmt.Errorf("%s got an unexpected frame (%T)", who, frame.GetFrame())
			}
		}
	})
}

// each calls do for 0 to n-1, some at a time.
func (f *fleet) each(n, atATime int, do func(i int) error) error {
	var g errgroup.Group
	g.SetLimit(atATime)
	for i := range n {
		if f.ctx.Err() != nil {
			break
		}
		g.Go(func() error {
			if err := do(i); err != nil {
				f.fail(err)
				return err
			}
			return nil
		})
	}
	return f.because(errors.Join(g.Wait(), f.ctx.Err()))
}

// pause waits, but not longer than the fleet works.
func (f *fleet) pause(d time.Duration) error {
	if backoff.Sleep(f.ctx, d) != nil {
		return context.Cause(f.ctx)
	}
	return nil
}

// settle waits until missing, which says what has not arrived, reports nothing.
func (f *fleet) settle(missing func() error) error {
	for end := time.Now().Add(settleTime); ; {
		err := missing()
		if err == nil {
			return nil
		}
		if time.Now().After(end) {
			return fmt.Errorf("%w within %v", err, settleTime)
		}
		if err := f.pause(2 * time.Millisecond); err != nil {
			return err
		}
	}
}

// count tells by how much a number has grown in some time. If it has not, it
// goes on until it has, for callTime at most: a machine that is busy otherwise
// may hold up everything for a while.
func (f *fleet) count(d time.Duration, number func() uint64) (n uint64, err error) {
	before, end := number(), time.Now().Add(d+callTime)
	for n == 0 && time.Now().Before(end) {
		if err := f.pause(d); err != nil {
			return 0, err
		}
		n = number() - before
	}
	return n, nil
}
