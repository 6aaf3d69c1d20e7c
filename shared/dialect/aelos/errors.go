package aelos

import (
	"context"
	"errors"
	"fmt"

	"blindpost/shared/gateway"
	"blindpost/shared/relay"
)

// Error codes of section 3.
const (
	codeAuth        = "auth"
	codeProto       = "proto"
	codeBoatOffline = "boat-offline"
	codeLimit       = "limit"
)

// Status codes of a result of the relay.
const (
	statusTooMany     = 429
	statusUnavailable = 503
)

// refusedText is all that a peer is told about a refused token.
const refusedText = "the token is not valid"

// closeCodes are the codes that a connection is closed with after an error.
// boat-offline closes none.
var closeCodes = map[string]gateway.CloseCode{
	codeAuth:  gateway.ClosePolicy,
	codeProto: gateway.ClosePolicy,
	codeLimit: gateway.CloseTryLater,
}

// post sends a control frame to a connection.
func (d *Dialect) post(ctx context.Context, c gateway.Conn, v any) error {
	f, err := encode(v)
	if err != nil {
		return err
	}
	if _, err := d.core.Front().Post(ctx, c, gateway.Message{Data: f.Data, Text: true}); err != nil {
		return fmt.Errorf("failed to post: %w", err)
	}
	return nil
}

// reply sends a control frame to the peer of this connection. A connection that is gone
// is no error.
func (d *Dialect) reply(ctx context.Context, c *relay.Conn, v any) error {
	return ignoreGone(d.post(ctx, c.ID, v))
}

// fail answers with an error and closes.
func (d *Dialect) fail(ctx context.Context, c *relay.Conn, code, msg string) error {
	return d.failWith(ctx, c, code, msg, closeCodes[code])
}

func (d *Dialect) failWith(ctx context.Context, c *relay.Conn, code, msg string, cc gateway.CloseCode) error {
	err := d.reply(ctx, c, errorFrame{T: typeError, Code: code, Msg: msg})
	err = errors.Join(err, d.close(ctx, c.ID, cc, code))
	// The peer may be slow to close its end; it leaves now, for all others.
	if p, admitted := privateOf(c); admitted {
		err = errors.Join(err, d.leave(ctx, p.group, c.ID))
	}
	return err
}

// refuse is fail for a peer that is not admitted.
func (d *Dialect) refuse(ctx context.Context, c *relay.Conn, role, code, msg string) error {
	d.core.Observer().Authenticated(name, role, code)
	return d.fail(ctx, c, code, msg)
}

func (d *Dialect) close(ctx context.Context, c gateway.Conn, code gateway.CloseCode, reason string) error {
	if err := ignoreGone(d.core.Front().Close(ctx, c, code, reason)); err != nil {
		return fmt.Errorf("failed to close: %w", err)
	}
	return nil
}

// Reasons for which a payload frame is dropped, as they are counted.
const (
	dropUndecodable = "undecodable"
	dropNotFound    = "not_found"
	dropSlow        = "slow_reader"
	dropRate        = "rate_limited"
	dropRole        = "forbidden"
	dropProto       = "proto"
	dropOffline     = "peer_offline"
	dropTooLarge    = "too_large"
	dropLost        = "connection_lost"
)

func (d *Dialect) drop(reason string) { d.core.Observer().Dropped(relay.ClassLive, reason, 1) }
