package skald

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	"blindpost/shared/dialect/skald/skaldpb"
	"blindpost/shared/relay"
	"blindpost/shared/table"
)

// The pairing window of a namespace is one item. It expires when the window ends,
// rounded up to whole seconds.
const (
	windowItem  = "pairing"
	windowHash  = "h"   // the hash of the token
	windowUsed  = "u"   // the connection that has consumed the token
	windowEnd   = "end" // Unix milliseconds
	windowFrame = "by"  // the frame that has opened the window, see relay.Conn.FrameID
	attrX25519  = "x25519"
)

// pairingStart opens a window. It replaces an open window and its token (section 9.1).
func (d *Dialect) pairingStart(ctx context.Context, c *relay.Conn, p *skaldpb.PairingStart) error {
	if len(p.GetPairingToken()) != tokenSize {
		return d.fail(ctx, c, codeBadRequest, "a pairing token has 32 bytes")
	}
	self, err := d.core.Self(ctx, c)
	if err != nil || self == nil {
		return err
	}
	ttl := d.pairingTTL(p.GetTtl())
	ready := &skaldpb.RelayFrame{Frame: &skaldpb.RelayFrame_PairingReady{
		PairingReady: &skaldpb.PairingReady{Ttl: uint32(ttl / time.Second)},
	}}
	again, err := d.windowOpenedBy(ctx, c)
	if err != nil {
		return err
	}
	if again {
		return d.reply(ctx, c, ready)
	}
	hash := sha256.Sum256(p.GetPairingToken())
	end := d.core.Now().Add(ttl)
	err = d.core.Table().Transact(ctx, []table.Op{
		relay.StillCurrent(c),
		{
			Action: table.Put,
			Key:    relay.GroupItem(c.Group, windowItem),
			Set: table.Attrs{
				relay.AttrGeneration: table.String(self.Generation),
				windowHash:           table.Bytes(hash[:]),
				windowEnd:            table.Number(end.UnixMilli()),
				windowFrame:          table.String(c.FrameID()),
			},
			Expires: end,
		},
	})
	if errors.Is(err, table.ErrCondition) {
		return nil // c was replaced: its frames no longer count
	}
	if err != nil {
		return fmt.Errorf("failed to open a pairing window: %w", err)
	}
	return d.reply(ctx, c, ready)
}

// windowOpenedBy reports whether the frame that is being handled has opened the window,
// and is delivered again. The token may have been consumed since, and must not become
// valid again.
func (d *Dialect) windowOpenedBy(ctx context.Context, c *relay.Conn) (bool, error) {
	if c.FrameID() == "" {
		return false, nil
	}
	it, ok, err := d.core.Find(ctx, relay.GroupItem(c.Group, windowItem), "a pairing window")
	if err != nil || !ok {
		return false, err
	}
	return it.Attrs[windowFrame].Str() == c.FrameID(), nil
}

// pairingTTL clamps the time that the agent asks for: 0 means the default, the rest is
// kept between one second and the maximum.
func (d *Dialect) pairingTTL(seconds uint32) time.Duration {
	l := d.lim()
	ttl := time.Duration(seconds) * time.Second
	if seconds == 0 {
		ttl = l.PairingTTL
	}
	return max(time.Second, min(ttl, l.PairingTTLMax))
}

// pairingStop closes the window (section 9.2).
func (d *Dialect) pairingStop(ctx context.Context, c *relay.Conn) error {
	err := d.core.Table().Transact(ctx, []table.Op{
		relay.StillCurrent(c),
		{Action: table.Delete, Key: relay.GroupItem(c.Group, windowItem)},
	})
	if errors.Is(err, table.ErrCondition) {
		return nil // c was replaced: its frames no longer count
	}
	if err != nil {
		return fmt.Errorf("failed to close a pairing window: %w", err)
	}
	return d.reply(ctx, c, &skaldpb.RelayFrame{Frame: &skaldpb.RelayFrame_PairingStopOk{
		PairingStopOk: &skaldpb.PairingStopOk{},
	}})
}

// authPairing registers a client that has the token of an open window (section 4.2).
func (d *Dialect) authPairing(ctx context.Context, c *relay.Conn, a *skaldpb.AuthPairing) error {
	switch {
	case len(a.GetNamespaceId()) != keySize:
		return d.refuse(ctx, c, rolePairing, codeBadRequest, "a namespace id has 32 bytes")
	case len(a.GetClientX25519Pub()) != keySize:
		return d.refuse(ctx, c, rolePairing, codeBadRequest, "a public key has 32 bytes")
	case len(a.GetPairingToken()) != tokenSize:
		return d.refuse(ctx, c, rolePairing, codeBadRequest, "a pairing token has 32 bytes")
	case !validDevice(a.GetDeviceToken(), a.GetPlatform()):
		return d.refuse(ctx, c, rolePairing, codeBadRequest, "platform or device token is not valid")
	}
	group, key := groupOf(a.GetNamespaceId()), hex.EncodeToString(a.GetClientEd25519Pub())
	root, err := d.namespace(ctx, group)
	if err != nil {
		return err
	}
	if root == nil {
		return d.refuse(ctx, c, rolePairing, codeNotFound, "there is no such namespace")
	}
	if key == root.Key {
		return d.refuse(ctx, c, rolePairing, codeBadRequest, "the agent cannot pair with itself")
	}
	release, err := d.core.Hold(ctx, group, key)
	if err != nil {
		return err
	}
	defer release()
	ok, err := d.register(ctx, c, root, group, key, a)
	if err != nil {
		return err
	}
	if !ok {
		return d.refuse(ctx, c, rolePairing, codePairingClosed, "no pairing window is open for this token")
	}
	d.core.Observer().Authenticated(d.Name(), rolePairing, "ok")
	if err := d.reply(ctx, c, authOk(a.GetNamespaceId())); err != nil {
		return err
	}
	if err := d.core.Later(ctx, d, jobLinger, []byte(c.ID), d.core.Now().Add(pairingLinger)); err != nil {
		return err
	}
	f, err := encode(clientPaired(a.GetClientEd25519Pub(), a.GetClientX25519Pub(), a.GetPlatform()))
	if err != nil {
		return err
	}
	if err := d.core.Notify(ctx, group, root.Key, f); err != nil {
		return err
	}
	// Last, as in welcome.
	c.Private, c.Role = nil, rolePairing
	c.Done()
	return d.core.SaveConn(ctx, c)
}

