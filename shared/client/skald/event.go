package skald

import (
	"context"
	"fmt"
	"log/slog"
	"time"
)

// Event is an event of an [Agent] or [Client]: one of the types below.
type Event interface{ event() }

// Connected says that the relay has admitted us. Stored messages follow.
type Connected struct {
	Namespace NamespaceID
}

// Disconnected says that a connection, or an attempt to open one, has ended.
type Disconnected struct {
	// Err is why; nil when Run was told to stop.
	Err error
	// WasConnected is true for a lost connection, false for a failed attempt.
	WasConnected bool
	// Final says that Run ends. Otherwise it retries after RetryIn.
	Final   bool
	RetryIn time.Duration
}

// Message is a decrypted message from an authorised peer.
type Message struct {
	From    PublicKey
	Payload Payload
	// Live is how it was sent.
	Live    bool
	Counter uint64
}

// LogValue hides the content.
func (m Message) LogValue() slog.Value {
	return slog.GroupValue(slog.Any("from", m.From), slog.Any("payload", m.Payload), slog.Bool("live", m.Live))
}

// SealedMessage is a message from a member with whom there is no session: the
// protocol defines keys between agent and client only, but relays between all
// members of a namespace.
type SealedMessage struct {
	From       PublicKey
	Nonce      []byte
	Ciphertext []byte
	Live       bool
}

// Format implements fmt.Formatter, so that no verb shows the content.
func (m SealedMessage) Format(f fmt.State, _ rune) {
	_, _ = fmt.Fprintf(f, "%d sealed bytes from %v", len(m.Ciphertext), m.From)
}

// MarshalText hides the content from JSON logs.
func (m SealedMessage) MarshalText() ([]byte, error) { return []byte(fmt.Sprint(m)), nil }

// LogValue hides the content.
func (m SealedMessage) LogValue() slog.Value {
	return slog.GroupValue(slog.Any("from", m.From), slog.Int("bytes", len(m.Ciphertext)), slog.Bool("live", m.Live))
}

// Dropped says that a received message was refused.
type Dropped struct {
	From PublicKey
	// Err is one of [ErrReplay], [ErrOpen], [ErrFraming], [ErrPayload] and
	// [ErrUnknownPeer] (a peer that is not or no longer authorised).
	Err error
}

// PeerOffline says that a live message to this peer was not delivered. The protocol does
// not say which one. The sender should wait for a [PresenceChange] or the next [Connected]
// before it sends live messages again.
type PeerOffline struct {
	Peer PublicKey
}

// PresenceChange says that another member went online or offline. An offline event may be
// late, and events may repeat.
type PresenceChange struct {
	Peer   PublicKey
	Online bool
}

// PairingRequested says that a client has paired and needs a decision, see [Policy].
type PairingRequested struct {
	PairingRequest
}

// Declared says that the relay has accepted the agent's list of authorised clients.
type Declared struct {
	// Clients is how many the agent has declared.
	Clients int
	// Known is how many of them the relay knows. If it is fewer, the others must pair
	// again.
	Known int
}

// Fault is an error that belongs to no single call: a [RelayError] for an earlier frame, or
// an invalid frame of the relay.
type Fault struct {
	Err error
}

func (Connected) event()        {}
func (Disconnected) event()     {}
func (Message) event()          {}
func (SealedMessage) event()    {}
func (Dropped) event()          {}
func (PeerOffline) event()      {}
func (PresenceChange) event()   {}
func (PairingRequested) event() {}
func (Declared) event()         {}
func (Fault) event()            {}

// ToChannel returns an OnEvent function that sends to a channel. When Run is told to stop,
// it drops events for which the channel has no receiver.
func ToChannel(events chan<- Event) func(context.Context, Event) {
	return func(ctx context.Context, e Event) {
		select {
		case events <- e:
			return
		default:
		}
		select {
		case events <- e:
		case <-ctx.Done():
		}
	}
}
