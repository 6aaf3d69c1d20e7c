package agentknock

import (
	"bytes"
	"context"
	"errors"

	"blindpost/shared/gateway"
	"blindpost/shared/relay"
	"blindpost/shared/table"
)

// Errors of a connection for an initial pairing whose attempt has expired.
var (
	errAttemptOver  = errors.New("the pairing attempt is over")
	errOtherAttempt = errors.New("the request id is bound to another address or token")
)

// attemptOver answers a frame of an attempt that has expired, and closes the connection.
func (d *Dialect) attemptOver(ctx context.Context, c *relay.Conn, s scope, m move) error {
	f := (&fault{code: codeClientInactive, message: errAttemptOver.Error()}).frame(s)
	switch {
	case m.resume:
		f = inactiveFrame(s)
	case m.event == CompletionSent: // there is nothing to complete
		f = ackFrame(s)
	}
	return errors.Join(d.reply(ctx, c, f), d.close(ctx, c.ID, gateway.ClosePolicy, errAttemptOver.Error()))
}

// attemptHolds checks that the attempt of a connection is still the one of the client, or,
// as long as there is no client, the stored one: the attempt may have expired, and another
// may have its id. The transaction that creates the client has to include the operations.
func (d *Dialect) attemptHolds(ctx context.Context, h deviceKeys, m move, client *clientRecord) ([]table.Op, error) {
	a := m.pairing
	if client != nil {
		if client.State != stateRevoked && (!sameToken(client.Token, a.Token) || client.Address != a.Address) {
			return nil, errOtherAttempt
		}
		return nil, nil
	}
	at, kept, err := d.loadAttempt(ctx, m.Client)
	switch {
	case err != nil:
		return nil, err
	case kept == nil:
		return nil, errAttemptOver
	case at != h || kept.Address != a.Address || !bytes.Equal(kept.Token, a.Token):
		return nil, errOtherAttempt
	}
	return []table.Op{{
		Action: table.Check, Key: attemptKey(m.Client),
		Conds: []table.Cond{
			table.IfEqual("t", table.Bytes(a.Token)), table.IfEqual("ad", table.String(a.Address)),
			table.IfEqual("d", table.String(h.device)), table.IfEqual("g", table.String(h.generation)),
		},
	}}, nil
}
