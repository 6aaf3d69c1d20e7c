package relay

import (
	"bytes"
	"testing"
)

// Only the random source decides which names share a lock, so that the same source makes
// the same schedule; another source decides differently.
func TestLocksFollowTheRandomSource(t *testing.T) {
	with := func(seed byte) *locks { return newLocks(64, bytes.NewReader(bytes.Repeat([]byte{seed}, 8))) }
	a, again, b := with(1), with(1), with(2)
	differ := 0
	for _, name := range []string{"", "x", "xy", "a longer name", "m/0123456789abcdef"} {
		if a.hash("group", name) != again.hash("group", name) {
			t.Errorf("%q has two locks", name)
		}
		if a.hash("group", name) != b.hash("group", name) {
			differ++
		}
		if a.hash("group", name) == a.hash("grou", "p"+name) {
			t.Errorf("%q is taken for another name", name)
		}
	}
	if differ == 0 {
		t.Error("the seed does not matter")
	}
}
