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
	"slices"
	"testing"
	"time"

	"blindpost/shared/proof/suite"
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
	// Repeats says that a peer may be told again what it was told before: handlers of one
	// boat run in several processes, and when the answer to a post does not come in time,
	// nobody knows whether it has arrived. The peers then read over what is no news.
	Repeats bool
	// Lacks names the stories that need what the target has not. They have to be exactly
	// those: see package suite.
	Lacks []string
	// Skip names further stories that are not to run, with the reason.
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
type story = suite.Story[Target, Settings, *relay]

// roomy are the settings of the relay that most tests share: all of them come
// from one address.
var roomy = Settings{Plenty: true}

// brisk makes the times of the liveness sweep short enough to wait for.
var brisk = Settings{Plenty: true, PingInterval: 200 * time.Millisecond, IdleTimeout: 3 * time.Second}

// Run runs the suite. open starts a relay with empty data and stops it with t.Cleanup.
func Run(t *testing.T, open func(t *testing.T, o Settings) Target) {
	t.Helper()
	suite.Suite[Target, Settings, *relay]{
		Stories: stories(), Shared: roomy, Enter: newRelay,
		Omits: func(target Target) suite.Omissions { return suite.Omissions{Lacks: target.Lacks, Skips: target.Skip} },
	}.Run(t, open)
}

// stories is the table of contents.
func stories() []story {
	return slices.Concat(
		section2, section3Hello, section3Table, section3Viewers, section3Tags, section3Status,
		section4, section4Commands, section4Slow, section5, section6, takeovers, neighbours, vanishing, restarts,
	)
}

// What a story may need.
var (
	pings     = suite.Need("pings", func(t Target) bool { return t.Pings })
	droppable = suite.Need("a way to lose a snapshot", func(t Target) bool { return t.Droppable })
	restart   = suite.Need("a way to restart the relay", func(t Target) bool { return t.Restart != nil })
	mute      = suite.Need("a way to end a connection without telling", func(t Target) bool { return t.Mute != nil })
	kill      = suite.Need("a way to kill the relay", func(t Target) bool { return t.Kill != nil })
)
