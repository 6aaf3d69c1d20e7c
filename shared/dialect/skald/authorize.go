package skald

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"

	"blindpost/shared/dialect/skald/skaldpb"
	"blindpost/shared/gateway"
	"blindpost/shared/relay"
	"blindpost/shared/table"
)

// authorize replaces the list of authorised clients (section 5). Pending clients
// that are on it become authorised; authorised ones that are not are revoked:
// deleted with mailbox and device token in one transaction, then cut off.
// AuthorizeOk comes when that is done.
func (d *Dialect) authorize(ctx context.Context, c *relay.Conn, a *skaldpb.Authorize) error {
	wanted := make(map[string]bool, len(a.GetClients()))
	for _, pub := range a.GetClients() {
		if len(pub) != keySize {
			return d.fail(ctx, c, codeBadRequest, "a public key has 32 bytes")
		}
		wanted[hex.EncodeToString(pub)] = true
	}
	for range maxTries {
		self, err := d.core.Self(ctx, c)
		if err != nil || self == nil || self.Conn != c.ID {
			return err // replaced: an old list must not override a newer one
		}
		members, err := d.core.Members(ctx, c.Group, self.Generation)
		if err != nil {
			return err
		}
		plan := planAuthorize(members, wanted)
		err = d.apply(ctx, c, plan.ops)
		if errors.Is(err, table.ErrCondition) {
			continue
		}
		if err != nil {
			return fmt.Errorf("failed to authorise: %w", err)
		}
		if err := d.core.Removed(ctx, plan.revoked, gateway.ClosePolicy, "revoked"); err != nil {
			return err
		}
		return d.reply(ctx, c, &skaldpb.RelayFrame{Frame: &skaldpb.RelayFrame_AuthorizeOk{
			AuthorizeOk: &skaldpb.AuthorizeOk{Authorized: plan.authorised},
		}})
	}
	return fmt.Errorf("failed to authorise: %w", table.ErrBusy)
}

// authorizePlan is what one Authorize changes.
type authorizePlan struct {
	ops        []table.Op
	revoked    []*relay.Member
	authorised uint32
}

func planAuthorize(members []*relay.Member, wanted map[string]bool) authorizePlan {
	var p authorizePlan
	state := stateAuthorised
	var promote []table.Op
	for _, m := range members {
		if m.Role != roleClient {
			continue
		}
		switch {
		case wanted[m.Key]:
			p.authorised++
			if m.State == statePending {
				promote = append(promote, relay.UpdateOp(m.Group, m.Key, relay.MemberChange{State: &state},
					append(m.IfUnchanged(), relay.IfState(statePending))...))
			}
		case m.State == stateAuthorised:
			// On condition that it has not joined since: then we would not know
			// the connection to close.
			p.ops = append(p.ops, relay.DeleteOp(m.Group, m.Key,
				append(m.IfUnchanged(), relay.IfState(stateAuthorised))...))
			p.revoked = append(p.revoked, m)
		}
	}
	p.ops = append(p.ops, promote...) // revocations first
	return p
}

// apply writes the plan, in one transaction as long as it fits, and each part on
// condition that the agent's connection is still the current one.
func (d *Dialect) apply(ctx context.Context, c *relay.Conn, ops []table.Op) error {
	const room = table.MaxTransaction - 1
	for len(ops) > 0 {
		n := min(len(ops), room)
		tx := append([]table.Op{relay.StillCurrent(c)}, ops[:n]...)
		if err := d.core.Table().Transact(ctx, tx); err != nil {
			return err
		}
		ops = ops[n:]
	}
	return nil
}
