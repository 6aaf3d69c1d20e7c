package agentknock

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"blindpost/shared/gateway"
	"blindpost/shared/relay"
	"blindpost/shared/table"
)

// refusal is an upgrade that is refused.
type refusal struct {
	status        int
	code, message string
}

func (r refusal) result() gateway.ConnectResult { return relay.Refuse(r.status, r.code, r.message, 0) }

var (
	refuseID        = refusal{http.StatusBadRequest, "INVALID_REQUEST", "An identifier in the path is malformed."}
	refuseRequestID = refusal{http.StatusBadRequest, codeInvalidRequestID, "The time in the request id is too far from now."}
	refuseToken     = refusal{http.StatusUnauthorized, "UNAUTHORIZED", "Authentication failed."}
	refuseAddress   = refusal{http.StatusNotFound, "NOT_FOUND", "There is no device at this address."}
	refuseDevice    = refusal{http.StatusNotFound, "NOT_FOUND", "There is no such device."}
	refuseClient    = refusal{http.StatusNotFound, "NOT_FOUND", "There is no such client."}
	refuseInactive  = refusal{http.StatusForbidden, codeClientInactive, "The client is not active."}
	refusePairing   = refusal{http.StatusForbidden, "PAIRING_DISABLED", "The device takes no new pairings."}
	refuseConflict  = refusal{http.StatusConflict, "CONFLICT", "The request id is bound to another address or token."}
)

// Precheck refuses an upgrade whose path or token is malformed.
func (d *Dialect) Precheck(e gateway.ConnectEvent) (gateway.ConnectResult, bool) {
	r, ok := routeOf(e.Path)
	if !ok || !r.valid() {
		return refuseID.result(), false
	}
	if _, ok := bearer(e.Header.Values("Authorization")); !ok {
		d.core.Observer().Authenticated(name, r.role, "unauthorized")
		return refuseToken.result(), false
	}
	return gateway.ConnectResult{}, true
}

// RateLimited is the answer to an address that opens too many connections.
func (d *Dialect) RateLimited(after time.Duration) gateway.ConnectResult {
	return relay.Refuse(http.StatusTooManyRequests, codeRateLimited, "Too many connections from this address.", after)
}

// Connect decides about an upgrade.
func (d *Dialect) Connect(ctx context.Context, c *relay.Conn, e gateway.ConnectEvent) (gateway.ConnectResult, error) {
	r, _ := routeOf(e.Path)
	token, ok := bearer(e.Header.Values("Authorization"))
	if !ok || !r.valid() {
		res, _ := d.Precheck(e)
		return res, nil
	}
	var no *refusal
	var err error
	switch r.role {
	case rolePairing:
		no, err = d.admitPairing(ctx, c, r, token)
	case roleClient:
		no, err = d.admitClient(ctx, c, r, token)
	default:
		no, err = d.admitDevice(ctx, c, r, token)
	}
	if err != nil {
		return gateway.ConnectResult{}, err
	}
	if no != nil {
		d.core.Observer().Authenticated(name, r.role, resultOf(no.status))
		return no.result(), nil
	}
	d.core.Observer().Authenticated(name, r.role, "ok")
	return gateway.ConnectResult{ReadLimit: MaxFrame}, nil
}

// resultOf is the label by which a refusal is counted, such as "bad_request".
func resultOf(status int) string {
	return strings.ReplaceAll(strings.ToLower(http.StatusText(status)), " ", "_")
}

// admitClient admits an enrolled client.
func (d *Dialect) admitClient(ctx context.Context, c *relay.Conn, r route, token []byte) (*refusal, error) {
	m, err := d.core.GetMember(ctx, groupOf(r.first), deviceMember)
	if err != nil {
		return nil, err
	}
	if m == nil {
		return &refuseDevice, nil
	}
	s := &session{Device: r.first, Generation: m.Generation, Client: r.second}
	return d.admitToList(ctx, c, s, func(client *clientRecord) *refusal {
		switch {
		case client == nil:
			return &refuseClient
		case client.State == stateRevoked: // its token is forgotten
			return &refuseInactive
		case !sameToken(client.Token, token):
			return &refuseToken
		case client.State != stateActive:
			return &refuseInactive
		}
		return nil
	})
}

// admitToList lists the connection of a client, and then reads the client. A handler that
// suspends the client writes it first and then reads the list, so that at least one of
// the two sees what the other has written.
func (d *Dialect) admitToList(ctx context.Context, c *relay.Conn, s *session, check func(*clientRecord) *refusal) (*refusal, error) {
	look := func() (*refusal, error) {
		client, err := d.loadClient(ctx, s.keys(), s.Client)
		if err != nil {
			return nil, err
		}
		return check(client), nil
	}
	if no, err := look(); err != nil || no != nil {
		return no, err // refused before anything is written
	}
	if err := s.put(c); err != nil {
		return nil, err
	}
	if err := d.listSocket(ctx, c, s); err != nil {
		return nil, err
	}
	no, err := look()
	if err != nil || no != nil {
		return no, errors.Join(err, d.unlistSocket(ctx, c, s))
	}
	d.core.Observer().Joined(name, s.role())
	return nil, nil
}

