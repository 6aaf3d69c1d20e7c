package backoff

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

func TestAfter(t *testing.T) {
	want := map[int]time.Duration{
		-1: 500 * time.Millisecond, 0: 500 * time.Millisecond, 1: 500 * time.Millisecond,
		2: time.Second, 7: 32 * time.Second, 8: time.Minute, 1 << 30: time.Minute,
	}
	for failures, d := range want {
		if got := After(failures, 500*time.Millisecond, time.Minute); got != d {
			t.Errorf("after %d failures: %v, want %v", failures, got, d)
		}
	}
}

func TestSleepEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		start := time.Now()
		if err := Sleep(ctx, time.Second); err != nil || time.Since(start) != time.Second {
			t.Errorf("the first pause: %v after %v", err, time.Since(start))
		}
		if err := Sleep(ctx, time.Hour); !errors.Is(err, context.DeadlineExceeded) || time.Since(start) != 2*time.Second {
			t.Errorf("the second pause: %v after %v", err, time.Since(start))
		}
	})
}
