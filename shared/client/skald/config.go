package skald

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"time"
)

// Config are the settings of both [Agent] and [Client]. Zero values mean the defaults; only
// Store is required.
type Config struct {
	// Store keeps identity, peers and counters. If it is empty, a new identity
	// is made.
	Store Store

	// OnEvent is called with every event, one after the other and in order, from a
	// goroutine of Run. It may call every method except Run, Pair and Flush. While it is
	// busy, up to QueueSize events wait; then the connection is not read. Nothing is lost:
	// a relay closes a connection that answers no ping for two minutes, and keeps the
	// messages that were not read. ctx ends when Run is told to stop; the waiting events
	// are delivered even then.
	//
	// A method that waits for an answer of the relay may return before OnEvent has been
	// called for earlier frames. If that matters, call Flush after it.
	OnEvent func(ctx context.Context, e Event)
	// QueueSize is in events; default 256. The queue also holds at most 8 MiB.
	QueueSize int

	Dial DialOptions
	// Rand is where seeds, ids, tokens and jitter come from; default
	// crypto/rand.
	Rand io.Reader

	// Backoff is the wait between attempts; default [DefaultBackoff]. It starts
	// again after a connection that lasted StableAfter; default 1 min.
	Backoff     Backoff
	StableAfter time.Duration

	// DialTimeout bounds the opening of a connection; default 20 s.
	DialTimeout time.Duration
	// WriteTimeout bounds the writing of one frame; default 30 s.
	WriteTimeout time.Duration
	// RequestTimeout bounds the relay's answer to Authorize and other requests; default
	// 30 s. After it the connection is closed.
	RequestTimeout time.Duration
	// KeepAlive is how long the relay may be silent before it is pinged; default 45 s.
	// PongTimeout is how long its pong may take before the connection is closed; default
	// 15 s.
	KeepAlive   time.Duration
	PongTimeout time.Duration
}

func (c Config) withDefaults() Config {
	setDefault(&c.QueueSize, 256)
	setDefault(&c.Backoff, DefaultBackoff)
	setDefault(&c.StableAfter, time.Minute)
	setDefault(&c.DialTimeout, 20*time.Second)
	setDefault(&c.WriteTimeout, 30*time.Second)
	setDefault(&c.RequestTimeout, 30*time.Second)
	setDefault(&c.KeepAlive, 45*time.Second)
	setDefault(&c.PongTimeout, 15*time.Second)
	if c.Rand == nil {
		c.Rand = rand.Reader
	}
	if c.OnEvent == nil {
		c.OnEvent = func(context.Context, Event) {}
	}
	return c
}

func setDefault[T comparable](v *T, value T) {
	var zero T
	if *v == zero {
		*v = value
	}
}

// check validates a Config with its defaults.
func (c Config) check() error {
	if c.Store == nil {
		return errors.New("config: Store is missing")
	}
	if c.QueueSize < 0 {
		return errors.New("config: QueueSize is negative")
	}
	for name, d := range map[string]time.Duration{
		"StableAfter": c.StableAfter, "DialTimeout": c.DialTimeout, "WriteTimeout": c.WriteTimeout,
		"RequestTimeout": c.RequestTimeout, "KeepAlive": c.KeepAlive, "PongTimeout": c.PongTimeout,
	} {
		if d < 0 {
			return fmt.Errorf("config: %s is negative", name)
		}
	}
	if err := c.Backoff.check(); err != nil {
		return fmt.Errorf("config: %w", err)
	}
	if err := c.Dial.check(); err != nil {
		return fmt.Errorf("config: %w", err)
	}
	return nil
}
