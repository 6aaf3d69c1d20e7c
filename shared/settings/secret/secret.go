// Package secret keeps a shared secret that can be rotated: one value or several, separated
// by white space, read from a file or from AWS and read again every few minutes.
//
// Several values are for a rotation without a gap: the side that checks accepts each of
// them, the side that sends one sends the first. So an operator appends the new value, waits
// until both sides have read it, moves it to the front, waits again, and removes the old one.
//
// No error and no log line holds a value.
package secret

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"
)

const (
	// MaxAge is how long the values are used before they are read again, so that a value
	// that was removed is soon refused.
	MaxAge = 5 * time.Minute
	// MinLength is the length of the shortest value, in bytes, where Options.Long is set.
	MinLength = 16
	// forgetAfter is how long Forget keeps values that were just read. A peer that can
	// provoke a refusal must not cause a read with every request.
	forgetAfter = 10 * time.Second
)

// Options say where the values come from. Read is required.
type Options struct {
	Read func(ctx context.Context) (string, error)
	// Long refuses an empty secret, and values that are shorter than MinLength.
	Long bool
	// Check, if it is set, refuses values that are of no use. Its error must not hold a
	// value.
	Check func(values []string) error
	Now   func() time.Time
	Log   *slog.Logger
}

// Rotating is a shared secret that can be rotated. It is safe for concurrent use.
type Rotating struct {
	o Options

	mu     sync.Mutex
	last   []string // nil before the first read
	readAt time.Time
}

// New makes a Rotating. It reads nothing yet.
func New(o Options) *Rotating {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return &Rotating{o: o}
}

// Check reports whether value is one of the values. It takes the same time for every
// value.
func (r *Rotating) Check(ctx context.Context, value string) (bool, error) {
	values, err := r.values(ctx)
	if err != nil {
		return false, err
	}
	// The time of a comparison depends on the length, so hashes are compared.
	got, match := sha256.Sum256([]byte(value)), 0
	for _, v := range values {
		want := sha256.Sum256([]byte(v))
		match |= subtle.ConstantTimeCompare(got[:], want[:])
	}
	return match == 1, nil
}

// Current is the value to send: the first.
func (r *Rotating) Current(ctx context.Context) (string, error) {
	values, err := r.values(ctx)
	if err != nil {
		return "", err
	}
	if len(values) == 0 {
		return "", errors.New("secret is empty")
	}
	return values[0], nil
}

// All are the values, for a check that is more than a comparison.
func (r *Rotating) All(ctx context.Context) ([]string, error) {
	values, err := r.values(ctx)
	return slices.Clone(values), err
}

// Forget makes the next use read the values again, because the other side has refused
// Current. It reports false, and changes nothing, if they were read just now.
func (r *Rotating) Forget() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.last == nil || r.o.Now().Sub(r.readAt) < forgetAfter {
		return false
	}
	r.readAt = r.o.Now().Add(-MaxAge)
	return true
}

// Reread makes the next use read the values again, because the operator has changed them.
func (r *Rotating) Reread() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.readAt = time.Time{}
}

// values are the last ones, or new ones if those are too old. If the new ones cannot be
// read, the last ones are used for another MaxAge.
func (r *Rotating) values(ctx context.Context) ([]string, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.last != nil && r.o.Now().Sub(r.readAt) < MaxAge {
		return r.last, nil
	}
	values, err := r.read(ctx)
	switch {
	case err == nil:
		r.last = values
	case r.last == nil:
		return nil, err
	default:
		r.o.Log.WarnContext(ctx, "failed to read a secret again, the last one still counts", "error", err)
	}
	r.readAt = r.o.Now()
	return r.last, nil
}

func (r *Rotating) read(ctx context.Context) ([]string, error) {
	text, err := r.o.Read(ctx)
	if err != nil {
		return nil, err
	}
	values := append([]string{}, strings.Fields(text)...) // not nil
	if r.o.Long && len(values) == 0 {
		return nil, errors.New("secret is empty")
	}
	for i, v := range values {
		if r.o.Long && len(v) < MinLength {
			return nil, fmt.Errorf("value %d of a secret is shorter than %d characters", i+1, MinLength)
		}
	}
	if r.o.Check != nil {
		if err := r.o.Check(values); err != nil {
			return nil, err
		}
	}
	return values, nil
}
