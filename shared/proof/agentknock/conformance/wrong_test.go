package conformance

import (
	"testing"

	peer "blindpost/shared/client/agentknock"
)

// What a wake may look like, and what not.
func TestWakesAreKnown(t *testing.T) {
	for payload, ok := range map[string]bool{
		`{"data":{"type":"wake"}}`:                                        true,
		`{"message":{"token":"x","data":{"type":"wake"}}}`:                true,
		`{"GCM":"{\"data\":{\"type\":\"wake\"}}"}`:                        true,
		`{"fcmV1Message":{"message":{"data":{"type":"wake"}}}}`:           true,
		`{"data":{"type":"wake","from":"x"}}`:                             false,
		`{"data":{"type":"wake"},"notification":{"title":"hello"}}`:       false,
		`{"data":{"type":"message"}}`:                                     false,
		`{"data":{"type":"wake"},"more":{"data":{"client_id":"secret"}}}`: false,
		`{}`: false, ``: false, `"wake"`: false,
	} {
		if isWake([]byte(payload)) != ok {
			t.Errorf("%s", payload)
		}
	}
}

// The stories' wrong ids are wrong, and their malformed frames are no frames that a
// relay could take for good by its specification.
func TestWrongIsWrong(t *testing.T) {
	for what, id := range wrongIDs() {
		if peer.IsID(id) {
			t.Errorf("%s is an id", what)
		}
	}
	for what, text := range malformed(newID(), newID()) {
		for _, role := range []peer.Role{peer.ClientRole, peer.DeviceRole} {
			if f, err := peer.Decode([]byte(text), role); err == nil {
				t.Errorf("%s is a frame to a %s: %s", what, role, f)
			}
		}
	}
}

// Every story has a name of its own.
func TestStoriesHaveNames(t *testing.T) {
	seen := make(map[string]bool)
	for _, s := range stories() {
		if s.Name == "" || s.Tell == nil || seen[s.Name] {
			t.Errorf("story %q", s.Name)
		}
		seen[s.Name] = true
	}
	if len(seen) < 100 {
		t.Errorf("there are %d stories", len(seen))
	}
}
