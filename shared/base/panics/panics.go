// Package panics logs panics of handlers without what they were about.
package panics

import (
	"context"
	"fmt"
	"log/slog"
	"runtime"
	"runtime/debug"
)

// Log logs a panic that has just been recovered, with its stack. The value may hold bytes
// of a peer, so only its type is logged, or its text if it is an error of the Go runtime.
func Log(ctx context.Context, log *slog.Logger, message string, value any, args ...any) {
	what := fmt.Sprintf("%T", value)
	if r, ok := value.(runtime.Error); ok {
		what = r.Error()
	}
	log.ErrorContext(ctx, message, append(args, "panic", what, "stack", string(debug.Stack()))...)
}
