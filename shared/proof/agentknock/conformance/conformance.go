// Package conformance is the test suite of Agentknock v1, seen from outside: it
// speaks JSON over TLS WebSockets, and HTTP, to a relay that is running somewhere
// and knows nothing of what is behind the URL. So the one binary, the same relay
// inside the test process, and the AWS functions behind another front all answer to
// the same suite.
//
// It is written from the two pages of the specification: each row of their tables
// has a story, named Client... after agentknock-client-relay-protocol.md or
// Device... after agentknock-device-relay.md. Where the text leaves something open,
// the stories leave it open too, and say so. Its peers (package peer) check every
// frame that comes against what the relay may send to that role, whatever the story
// is about.
//
// Absence is never tested by sleeping. A peer that must not have been sent anything
// resumes an exchange that has never been, and the answer, inactive, has to be the
// next frame it gets ([end.settle]). Repeated frames are normal in this protocol, so
// one that a story has seen on a connection is read over when it comes again.
package conformance

import (
	"crypto/tls"
	"slices"
	"testing"
	"time"

	"blindpost/shared/proof/suite"
)

// Settings are the limits that a story needs to be different from the defaults. The
// zero value of a field stands for that default. Limits that stand beside these, for
// all clients of a device together, have to follow them.
type Settings struct {
	ConnectionsPerIP int // new ones per minute
	// FramesPerMinute are those of one connection.
	FramesPerMinute int
	// NewExchanges is how many a client may begin per minute: RATE_LIMITED.
	NewExchanges int
	// OpenExchanges is how many a client may have: CAPACITY_EXCEEDED.
	OpenExchanges int
	// WakeInterval is the shortest time between two pushes to one device.
	WakeInterval time.Duration
}

// Push is one push that the relay handed to a provider.
type Push struct {
	Token   string
	Android bool
	Payload []byte
}

// Target is a running relay.
type Target struct {
	// URL is wss://host:port, HTTP https://host:port if the endpoints are elsewhere.
	URL, HTTP string
	// Locate, if set, is the URL of a WebSocket path.
	Locate func(path string) string
	// TLS trusts the relay's certificate.
	TLS *tls.Config

	// CloseCodes says that the front carries close codes.
	CloseCodes bool
	// RefusalBodies says that a refused upgrade has the body that the relay gave it.
	RefusalBodies bool
	// BinaryFrames says that the front carries binary messages as such.
	BinaryFrames bool
	// MaxMessage is the size of the largest message in bytes that the front carries; 0
	// for no limit below that of the specification.
	MaxMessage int
	// KnowsMethods says that what is no POST reaches the endpoints.
	KnowsMethods bool
	// Processes says that the frames of different connections are handled by different
	// processes: what one of them was about to send may come after another one's word
	// that ends it, as the specification allows.
	Processes bool
	// Lacks names the stories that need what the target has not. They have to be exactly
	// those: see package suite.
	Lacks []string
	// Skip names further stories that are not to run, with the reason.
	Skip map[string]string

	// Restart, if not nil, stops the relay and starts it again over the same data and
	// at the same URL, and returns when it serves.
	Restart func(t *testing.T)
	// Kill is Restart for a relay that gets no chance to say goodbye: kill -9.
	Kill func(t *testing.T)
	// Pushes, if not nil, returns what has been pushed so far, oldest first.
	Pushes func() []Push
	// Log, if not nil, returns what the relay has logged so far. It is searched for
	// tokens and payloads when the suite has finished.
	Log func() []byte
	// Stored, if not nil, returns all that the relay has in its files.
	Stored func(t *testing.T) []byte
}

// plenty stands for a limit that a story is not about and must not meet.
const plenty = 1_000_000

// roomy are the settings of a relay that many stories share.
var roomy = Settings{
	ConnectionsPerIP: plenty, FramesPerMinute: plenty, NewExchanges: plenty, OpenExchanges: plenty, WakeInterval: time.Millisecond,
}

// story is one test.
type story = suite.Story[Target, Settings, *relay]

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
		clientIdentifiers, clientUpgrades, clientPairing, clientKinds, clientFrames, clientExchanges, clientStates, clientRecovery,
		clientErrors, clientClosures,
		deviceEndpoints, deviceHTTP, deviceFrames, deviceConnects, deviceClients, devicePushes,
		payloads, hostile, races, limits, restarts,
	)
}

// What a story may need.
var (
	restart = suite.Need("a way to restart the relay", func(t Target) bool { return t.Restart != nil })
	kill    = suite.Need("a way to kill the relay", func(t Target) bool { return t.Kill != nil })
	pushes  = suite.Need("a view of the pushes", func(t Target) bool { return t.Pushes != nil })
	stored  = suite.Need("a view of the files", func(t Target) bool { return t.Stored != nil })
	methods = suite.Need("methods other than POST on the endpoints", func(t Target) bool { return t.KnowsMethods })
	binary  = suite.Need("binary messages", func(t Target) bool { return t.BinaryFrames })
)

func carries(size int) func(Target) string {
	return suite.Need("messages of that size", func(t Target) bool { return t.MaxMessage == 0 || t.MaxMessage >= size })
}
