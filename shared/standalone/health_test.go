package standalone

import (
	"context"
	"errors"
	"testing"
	"time"
)

func TestHealthAsksTheDiskOnlyNowAndThen(t *testing.T) {
	var h health
	probes, broken := 0, errors.New("no space left")
	var answer error
	probe := func(context.Context) error { probes++; return answer }
	start := time.Unix(1_000_000, 0)
	at := func(after time.Duration) error { return h.check(t.Context(), start.Add(after), probe) }

	if err := at(0); err != nil || probes != 1 {
		t.Fatalf("at first: %v after %d probes", err, probes)
	}
	answer = broken
	if err := at(healthFor - time.Second); err != nil || probes != 1 {
		t.Errorf("soon after: %v after %d probes, want the last answer", err, probes)
	}
	if err := at(healthFor); !errors.Is(err, broken) || probes != 2 {
		t.Errorf("later: %v after %d probes, want a new one that fails", err, probes)
	}
	answer = nil
	if err := at(2 * healthFor); err != nil {
		t.Errorf("when the disk is well again: %v", err)
	}
}
