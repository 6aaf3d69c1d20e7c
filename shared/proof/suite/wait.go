package suite

import (
	"testing"
	"time"
)

// Eventually waits, as long as patience lasts, for something that no peer is told about.
func Eventually(t *testing.T, patience time.Duration, what string, happened func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); !happened(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("waited in vain for %s", what)
		}
	}
}
