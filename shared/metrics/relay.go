package metrics

import (
	"errors"
	"time"

	"blindpost/shared/push"
	"blindpost/shared/relay"
)

// Relay is the observer of package relay.
type Relay struct{ m *Metrics }

var _ relay.Observer = Relay{}

// Relay returns the observer for a relay.
func (m *Metrics) Relay() Relay { return Relay{m} }

// Refused counts an upgrade that was refused.
func (r Relay) Refused(dialect, reason string) { r.m.refused.two(dialect, reason).Inc() }

// Authenticated counts an attempt to authenticate; result is "ok" or the error code.
func (r Relay) Authenticated(dialect, role, result string) {
	r.m.authenticated.three(dialect, role, result).Inc()
}

// Joined counts a connection that belongs to a member.
func (r Relay) Joined(dialect, role string) { r.m.connections.two(dialect, role).Inc() }

// Left reverses a Joined.
func (r Relay) Left(dialect, role string) { r.m.connections.two(dialect, role).Dec() }

// Frame notes how long the handling of a frame took.
func (r Relay) Frame(dialect, kind string, took time.Duration) {
	r.m.frameSeconds.two(dialect, kind).Observe(took.Seconds())
}

// Message counts a message by its outcome.
func (r Relay) Message(class relay.Class, result relay.Result) {
	r.m.messages.two(string(class), string(result)).Inc()
}

// Confirmed counts messages that were confirmed and left a mailbox.
func (r Relay) Confirmed(n int) {
	r.m.confirmed.Add(float64(max(0, n)))
	r.m.mailbox.Sub(float64(n))
}

// Dropped counts messages that left a mailbox undelivered or were not stored.
func (r Relay) Dropped(class relay.Class, reason string, n int) {
	r.m.dropped.two(string(class), reason).Add(float64(max(0, n)))
	if class == relay.ClassStored && !notStored(reason) {
		r.m.mailbox.Sub(float64(n))
	}
}

// notStored reports whether the rule drops messages before they are stored.
func notStored(reason string) bool {
	switch reason {
	case "rate_limited", "too_large", "queue_full", "not_found", "stale_sender":
		return true
	}
	return false
}

// Depth notes that a message was added to a mailbox, which now holds n messages.
func (r Relay) Depth(n int64) {
	r.m.mailbox.Inc()
	r.m.mailboxDepth.Observe(float64(n))
}

// MailboxTotal sets the number of messages in all mailboxes, as found at start.
func (m *Metrics) MailboxTotal(n int) { m.mailbox.Set(float64(n)) }

// Pushed counts an attempt to push.
func (r Relay) Pushed(n push.Notification, err error) {
	result := "failed"
	switch {
	case err == nil:
		result = "ok"
	case errors.Is(err, push.ErrTokenGone):
		result = "token_gone"
	}
	r.m.pushes.three(n.Platform.String(), n.Kind.String(), result).Inc()
}
