package stories

import (
	"testing"

	"blindpost/shared/proof/bubble"
	"blindpost/shared/standalone"
)

// world is a relay in a bubble, with what its peers of Agentknock can do.
type world struct{ *bubble.World }

func inBubble(t *testing.T, story func(t *testing.T, w *world), change ...func(*standalone.Config)) {
	t.Helper()
	bubble.In(t, func(t *testing.T, w *bubble.World) { story(t, &world{w}) }, change...)
}
