package skald

import (
	"errors"
	"time"

	"blindpost/shared/base/backoff"
)

// Backoff is how long to wait between attempts to connect: Min, then twice as
// long each time up to Max, plus a random part of up to Jitter times that.
type Backoff struct {
	Min, Max time.Duration
	// Jitter is a fraction, for instance 0.25.
	Jitter float64
}

// DefaultBackoff is the protocol's: 1, 2, 4 … 60 s, with a quarter of jitter.
var DefaultBackoff = Backoff{Min: time.Second, Max: time.Minute, Jitter: 0.25}

// Delay returns the wait after the given number of failures in a row (at least 1). r is a
// random number in [0, 1).
func (b Backoff) Delay(failures int, r float64) time.Duration {
	d := backoff.After(failures, b.Min, b.Max)
	return d + time.Duration(r*b.Jitter*float64(d))
}

func (b Backoff) check() error {
	switch {
	case b.Min <= 0:
		return errors.New("backoff: Min is not positive")
	case b.Max < b.Min:
		return errors.New("backoff: Max is below Min")
	case b.Max > 24*time.Hour:
		// Doubling stays far from overflow.
		return errors.New("backoff: Max is over a day")
	case b.Jitter < 0 || b.Jitter > 1:
		return errors.New("backoff: Jitter is not within 0 and 1")
	}
	return nil
}
