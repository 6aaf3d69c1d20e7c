package skald

import (
	"testing"
	"time"
)

func TestBackoff(t *testing.T) {
	b := DefaultBackoff
	for i, want := range []time.Duration{1, 2, 4, 8, 16, 32, 60, 60} {
		want *= time.Second
		if got := b.Delay(i+1, 0); got != want {
			t.Errorf("failure %d: %v, want %v", i+1, got, want)
		}
		if got := b.Delay(i+1, 0.5); got != want+want/8 {
			t.Errorf("failure %d with jitter: %v, want %v", i+1, got, want+want/8)
		}
	}
	if got := b.Delay(1<<40, 0); got != time.Minute {
		t.Errorf("after very long: %v", got)
	}
	for name, bad := range map[string]Backoff{
		"zero":          {},
		"upside down":   {Min: 2, Max: 1},
		"too long":      {Min: 1, Max: 25 * time.Hour},
		"less than all": {Min: 1, Max: 2, Jitter: -1},
		"more than all": {Min: 1, Max: 2, Jitter: 1.1},
	} {
		if bad.check() == nil {
			t.Errorf("%s: passes", name)
		}
	}
}
