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

// authorize replaces the list of authorised clients (section 5). Pending clients on
// the list become authorised. Authorised clients that are not on it are revoked: one
// transaction deletes them with their device tokens, then their connections are closed
// and their mailboxes purged. AuthorizeOk is sent after that.
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
		err = d.apply(ctx, c, plan)
		if errors.Is(err, table.ErrCondition) {
			continue
		}
		if err != nil {
			return fmt.Errorf("failed to authorise: %w", err)
		}
		// This also finishes the removals of an earlier Authorize that was interrupted.
		if err := d.core.FinishRemovals(ctx, c.Group); err != nil {
			return err
		}
		err = d.reply(ctx, c, &skaldpb.RelayFrame{Frame: &skaldpb.RelayFrame_AuthorizeOk{
			AuthorizeOk: &skaldpb.AuthorizeOk{Authorized: plan.authorised},
		}})
		if err != nil {
			return err
		}
		return d.core.AnnounceRemovals(ctx, c.Group)
	}
	return fmt.Errorf("failed to authorise: %w", table.ErrBusy)
}

// authorizePlan is what one Authorize changes.
type authorizePlan struct {
	revoke     []*relay.Member
	promote    []table.Op
	authorised uint32
}

func planAuthorize(members []*relay.Member, wanted map[string]bool) authorizePlan {
	var p authorizePlan
	state := stateAuthorised
	for _, m := range members {
		if m.Role != roleClient {
			continue
		}
		switch {
		case wanted[m.Key]:
			p.authorised++
			if m.State == statePending {
				p.promote = append(p.promote, relay.UpdateOp(m.Group, m.Key, relay.MemberChange{State: &state},
					append(m.IfUnchanged(), relay.IfState(statePending))...))
			}
		case m.State == stateAuthorised:
			// RemoveOps demands that it has not joined since it was read: otherwise
			// the connection to close would be unknown.
			p.revoke = append(p.revoke, m)
		}
	}
	return p
}

// apply writes the plan, in one transaction as long as it fits, each part on
// condition that the agent's connection is still the current one; revocations
// come first.
func (d *Dialect) apply(ctx context.Context, c *relay.Conn, p authorizePlan) error {
	for len(p.revoke) > 0 || len(p.promote) > 0 {
		n := min(len(p.revoke), (table.MaxTransaction-1)/2)
		ops := []table.Op{relay.StillCurrent(c, p.revoke[:n]...)}
		for _, m := range p.revoke[:n] {
			ops = append(ops, relay.RemoveOps(m,
				relay.Removal{Code: gateway.ClosePolicy, Reason: "revoked"},
				append(m.IfUnchanged(), relay.IfState(stateAuthorised))...)...)
		}
		p.revoke = p.revoke[n:]
		n = min(len(p.promote), table.MaxTransaction-len(ops))
		ops = append(ops, p.promote[:n]...)
		p.promote = p.promote[n:]
		if err := d.core.Table().Transact(ctx, ops); err != nil {
			return err
		}
	}
	return nil
}
