package skald

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"time"
)

// Config is what an [Agent] and a [Client] have in common. Zero values mean the
// defaults; only Store is required.
type Config struct {
	// Store keeps identity, peers and counters. If it is empty, a new identity
	// is made.
	Store Store

	// OnEvent is called with every event, one after the other and in order,
	// from a goroutine of Run. It may call every method but Run, Pair and
	// Flush. While it is busy, up to QueueSize events wait; then no more is
	// read from the relay, which loses nothing unless it lasts: a relay closes
	// a connection that answers no ping for two minutes, and keeps what was not
	// read. ctx ends when Run is told to stop; what waits is handed out even
	// then.
	//
	// A method that waits for the relay may return before OnEvent has seen what
	// the relay said before its answer. Where that matters, call Flush after it.
	OnEvent func(ctx context.Context, e Event)
	// QueueSize is in events; default 256. Besides, 8 MiB may wait.
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
	// RequestTimeout bounds the relay's answer to Authorize and the like;
	// default 30 s. Afterwards the connection is given up.
	RequestTimeout time.Duration
	// KeepAlive is how long the relay may be silent before it is pinged;
	// default 45 s. PongTimeout is how long its pong may take before the
	// connection is given up; default 15 s.
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

// check looks at a Config that has its defaults.
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
