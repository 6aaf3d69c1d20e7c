package sqstest

import (
	"context"
	"time"
)

// Poll is Serve for whoever has no test to end with: it returns when ctx ends and the
// last invocation has returned.
func (s *Server) Poll(ctx context.Context, url string, timeout time.Duration, f Function) {
	s.poll(ctx, url, timeout, f)
}