// admitPairing admits an attempt to pair, or one that was admitted before.
func (d *Dialect) admitPairing(ctx context.Context, c *relay.Conn, r route, token []byte) (no *refusal, err error) {
	err = retry("admit a pairing attempt", func() error {
		no, err = d.tryPairing(ctx, c, r, token)
		return err
	})
	return no, err
}

func (d *Dialect) tryPairing(ctx context.Context, c *relay.Conn, r route, token []byte) (*refusal, error) {
	h, a, err := d.loadAttempt(ctx, r.second)
	if err != nil {
		return nil, err
	}
	known := a != nil
	if known && (a.Address != r.first || !sameToken(a.Token, token)) {
		return &refuseConflict, nil
	}
	if !known {
		var no *refusal
		if h, no, err = d.resolve(ctx, r.first); err != nil || no != nil {
			return no, err
		}
		a = &attempt{Address: r.first, Token: token}
	}
	m, err := d.device(ctx, h)
	if err != nil {
		return nil, err
	}
	if m == nil {
		return &refuseAddress, nil
	}
	client, err := d.loadClient(ctx, h, r.second)
	if err != nil {
		return nil, err
	}
	if no := a.admits(client); no != nil {
		return no, nil
	}
	if !known {
		switch {
		case client == nil && m.Attr(attrPairing).Num() == 0:
			return &refusePairing, nil
		case client == nil && !fresh(r.second, d.core.Now()):
			return &refuseRequestID, nil
		}
		if err := d.saveAttempt(ctx, h, r.second, a); err != nil {
			return nil, err
		}
	}
	s := &session{Device: h.device, Generation: h.generation, Client: r.second, Pairing: a}
	return d.admitToList(ctx, c, s, a.admits)
}

// admits checks an attempt against the client that its first request has created, nil if
// none has.
func (a *attempt) admits(client *clientRecord) *refusal {
	switch {
	case client == nil:
		return nil
	case client.State == stateRevoked:
		return &refuseInactive
	case !sameToken(client.Token, a.Token) || client.Address != a.Address:
		return &refuseConflict
	case client.State == stateSuspended:
		return &refuseInactive
	}
	return nil
}

func attemptKey(request string) table.Key {
	return table.Key{Partition: attemptPartition + request, Sort: "a"}
}

func (d *Dialect) loadAttempt(ctx context.Context, request string) (deviceKeys, *attempt, error) {
	it, ok, err := d.core.Find(ctx, attemptKey(request), "a pairing attempt")
	if err != nil || !ok {
		return deviceKeys{}, nil, err
	}
	a := it.Attrs
	return deviceKeys{a["d"].Str(), a["g"].Str()}, &attempt{Address: a["ad"].Str(), Token: a["t"].Raw()}, nil
}

// saveAttempt stores an admitted attempt, on condition that none is stored for the id.
func (d *Dialect) saveAttempt(ctx context.Context, h deviceKeys, request string, a *attempt) error {
	_, err := d.core.Table().Write(ctx, table.Op{
		Action: table.Put, Key: attemptKey(request), Conds: []table.Cond{table.IfAbsent()},
		Set: table.Attrs{
			"d": table.String(h.device), "g": table.String(h.generation),
			"ad": table.String(a.Address), "t": table.Bytes(a.Token),
		},
		Expires: d.core.Now().Add(d.lim().PairingTTL),
	})
	if err != nil {
		return fmt.Errorf("failed to store a pairing attempt: %w", err)
	}
	return nil
}

// admitDevice admits a device. Its connection replaces the one before, and a job sends
// the messages that wait for it.
func (d *Dialect) admitDevice(ctx context.Context, c *relay.Conn, r route, token []byte) (*refusal, error) {
	group := groupOf(r.first)
	release, err := d.core.Hold(ctx, group, deviceMember)
	if err != nil {
		return nil, err
	}
	defer release()
	for range maxTries {
		m, err := d.core.GetMember(ctx, group, deviceMember)
		if err != nil {
			return nil, err
		}
		if m == nil {
			return &refuseDevice, nil
		}
		if !sameToken(m.Attr(attrToken).Raw(), token) {
			return &refuseToken, nil
		}
		s := &session{Device: r.first, Generation: m.Generation}
		if err := s.put(c); err != nil {
			return nil, err
		}
		c.Admitted = true
		_, err = d.core.Join(ctx, c, relay.Joining{Member: m})
		if errors.Is(err, table.ErrCondition) {
			continue
		}
		if err != nil {
			return nil, err
		}
		// If this fails, so does the upgrade, and the device connects again.
		return nil, d.next(ctx, jobDrain, jobBody{Device: r.first, Generation: m.Generation, Conn: c.ID, At: c.At}, time.Time{})
	}
	return nil, fmt.Errorf("failed to admit a device: %w", table.ErrBusy)
}
