// Package conformance is the test suite of the Aelos relay protocol, seen from
// outside: boats and viewers on real WebSockets, to a relay that is running
// somewhere and of which nothing is known but its URL and the secret of its
// tokens. So the one binary, the same relay inside the test process, and the AWS
// functions behind another front all answer to the same suite.
//
// It is written from the specification (section numbers in the names of the tests
// are those of aelos-relay-protocol.md). Where the text leaves something open, the
// tests leave it open too, and say so.
//
// Absence is never tested by sleeping. A peer that must not have been sent
// anything sends a ping, and the pong has to be the next frame it gets
// ([peer.wantNothing]). The same round trip tells that what the peer sent before
// was handled.
package conformance

import (
	"crypto/tls"
	"testing"
	"time"
)

// Settings are the limits that a test needs to be different from the defaults.
// The zero value of a field stands for the default.
type Settings struct {
	// Plenty lifts the limits that protect a relay from its peers and of which
	// the specification says nothing: connections and frames per minute.
	Plenty       bool
	PingInterval time.Duration // default 30 s
	IdleTimeout  time.Duration // default 120 s
}

// Target is a running relay.
type Target struct {
	// URL is the endpoint, wss://host:port/v1/aelos.
	URL string
	// TLS trusts the relay's certificate. It is cloned before use.
	TLS *tls.Config
	// Secret signs tokens.
	Secret []byte

	// Base64 says that the front carries no binary messages: payloads are base64
	// in text messages.
	Base64 bool
	// Pings says that the front sends pings of its own accord, and closes who
	// does not answer.
	Pings bool
	// CloseCodes says that the front carries close codes.
	CloseCodes bool
	// Droppable says that the front can lose a snapshot for a viewer that reads
	// slowly, and keep the viewer.
	Droppable bool
	// RepeatsStatus says that the same boat-status may be told twice in a row:
	// handlers of one boat run in several processes. The peers then read over what
	// is no news.
	RepeatsStatus bool
	// Skip names stories that do not hold for the target, with the reason.
	Skip map[string]string

	// Restart, if not nil, stops the relay and starts it again over the same
	// data and at the same URL, and returns when it serves.
	Restart func(t *testing.T)
	// Kill is Restart for a relay that gets no chance to say goodbye.
	Kill func(t *testing.T)
	// Mute, if not nil, keeps the front from telling the relay that a connection has
	// ended, from now on.
	Mute func()
	// Log, if not nil, returns what the relay has logged so far. It is searched
	// for tokens and payload when the suite has finished.
	Log func() []byte
}

// story is one test.
type story struct {
	name string
	tell func(t *testing.T, r *relay)
	// own are the settings of a relay for this test alone; nil shares one.
	own *Settings
	// needs returns what the target lacks for this story, or "".
	needs func(Target) string
}

// roomy are the settings of the relay that most tests share: all of them come
// from one address.
var roomy = Settings{Plenty: true}

// brisk makes the times of the liveness sweep short enough to wait for.
var brisk = Settings{Plenty: true, PingInterval: 200 * time.Millisecond, IdleTimeout: 3 * time.Second}

// Run runs the suite. open starts a relay with empty data and stops it with
// t.Cleanup.
func Run(t *testing.T, open func(t *testing.T, o Settings) Target) {
	shared := newRelay(open(t, roomy))
	if shared.Log != nil {
		t.Cleanup(func() { shared.wantSilentLog(t) })
	}
	for _, s := range stories() {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			r := shared
			if why, ok := r.Skip[s.name]; ok {
				t.Skip(why)
			}
			if s.needs != nil {
				if lack := s.needs(r.Target); lack != "" {
					t.Skip("this front lacks: " + lack)
				}
			}
			if s.own != nil {
				r = newRelay(open(t, *s.own))
				if r.Log != nil {
					t.Cleanup(func() { r.wantSilentLog(t) })
				}
			}
			s.tell(t, r)
		})
	}
}

// stories is the table of contents.
func stories() []story {
	var all []story
	for _, part := range [][]story{
		section2, section3Hello, section3Table, section3Viewers, section3Tags, section3Status,
		section4, section4Commands, section4Slow, section5, section6, takeovers, neighbours, vanishing, restarts,
	} {
		all = append(all, part...)
	}
	return all
}

// What a story may need.

func pings(t Target) string {
	if !t.Pings {
		return "pings"
	}
	return ""
}

func droppable(t Target) string {
	if !t.Droppable {
		return "a way to lose a snapshot"
	}
	return ""
}

func restart(t Target) string {
	if t.Restart == nil {
		return "a way to restart the relay"
	}
	return ""
}

func mute(t Target) string {
	if t.Mute == nil {
		return "a way to end a connection without telling"
	}
	return ""
}

func kill(t Target) string {
	if t.Kill == nil {
		return "a way to kill the relay"
	}
	return ""
}
