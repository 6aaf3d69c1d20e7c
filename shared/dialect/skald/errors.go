package skald

import (
	"context"
	"errors"
	"fmt"

	"google.golang.org/protobuf/proto"

	"blindpost/shared/dialect/skald/skaldpb"
	"blindpost/shared/gateway"
	"blindpost/shared/relay"
)

// Error codes of section 12.
const (
	codeChallengeTimeout = "challenge_timeout"
	codeInvalidSignature = "invalid_signature"
	codeUnauthorized     = "unauthorized"
	codeNotFound         = "not_found"
	codePairingClosed    = "pairing_closed"
	codeRateLimited      = "rate_limited"
	codePayloadTooLarge  = "payload_too_large"
	codeQueueFull        = "queue_full"
	codeBadRequest       = "bad_request"
)

func encode(f *skaldpb.RelayFrame) (relay.Frame, error) {
	b, err := proto.Marshal(f)
	if err != nil {
		return relay.Frame{}, fmt.Errorf("failed to encode a frame: %w", err)
	}
	return relay.Frame{Data: b}, nil
}

func peerOffline(pub []byte) *skaldpb.RelayFrame {
	return &skaldpb.RelayFrame{Frame: &skaldpb.RelayFrame_PeerOffline{
		PeerOffline: &skaldpb.PeerOffline{Peer: pub},
	}}
}

// reply sends a frame to the peer of this connection. A connection that is gone is no
// error: its Disconnect follows.
func (d *Dialect) reply(ctx context.Context, c *relay.Conn, f *skaldpb.RelayFrame) error {
	out, err := encode(f)
	if err != nil {
		return err
	}
	_, err = d.core.Front().Post(ctx, c.ID, gateway.Message{Data: out.Data})
	if err != nil && !errors.Is(err, gateway.ErrGone) {
		return fmt.Errorf("failed to reply: %w", err)
	}
	return nil
}

// fail answers an authenticated peer with an Error. The connection stays.
func (d *Dialect) fail(ctx context.Context, c *relay.Conn, code, message string) error {
	return d.reply(ctx, c, &skaldpb.RelayFrame{Frame: &skaldpb.RelayFrame_Error{
		Error: &skaldpb.Error{Code: code, Message: message},
	}})
}

// refuse answers with an AuthError and closes (section 12).
func (d *Dialect) refuse(ctx context.Context, c *relay.Conn, role, code, message string) error {
	d.core.Observer().Authenticated(d.Name(), role, code)
	err := d.reply(ctx, c, &skaldpb.RelayFrame{Frame: &skaldpb.RelayFrame_AuthError{
		AuthError: &skaldpb.AuthError{Code: code, Message: message},
	}})
	closeCode := gateway.ClosePolicy
	if code == codePayloadTooLarge {
		closeCode = gateway.CloseTooLarge
	}
	return errors.Join(err, d.close(ctx, c, closeCode, code))
}

func (d *Dialect) close(ctx context.Context, c *relay.Conn, code gateway.CloseCode, reason string) error {
	err := d.core.Front().Close(ctx, c.ID, code, reason)
	if err != nil && !errors.Is(err, gateway.ErrGone) {
		return fmt.Errorf("failed to close: %w", err)
	}
	return nil
}
