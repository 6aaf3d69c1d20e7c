// Package conformance is the test suite of the Skald relay protocol v2, seen
// from outside: it speaks protobuf frames over TLS WebSockets to a relay that
// is running somewhere and knows nothing of what is behind the URL. So the one
// binary, the same relay inside the test process, and the AWS functions behind
// another front all answer to the same suite.
//
// It is written from the specification (section numbers in the names of the
// tests are those of skald-relay-protocol.md), from the notes on what clients
// in the field rely on (FieldNotes), and from the delivery properties of the
// design (Property). Where the text leaves something open, the tests leave it
// open too, and say so.
//
// Absence is never tested by sleeping. A peer that must not have been sent
// anything asks for the presence list, and the answer has to be the next frame
// it gets ([peer.wantNothing]). The same round trip tells a sender that what it
// sent before was handled, which for a stored message means: is stored.
package conformance

import (
	"crypto/tls"
	"slices"
	"testing"
	"time"

	"blindpost/shared/proof/suite"
)

// Settings are the limits of section 10 that a test needs to be different from
// the defaults of the specification. The zero value of a field stands for that
// default.
type Settings struct {
	MessagesPerMinute int           // per connection; default 60
	ConnectionsPerIP  int           // new ones per minute; default 30
	MailboxCap        int           // stored messages per recipient; default 200
	MaxFrame          int           // bytes; default 64 KiB
	MaxLiveFrame      int           // bytes; default 512 KiB
	ChallengeTimeout  time.Duration // default 30 s
	PingInterval      time.Duration // default 30 s
	IdleTimeout       time.Duration // default 120 s
	QueueTTL          time.Duration // default 7 days
	NamespaceTTL      time.Duration // default 7 days
}

// Push is one push that the relay handed to a provider.
type Push struct {
	Token   string
	Android bool
	Payload []byte
}

// Target is a running relay.
type Target struct {
	// URL is the endpoint, wss://host:port/v1/ws.
	URL string
	// TLS trusts the relay's certificate. It is cloned before use.
	TLS *tls.Config

	// KnowsDelivery says that the front counts a message as delivered only when
	// the peer has answered a ping sent after it. Without it, what the relay
	// has posted to a connection that then vanishes may be lost.
	KnowsDelivery bool
	// Pings says that the front sends pings of its own accord (section 8).
	Pings bool
	// CloseCodes says that the front carries close codes.
	CloseCodes bool
	// MaxMessage is the size of the largest message in bytes that the front
	// carries; 0 for no limit below those of the specification.
	MaxMessage int
	// MaxIdle is how many connections that do nothing the front is to be
	// bothered with; 0 for 1,000.
	MaxIdle int
	// NoHTTP says that the front serves nothing but WebSockets: no health checks.
	NoHTTP bool
	// Lacks names the stories that need what the target has not. They have to be exactly
	// those: see package suite.
	Lacks []string
	// Skip names further stories that are not to run, with the reason.
	Skip map[string]string
	// RepeatsPresence says that the same presence may be told twice in a row,
	// which section 7 allows: handlers of one member run in several processes. The
	// peers of the suite then read over what is no news.
	RepeatsPresence bool
	// OwnAddresses says that the relay sees the suite's own source address, so
	// that 127.0.0.1 and 127.0.0.2 are two clients to it.
	OwnAddresses bool

	// Restart, if not nil, stops the relay and starts it again over the same
	// data and at the same URL, and returns when it serves.
	Restart func(t *testing.T)
	// Kill is Restart for a relay that gets no chance to say goodbye: kill -9.
	Kill func(t *testing.T)
	// Pushes, if not nil, returns what has been pushed so far, oldest first.
	Pushes func() []Push
	// Log, if not nil, returns what the relay has logged so far. It is searched
	// for keys, tokens and payload when the suite has finished.
	Log func() []byte
}

// plenty stands for a limit that a test is not about and must not meet.
const plenty = 1_000_000

// roomy are the settings of a relay that many tests share: all of them come
// from one address, and the barrier costs messages.
var roomy = Settings{MessagesPerMinute: plenty, ConnectionsPerIP: plenty}

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
		section2, section3, section4, section4Roles, section4Forged, section5,
		section6, section6Mailbox, section6Live, section6Push, section7, section8, section9,
		section10, section11, section12, fieldNotes, hostile, properties, restarts,
	)
}

// What a story may need.
var (
	delivery  = suite.Need("knowledge of delivery", func(t Target) bool { return t.KnowsDelivery })
	pings     = suite.Need("pings", func(t Target) bool { return t.Pings })
	addresses = suite.Need("more than one source address", func(t Target) bool { return t.OwnAddresses })
	pushes    = suite.Need("a view of the pushes", func(t Target) bool { return t.Pushes != nil })
	restart   = suite.Need("a way to restart the relay", func(t Target) bool { return t.Restart != nil })
	kill      = suite.Need("a way to kill the relay", func(t Target) bool { return t.Kill != nil })
	plainHTTP = suite.Need("plain HTTP", func(t Target) bool { return !t.NoHTTP })
)

func carries(size int) func(Target) string {
	return suite.Need("messages of that size", func(t Target) bool { return t.MaxMessage == 0 || t.MaxMessage >= size })
}
