package settings_test

import (
	"slices"
	"strings"
	"testing"

	"blindpost/functions/settings"
)

func TestCheck(t *testing.T) {
	environ := []string{
		"BLINDPOST_TABLE=t", "BLINDPOST_JOBS_QUEUE_URL=https://sqs.example/0/jobs", "BLINDPOST_INGRESS_QUEUE_URL=https://sqs.example/0/ingress.fifo",
		"BLINDPOST_MAX_FRAME=32KiB", "BLINDPOST_MAX_LIVE_FRAME=96KiB",
	}
	l, err := settings.Check("message", environ)
	if err != nil || l != (settings.Limits{MaxFrame: 32 << 10, MaxLiveFrame: 96 << 10}) {
		t.Errorf("got %+v, %v", l, err)
	}
	if _, err := settings.Check("message", append(environ, "BLINDPOST_PAIRING_TTL=2h")); err == nil || !strings.Contains(err.Error(), "longer than") {
		t.Errorf("a contradiction was taken: %v", err)
	}
	if !slices.Contains(settings.Variables(), "BLINDPOST_TABLE") {
		t.Error("the table is no setting")
	}
}
