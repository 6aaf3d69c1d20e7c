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
	"testing"
	"time"
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
	// Skip names stories that do not hold for the target, with the reason.
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
type story struct {
	name string
	tell func(t *testing.T, r *relay)
	// own are the settings of a relay for this test alone; nil shares one.
	own *Settings
	// needs returns what the target lacks for this story, or "".
	needs func(Target) string
	// alone keeps it from running beside others.
	alone bool
}

// Run runs the suite. It opens a relay for the tests that share one, and more
// of them, one for each test, where limits have to differ or the relay has to
// be stopped. open starts a relay with empty data and stops it with t.Cleanup;
// if it cannot have the settings, it skips t.
func Run(t *testing.T, open func(t *testing.T, o Settings) Target) {
	shared := newRelay(open(t, roomy))
	if shared.Log != nil {
		t.Cleanup(func() { shared.wantSilentLog(t) })
	}
	for _, s := range stories() {
		t.Run(s.name, func(t *testing.T) {
			if !s.alone {
				t.Parallel()
			}
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
		section2, section3, section4, section4Roles, section4Forged, section5,
		section6, section6Mailbox, section6Live, section6Push, section7, section8, section9,
		section10, section11, section12, fieldNotes, hostile, properties, restarts,
	} {
		all = append(all, part...)
	}
	return all
}

// What a story may need.

func delivery(t Target) string {
	if !t.KnowsDelivery {
		return "knowledge of delivery"
	}
	return ""
}

func pings(t Target) string {
	if !t.Pings {
		return "pings"
	}
	return ""
}

func addresses(t Target) string {
	if !t.OwnAddresses {
		return "more than one source address"
	}
	return ""
}

func pushes(t Target) string {
	if t.Pushes == nil {
		return "a view of the pushes"
	}
	return ""
}

func restart(t Target) string {
	if t.Restart == nil {
		return "a way to restart the relay"
	}
	return ""
}

func kill(t Target) string {
	if t.Kill == nil {
		return "a way to kill the relay"
	}
	return ""
}

func plainHTTP(t Target) string {
	if t.NoHTTP {
		return "plain HTTP"
	}
	return ""
}

// skipLarger skips a test that sends a message which the front closes the
// connection for, before the relay sees it.
func (r *relay) skipLarger(t *testing.T, size int) {
	t.Helper()
	if r.MaxMessage != 0 && size > r.MaxMessage {
		t.Skip("this front lacks: messages of that size")
	}
}

func carries(size int) func(Target) string {
	return func(t Target) string {
		if t.MaxMessage != 0 && t.MaxMessage < size {
			return "messages of that size"
		}
		return ""
	}
}
