package agentknock

import (
	"bytes"
	"context"
	"errors"

	"blindpost/shared/gateway"
	"blindpost/shared/relay"
	"blindpost/shared/table"
)

// What a connection for an initial pairing is told whose attempt is no more.
var (
	errAttemptOver  = errors.New("the pairing attempt is over")
	errOtherAttempt = errors.New("the request id is bound to another address or token")
)

// attemptOver answers a frame of an attempt that is over, and ends the connection.
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

// attemptHolds checks that a frame belongs to what was admitted: to the client, or, as
// long as there is none, to the attempt. A connection may be older than that, for an
// attempt is not remembered for ever and another one may have taken its id. The
// operations are to go with the write that makes the client.
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
