package sim

import (
	"strings"
	"testing"
)

// kept are seeds that have failed once, each with what it has found. What they do
// changes with the relay, so each bug has a test of its own too.
var kept = []uint64{
	200291,        // a connection that was found gone has frames left
	77007806,      // a late word about presence, whose speaker dies
	426017348,     // a message that was stored is refused when it comes again
	1796089436728, // a message that has expired when it is confirmed, until the clock is set back
	1796083173638, // in one process a job that runs twice tells the others twice
}

func TestKeptSeeds(t *testing.T) {
	for _, seed := range kept {
		if lines, f := Replay(t, seed, Options{Store: Mem()}); f != nil {
			t.Errorf("%s\n%v", strings.Join(lines, "\n"), f)
		}
	}
}
