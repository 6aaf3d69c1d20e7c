//go:build !linux

package chaos

import (
	"testing"
	"time"
)

func playFullDisk(t *testing.T, _ *run) { notHere(t, "full disk") }

func playBadDisk(t *testing.T, _ *run) { notHere(t, "bad disk") }

func playHalfCommit(t *testing.T, _ *run) { notHere(t, "half commit") }

// notHere says that a scenario needs Linux.
func notHere(t *testing.T, name string) {
	report(name, time.Now(), "NOT RUN: it needs Linux")
	t.Skip("needs Linux")
}
