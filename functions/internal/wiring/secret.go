package wiring

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"log/slog"
	"strings"
	"sync"
	"time"
)

// secretAge is how long a secret is believed before it is read again, so that one
// that was rotated away is refused soon.
const secretAge = 5 * time.Minute

// originSecret knows the words by which CloudFront proves itself. The secret may
// hold several, separated by white space: for a rotation the new one is added, then
// CloudFront is changed, then the old one is taken out.
type originSecret struct {
	read func(ctx context.Context) (string, error)
	now  func() time.Time
	log  *slog.Logger

	mu     sync.Mutex
	hashes [][sha256.Size]byte
	at     time.Time
}

// check compares in constant time.
func (s *originSecret) check(ctx context.Context, value string) (bool, error) {
	hashes, err := s.current(ctx)
	if err != nil {
		return false, err
	}
	got, match := sha256.Sum256([]byte(value)), 0
	for _, h := range hashes {
		match |= subtle.ConstantTimeCompare(got[:], h[:])
	}
	return match == 1, nil
}

func (s *originSecret) current(ctx context.Context) ([][sha256.Size]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.hashes != nil && s.now().Sub(s.at) < secretAge {
		return s.hashes, nil
	}
	secret, err := s.read(ctx)
	if err != nil && s.hashes != nil {
		s.log.WarnContext(ctx, "failed to read the origin secret again, the last one still counts", "error", err)
		s.at = s.now()
		return s.hashes, nil
	}
	if err != nil {
		return nil, err
	}
	s.hashes, s.at = [][sha256.Size]byte{}, s.now()
	for word := range strings.FieldsSeq(secret) {
		s.hashes = append(s.hashes, sha256.Sum256([]byte(word)))
	}
	return s.hashes, nil
}
