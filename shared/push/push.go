// Package push wakes sleeping phones. It builds the payloads that the phone apps parse,
// one file per dialect, and declares the Sender that sends them to Apple and Google.
//
// A push is a hint and never the delivery itself: a message that the phone must not miss
// is in its mailbox, so a lost push only costs time. The content of a push is the
// ciphertext that the phone would get from its mailbox.
//
// Tokens and payloads never appear in a log or an error. A Notification prints
// and logs itself without them.
package push

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"
)

// MaxPayload is the largest finished payload in bytes that both providers accept.
const MaxPayload = 4096

// ErrTokenGone says that the provider no longer knows the token: the app was removed from
// the phone or has a new token. It is permanent, and the relay deletes the token. Every
// other error of a Sender may be retried.
var ErrTokenGone = errors.New("push token is gone")

// Platform is the kind of phone, and with it the provider.
type Platform uint8

// The platforms.
const (
	IOS     Platform = iota + 1 // APNs
	Android                     // FCM
)

// String returns the name for logs and metrics.
func (p Platform) String() string {
	switch p {
	case IOS:
		return "ios"
	case Android:
		return "android"
	}
	return "unknown"
}

// Kind is the purpose of a push.
type Kind uint8

// The kinds.
const (
	// Content carries the message itself, encrypted end to end.
	Content Kind = iota + 1
	// Wake only tells the app to connect.
	Wake
)

// String returns the name for logs and metrics.
func (k Kind) String() string {
	switch k {
	case Content:
		return "content"
	case Wake:
		return "wake"
	}
	return "unknown"
}

// Notification is one push.
type Notification struct {
	// Token is the phone's address at its provider. It is never empty: a phone
	// without a token gets no push.
	Token    string
	Platform Platform
	// Payload is the finished payload, at most MaxPayload bytes: for IOS the JSON body for
	// APNs, for Android the JSON object for the key GCM of SNS.
	Payload []byte
	Kind    Kind
	// TTL is how long the provider keeps the push for a phone that it cannot reach; 0
	// means the provider's default.
	TTL time.Duration
}

// Sender sends notifications to the providers. It is safe for concurrent use.
type Sender interface {
	// Send sends one notification. An error that matches ErrTokenGone is permanent for the
	// token; any other error is transient. No error contains the token or the payload.
	Send(ctx context.Context, n Notification) error
}

// String describes n without its token and payload.
func (n Notification) String() string {
	return fmt.Sprintf("%s push for %s", n.Kind, n.Platform)
}

// GoString is String, so that %#v does not print the token and payload either.
func (n Notification) GoString() string { return n.String() }

// LogValue describes n without its token and payload.
func (n Notification) LogValue() slog.Value {
	return slog.GroupValue(slog.String("platform", n.Platform.String()), slog.String("kind", n.Kind.String()))
}
