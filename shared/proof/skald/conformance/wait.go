package conformance

import (
	"blindpost/shared/proof/suite"
	"testing"
	"time"
)

// grain is how much later than announced something may expire, so that a test
// may rely on it: times of the protocol are whole seconds, and a relay may keep
// them as such.
const grain = 1100 * time.Millisecond

// eventually waits for something that no peer is told about.
func eventually(t *testing.T, what string, happened func() bool) {
	t.Helper()
	suite.Eventually(t, patience, what, happened)
}

// pushesTo returns the pushes to a token so far.
func (r *relay) pushesTo(token string) []Push {
	var got []Push
	for _, push := range r.Pushes() {
		if push.Token == token {
			got = append(got, push)
		}
	}
	return got
}
