package skald

import (
	"errors"
	"fmt"

	"blindpost/shared/gateway"
)

// Codes of [RelayError], section 12 of the protocol.
const (
	CodeChallengeTimeout = "challenge_timeout"
	CodeInvalidSignature = "invalid_signature"
	CodeUnauthorized     = "unauthorized"
	CodeNotFound         = "not_found"
	CodePairingClosed    = "pairing_closed"
	CodeRateLimited      = "rate_limited"
	CodePayloadTooLarge  = "payload_too_large"
	CodeQueueFull        = "queue_full"
	CodeBadRequest       = "bad_request"
)

// Errors of this package. Those that are returned carry detail; compare with
// errors.Is.
var (
	// ErrNotConnected says that there is no authenticated connection now.
	ErrNotConnected = errors.New("not connected to the relay")
	// ErrRunning says that Run (or Pair) is already running.
	ErrRunning = errors.New("already running")
	// ErrReplaced ends Run: the same identity has opened a newer connection,
	// so two processes use it. Reconnecting would only make them fight.
	ErrReplaced = errors.New("replaced by a newer connection of the same identity")
	// ErrRevoked ends a client's Run: the agent has revoked the client, or the relay has
	// deleted the namespace. Pair again.
	ErrRevoked = errors.New("not authorised any more")
	// ErrNotPaired says that the client is not paired yet.
	ErrNotPaired = errors.New("not paired with an agent")
	// ErrUnknownPeer says that there is no authorised peer with that key.
	ErrUnknownPeer = errors.New("no authorised peer with this key")
	// ErrKeyChanged says that a known Ed25519 key came with another X25519 key
	// than before. Both derive from one seed, so this is no honest peer.
	ErrKeyChanged = errors.New("exchange key differs from the one known for this peer")
	// ErrReplay says that a counter was not above the last one seen.
	ErrReplay = errors.New("counter was seen before")
	// ErrOpen says that a message could not be decrypted.
	ErrOpen = errors.New("message does not decrypt")
	// ErrFraming says that the decrypted bytes are not a framed payload.
	ErrFraming = errors.New("malformed plaintext framing")
	// ErrPayload says that a payload is not what the protocol describes.
	ErrPayload = errors.New("malformed payload")
	// ErrTooLarge says that something is over a limit of the protocol.
	ErrTooLarge = errors.New("too large")
	// ErrProtocol says that the relay broke the protocol.
	ErrProtocol = errors.New("relay broke the protocol")
	// ErrSilent says that the relay answered neither a ping nor a request.
	ErrSilent = errors.New("relay does not answer")
	// ErrNoState is the answer of [Store.Load] before the first Save.
	ErrNoState = errors.New("no state yet")
	// ErrState says that a stored state cannot be used. It is never overwritten, as that
	// would lose the identity.
	ErrState = errors.New("unusable state")
	// ErrLocked says that another process uses the state file.
	ErrLocked = errors.New("state file is in use by another process")
)

// RelayError is an Error or AuthError frame of the relay.
type RelayError struct {
	// Code is one of the Code constants, or one this package does not know.
	Code string
	// Message is the relay's text for humans. It is untrusted: quote it.
	Message string
	// Auth is true for AuthError: the connection was not admitted.
	Auth bool
}

func (e *RelayError) Error() string {
	what := "relay error"
	if e.Auth {
		what = "relay refused authentication"
	}
	return fmt.Sprintf("%s: %.40q: %.200q", what, e.Code, e.Message)
}

// IsCode reports whether err is or wraps a [RelayError] with this code.
func IsCode(err error, code string) bool {
	var e *RelayError
	return errors.As(err, &e) && e.Code == code
}

// CloseError says with which WebSocket close code the relay ended the
// connection.
type CloseError struct {
	Code   gateway.CloseCode
	Reason string
}

func (e *CloseError) Error() string {
	return fmt.Sprintf("relay closed the connection: code %d: %.125q", e.Code, e.Reason)
}

// finalError returns nil if a retry may help after err, otherwise the error of Run.
func finalError(err error) error {
	var closed *CloseError
	if errors.As(err, &closed) && closed.Code == gateway.CloseReplaced {
		return fmt.Errorf("%w: %w", ErrReplaced, err)
	}
	switch refusedWith(err) {
	case CodeInvalidSignature, CodeBadRequest:
		// The relay would refuse the same bytes every time.
		return err
	}
	return nil
}

// refusedWith returns the code with which the relay refused to admit us, or "".
func refusedWith(err error) string {
	var e *RelayError
	if errors.As(err, &e) && e.Auth {
		return e.Code
	}
	return ""
}
