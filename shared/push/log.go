package push

import (
	"context"
	"log/slog"
	"sync"
)

// LogSender is the Sender of a relay without providers: it logs that a push was not sent,
// and how many of its platform and kind there were.
type LogSender struct {
	log *slog.Logger

	mu     sync.Mutex
	counts map[tally]uint64
}

// tally is the key of the counts of LogSender.
type tally struct {
	platform Platform
	kind     Kind
}

var _ Sender = (*LogSender)(nil)

// NewLogSender makes a LogSender.
func NewLogSender(log *slog.Logger) *LogSender {
	return &LogSender{log: log, counts: map[tally]uint64{}}
}

// Send logs the intent.
func (s *LogSender) Send(ctx context.Context, n Notification) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	k := tally{n.Platform, n.Kind}
	s.mu.Lock()
	s.counts[k]++
	count := s.counts[k]
	s.mu.Unlock()
	s.log.LogAttrs(ctx, slog.LevelInfo, "push not sent: no provider is configured",
		slog.String("platform", n.Platform.String()), slog.String("kind", n.Kind.String()), slog.Uint64("count", count))
	return nil
}

// Count returns how many pushes of this platform and kind were logged.
func (s *LogSender) Count(p Platform, k Kind) uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.counts[tally{p, k}]
}
