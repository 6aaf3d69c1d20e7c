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
func (r Relay) Refused(dialect, reason string) { r.m.ConnectRefused(dialect, reason) }

// Authenticated counts an attempt to authenticate.
func (r Relay) Authenticated(dialect, role, result string) { r.m.Authenticated(dialect, role, result) }

// Joined counts a connection that belongs to a member.
func (r Relay) Joined(dialect, role string) { r.m.ConnectionJoined(dialect, role) }

// Left reverses a Joined.
func (r Relay) Left(dialect, role string) { r.m.ConnectionLeft(dialect, role) }

// Frame notes the handling of a frame.
func (r Relay) Frame(dialect, kind string, took time.Duration) { r.m.FrameHandled(dialect, kind, took) }

// Message counts a message that was sent.
func (r Relay) Message(class relay.Class, result relay.Result) {
	r.m.MessageSent(string(class), string(result))
}

// Confirmed counts messages that were confirmed and left a mailbox.
func (r Relay) Confirmed(n int) {
	r.m.MessagesConfirmed(n)
	r.m.MailboxRemoved(n)
}

// Dropped counts messages that left a mailbox undelivered or were not stored.
func (r Relay) Dropped(class relay.Class, reason string, n int) {
	r.m.MessagesDropped(string(class), reason, n)
	if class == relay.ClassStored && !notStored(reason) {
		r.m.MailboxRemoved(n)
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

// Depth notes that a message was added to a mailbox.
func (r Relay) Depth(n int64) { r.m.MailboxAdded(n) }

// Pushed counts an attempt to push.
func (r Relay) Pushed(n push.Notification, err error) {
	result := "failed"
	switch {
	case err == nil:
		result = "ok"
	case errors.Is(err, push.ErrTokenGone):
		result = "token_gone"
	}
	r.m.PushSent(n.Platform.String(), n.Kind.String(), result)
}
