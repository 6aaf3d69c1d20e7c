package conformance

import (
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"strings"
	"testing"

	"blindpost/shared/dialect/agentknock/peer"
)

// A leak is found in whatever form it turns up, and nothing else is.
func TestSecretsAreFound(t *testing.T) {
	s := newSecrets()
	token := peer.NewToken()
	s.addToken("a client token", token)
	raw, err := base64.RawURLEncoding.DecodeString(token)
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"as it is":       `{"msg":"let in","token":"` + token + `"}`,
		"its bytes":      "x" + string(raw) + "y",
		"hex":            "token=" + hex.EncodeToString(raw),
		"HEX":            strings.ToUpper(hex.EncodeToString(raw)),
		"hex of text":    hex.EncodeToString([]byte(token)),
		"%v":             fmt.Sprint(raw),
		"%q":             fmt.Sprintf("%q", raw),
		"base64 of text": base64.StdEncoding.EncodeToString([]byte("x" + token)),
		"base64, after":  base64.StdEncoding.EncodeToString(append([]byte("ab"), raw...)),
	} {
		if s.in([]byte(text)) != "a client token" {
			t.Errorf("%s: not found", name)
		}
	}
	for _, text := range []string{"", token[:20], peer.NewToken(), "nothing at all, in words that are long enough"} {
		if s.in([]byte(text)) != "" {
			t.Errorf("found in %q", text)
		}
	}
	if s.find([]byte(token), "a payload") != "" || s.find([]byte(token), "a client") == "" {
		t.Error("kinds are mixed up")
	}
}

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
		if s.name == "" || s.tell == nil || seen[s.name] {
			t.Errorf("story %q", s.name)
		}
		seen[s.name] = true
	}
	if len(seen) < 100 {
		t.Errorf("there are %d stories", len(seen))
	}
}