// register consumes the token and records the client in one transaction: of two
// phones that race with one token, one is registered. It reports false if no window
// is open for this token.
func (d *Dialect) register(ctx context.Context, c *relay.Conn, root *relay.Member, group, key string, a *skaldpb.AuthPairing) (bool, error) {
	hash := sha256.Sum256(a.GetPairingToken())
	for range maxTries {
		it, ok, err := d.core.Find(ctx, relay.GroupItem(group, windowItem), "a pairing window")
		if err != nil || !ok {
			return false, err
		}
		used := it.Attrs[windowUsed].Str()
		open := it.Attrs[relay.AttrGeneration].Str() == root.Generation && d.core.Now().UnixMilli() < it.Attrs[windowEnd].Num()
		if !open || (used != "" && used != string(c.ID)) ||
			subtle.ConstantTimeCompare(it.Attrs[windowHash].Raw(), hash[:]) != 1 {
			return false, nil
		}
		if used != "" {
			return true, nil // this frame is delivered again
		}
		member, err := d.registerOp(ctx, root, group, key, a)
		if err != nil {
			return false, err
		}
		err = d.core.Table().Transact(ctx, []table.Op{
			{
				Action: table.Update,
				Key:    relay.GroupItem(group, windowItem),
				Conds: []table.Cond{
					table.IfEqual(windowHash, table.Bytes(hash[:])),
					table.IfNone(windowUsed),
				},
				Set: table.Attrs{windowUsed: table.String(string(c.ID))},
			},
			member,
		})
		if err == nil {
			return true, nil
		}
		if !errors.Is(err, table.ErrCondition) {
			return false, fmt.Errorf("failed to register a client: %w", err)
		}
	}
	return false, fmt.Errorf("failed to register a client: %w", table.ErrBusy)
}

// registerOp makes the operation that records the client as pending. A client that is
// authorised already stays so and keeps its mailbox, because only the agent may revoke
// it; its push endpoint and its X25519 key change.
func (d *Dialect) registerOp(ctx context.Context, root *relay.Member, group, key string, a *skaldpb.AuthPairing) (table.Op, error) {
	token, platform := a.GetDeviceToken(), int64(a.GetPlatform())
	x25519 := map[string]table.Value{attrX25519: table.Bytes(a.GetClientX25519Pub())}
	m, err := d.core.GetMember(ctx, group, key)
	if err != nil {
		return table.Op{}, err
	}
	if m != nil && m.Generation == root.Generation && m.State == stateAuthorised {
		ch := relay.MemberChange{Token: &token, Platform: &platform, Attrs: x25519}
		return relay.UpdateOp(group, key, ch, append(m.IfUnchanged(), relay.IfState(stateAuthorised))...), nil
	}
	conds := []table.Cond{table.IfAbsent()}
	if m != nil {
		conds = append(m.IfUnchanged(), relay.IfState(m.State))
	}
	return d.core.CreateOp(group, key, relay.NewMember{
		Generation: root.Generation,
		Role:       roleClient,
		State:      statePending,
		Token:      token,
		Platform:   platform,
		Attrs:      x25519,
	}, conds...), nil
}

// resendPaired sends an agent that has just connected a ClientPaired for every pending
// client.
func (d *Dialect) resendPaired(ctx context.Context, c *relay.Conn, generation string) error {
	members, err := d.core.Members(ctx, c.Group, generation)
	if err != nil {
		return err
	}
	for _, m := range members {
		if m.State != statePending {
			continue
		}
		pub, err := hex.DecodeString(m.Key)
		if err != nil {
			continue
		}
		f := clientPaired(pub, m.Attr(attrX25519).Raw(), skaldpb.Platform(m.Platform))
		if err := d.reply(ctx, c, f); err != nil {
			return err
		}
	}
	return nil
}

func clientPaired(ed25519Pub, x25519Pub []byte, p skaldpb.Platform) *skaldpb.RelayFrame {
	return &skaldpb.RelayFrame{Frame: &skaldpb.RelayFrame_ClientPaired{ClientPaired: &skaldpb.ClientPaired{
		ClientEd25519Pub: ed25519Pub,
		ClientX25519Pub:  x25519Pub,
		Platform:         p,
	}}}
}
