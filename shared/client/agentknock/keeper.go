package agentknock

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"blindpost/shared/base/backoff"
)

// deliberate are the close codes after which a peer does not reconnect: its frame was
// invalid, or the relay no longer accepts the peer.
var deliberate = []int{1008, 1009, 4002, 4003, 4004}

// keeper keeps one connection open and reconnects until the relay refuses the peer.
type keeper struct {
	dial func(context.Context) (*Conn, error)
	// recover returns what is sent on each new connection before the first read.
	recover func() []Frame
	// take is called for each frame.
	take func(*Conn, Frame)
	// pause is the wait before dialling again.
	pause time.Duration
	// impatient stops the keeper when the relay refuses a connection for any reason.
	impatient bool

	cancel context.CancelFunc
	done   chan struct{}

	conn  atomic.Pointer[Conn] // nil between connections
	opens atomic.Int64

	mu      sync.Mutex
	changed chan struct{} // closed and replaced when something may have changed
	wait    time.Duration // what the relay asked for before the next dial
	err     error         // why it ended, once done is closed
}

// start starts the keeper. The end of the context does not stop it.
func (k *keeper) start(ctx context.Context) {
	if k.pause == 0 {
		k.pause = 50 * time.Millisecond
	}
	ctx, k.cancel = context.WithCancel(context.WithoutCancel(ctx))
	k.done, k.changed = make(chan struct{}), make(chan struct{})
	go func() {
		err := k.keep(ctx)
		k.mu.Lock()
		k.err = err
		k.mu.Unlock()
		close(k.done)
		k.change()
	}()
}

// keep dials, reads, and dials again. It returns why it stopped.
func (k *keeper) keep(ctx context.Context) error {
	for {
		c, err := k.dial(ctx)
		if err == nil {
			err = k.use(ctx, c)
		}
		var no *Refusal
		var fault *Fault
		switch {
		case ctx.Err() != nil:
			return context.Canceled
		case errors.As(err, &no) && (no.Final() || k.impatient), errors.As(err, &fault), slices.Contains(deliberate, CodeOf(err)):
			return err
		case no != nil:
			k.retryAfter(no.RetryAfter)
		}
		k.mu.Lock()
		wait := max(k.pause, k.wait)
		k.wait = 0
		k.mu.Unlock()
		if backoff.Sleep(ctx, wait) != nil {
			return context.Canceled
		}
	}
}

// use reads one connection until its end.
func (k *keeper) use(ctx context.Context, c *Conn) error {
	k.conn.Store(c) // first: what begins from now on is sent on it
	defer func() {
		k.conn.Store(nil)
		if ctx.Err() != nil {
			c.Close()
		} else {
			c.Drop()
		}
		k.change()
	}()
	for _, f := range k.recover() {
		_ = c.Send(context.Background(), f)
	}
	k.opens.Add(1)
	k.change()
	for {
		f, err := c.Next(ctx)
		if err != nil {
			return err
		}
		k.take(c, f)
		if f.Type == Error && f.Retryable {
			k.retryAfter(f.RetryAfter)
			c.Drop()
		}
		k.change()
	}
}

// retryAfter stores how long the relay asks the peer to wait.
func (k *keeper) retryAfter(d time.Duration) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.wait = max(k.wait, d)
}

// change wakes the callers of until.
func (k *keeper) change() {
	k.mu.Lock()
	defer k.mu.Unlock()
	close(k.changed)
	k.changed = make(chan struct{})
}

// until waits until ok reports true or an error; ok is called without locks.
func (k *keeper) until(ctx context.Context, what string, ok func() (bool, error)) error {
	for {
		k.mu.Lock()
		changed := k.changed
		k.mu.Unlock()
		done, err := ok()
		switch {
		case err != nil:
			return err
		case done:
			return nil
		}
		select {
		case <-changed:
		case <-k.done:
			if done, err := ok(); done || err != nil {
				return err
			}
			return fmt.Errorf("%s did not come: %w", what, k.Err())
		case <-ctx.Done():
			return fmt.Errorf("%s did not come: %w", what, context.Cause(ctx))
		}
	}
}

// send sends a frame if there is a connection. If not, or if the connection is lost, recover
// returns the frame for the next one.
func (k *keeper) send(f Frame) {
	if c := k.conn.Load(); c != nil {
		_ = c.Send(context.Background(), f)
	}
}

// Drop cuts the connection like a lost network. The keeper then dials again.
func (k *keeper) Drop() {
	if c := k.conn.Load(); c != nil {
		c.Drop()
	}
}

// Stop closes the connection and stops the keeper. It may be called again.
func (k *keeper) Stop() {
	k.cancel()
	<-k.done
}

// Done is closed when the keeper has stopped, by Stop or because the relay refuses the
// peer.
func (k *keeper) Done() <-chan struct{} { return k.done }

// Err is why the keeper has stopped.
func (k *keeper) Err() error {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.err
}

// Opens is the number of connections so far.
func (k *keeper) Opens() int { return int(k.opens.Load()) }

// Opened waits until there have been n connections.
func (k *keeper) Opened(ctx context.Context, n int) error {
	return k.until(ctx, "a connection", func() (bool, error) { return k.Opens() >= n, nil })
}
