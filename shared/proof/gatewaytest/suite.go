// Package gatewaytest is the conformance suite of the gateway contract. Every
// front passes it: Run holds a front against each sentence of package gateway,
// from the outside, with a WebSocket client that is not the front's own library.
//
// What a front cannot do by its nature is said in its [Harness]; the rest of the
// contract is tested all the same.
package gatewaytest

import (
	"net/http"
	"testing"

	"github.com/coder/websocket"

	"blindpost/shared/gateway"
)

// Harness is a running front under test.
type Harness struct {
	Front gateway.Front
	// URL is where to dial, ws:// or wss://, without a path.
	URL string
	// Client and Header are used for dialing.
	Client *http.Client
	Header http.Header

	// Paths: the path of the request reaches Connect.
	Paths bool
	// RefusalBody: header and body of a refusal reach the client.
	RefusalBody bool
	// CloseCodes: code and reason reach the peer from Close, and the handler from
	// the peer.
	CloseCodes bool
	// KnowsEnds: the front sees each end, so that Disconnect always comes and Gone
	// becomes true.
	KnowsEnds bool
	// ClosesOnError: an error of the handler closes the connection (a queueing
	// front delivers the event again instead).
	ClosesOnError bool
	// ReadLimits: the front enforces read limits and reports Oversize.
	ReadLimits bool
	// Confirms: Post answers Pending and marks are confirmed.
	Confirms bool
	// Base64: binary messages travel as base64 text.
	Base64 bool
	// FirstByJob: a job says the first words. They come soon and in their order,
	// but what others post meanwhile may come before.
	FirstByJob bool
	// MaxMessage, if not 0, is the longest message in bytes that Post takes; one
	// more is ErrTooLarge.
	MaxMessage int
}

// Open starts a front that calls h. What it starts must end with the test.
type Open func(t *testing.T, h gateway.Handler) Harness

// Run runs the suite. Each test opens a front of its own.
func Run(t *testing.T, open Open) {
	for _, c := range []struct {
		name string
		run  func(*suite)
	}{
		{"connect says who comes", testConnectEvent},
		{"ids are unique", testUniqueIDs},
		{"refusal carries its status", testRefusal},
		{"failed connect is refused", testConnectError},
		{"nothing can be posted before connect has returned", testPostBeforeConnectReturned},
		{"the first post comes after the upgrade", testFirstPost},
		{"the first words come first", testFirstWords},
		{"frames come in order", testFrameOrder},
		{"frames come unchanged", testFrameContent},
		{"one connection one event at a time, connections in parallel", testParallel},
		{"disconnect comes once when the peer closes", testPeerCloses},
		{"disconnect comes once when the peer vanishes", testPeerVanishes},
		{"disconnect waits for the last frame", testDisconnectLast},
		{"failed frame closes", testFrameError},
		{"posts come in order", testPostOrder},
		{"posts come unchanged", testPostContent},
		{"post copies", testPostCopies},
		{"post to oneself while handling", testPostFromHandler},
		{"close sends what was posted, then the code", testCloseFlushes},
		{"close makes everything answer gone", testAfterClose},
		{"gone waits for disconnect", testGoneWaitsForDisconnect},
		{"close does not wait for a handler", testCloseWhileHandling},
		{"close from a handler", testCloseFromHandler},
		{"posting to a peer that has gone ends in gone", testPostToTheGone},
		{"stat", testStat},
		{"too large to post", testTooLarge},
		{"read limit", testReadLimit},
		{"read limit of the front", testDefaultReadLimit},
		{"read limit changes", testReadLimitChanges},
		{"outcome of a post", testOutcome},
		{"marks are confirmed by the pong", testConfirmed},
		{"marks are confirmed in order, each once", testConfirmedOrder},
		{"marks of a lost connection stay unconfirmed", testUnconfirmed},
		{"confirmation is an event like a frame", testConfirmedSerial},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := &suite{T: t, rec: NewRecorder()}
			s.Harness = open(t, s.rec)
			t.Cleanup(func() { s.rec.Check(t) })
			c.run(s)
		})
	}
}

// suite is one test of the suite.
type suite struct {
	*testing.T
	Harness
	rec *Recorder
}

// needs skips a test that this front cannot pass by its nature.
func (s *suite) needs(capability bool) {
	s.Helper()
	if !capability {
		s.Skip("this front cannot do that")
	}
}

func (s *suite) dialOptions() *websocket.DialOptions {
	return &websocket.DialOptions{HTTPClient: s.Client, HTTPHeader: s.Header.Clone()}
}
