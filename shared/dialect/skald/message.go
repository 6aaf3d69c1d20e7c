package skald

import (
	"context"
	"encoding/hex"

	"blindpost/shared/dialect/skald/skaldpb"
	"blindpost/shared/gateway"
	"blindpost/shared/relay"
)

// message routes a message to its recipient (section 6).
func (d *Dialect) message(ctx context.Context, c *relay.Conn, m *skaldpb.Message, size int64) error {
	if !c.Joined() {
		return d.reject(ctx, c, "this connection was for pairing")
	}
	ok, err := d.core.TakeMessage(ctx, c)
	if err != nil {
		return err
	}
	class, limit := relay.ClassStored, d.lim().MaxFrame
	if m.GetLive() {
		class, limit = relay.ClassLive, d.lim().MaxLiveFrame
	}
	switch {
	case !ok:
		d.core.Observer().Dropped(class, codeRateLimited, 1)
		return d.fail(ctx, c, codeRateLimited, "too many messages on this connection")
	case size > limit:
		d.core.Observer().Dropped(class, "too_large", 1)
		return d.fail(ctx, c, codePayloadTooLarge, "the frame is larger than allowed")
	case len(m.GetPeer()) != keySize:
		return d.fail(ctx, c, codeBadRequest, "a public key has 32 bytes")
	case len(m.GetNonce()) != aeadNonceSize:
		return d.fail(ctx, c, codeBadRequest, "a nonce has 12 bytes")
	case len(m.GetCiphertext()) == 0:
		return d.fail(ctx, c, codeBadRequest, "a message has a ciphertext")
	}
	self, err := d.core.Self(ctx, c)
	if err != nil {
		return err
	}
	return d.route(ctx, c, self, m, class)
}

// route hands a message to its recipient; self is nil if the sender was removed.
func (d *Dialect) route(ctx context.Context, c *relay.Conn, self *relay.Member, m *skaldpb.Message, class relay.Class) error {
	peer := m.GetPeer()
	from, err := hex.DecodeString(c.Member)
	if err != nil {
		return err
	}
	m.Peer = from // the authenticated sender
	frame, err := encode(&skaldpb.RelayFrame{Frame: &skaldpb.RelayFrame_Message{Message: m}})
	if err != nil {
		return err
	}
	l := &relay.Letter{
		Sender: c,
		To:     hex.EncodeToString(peer),
		Class:  class,
		Frame:  frame,
		Admit:  mayReceive,
	}
	if self == nil {
		if err := d.core.Withdraw(ctx, l); err != nil {
			return err
		}
		return d.cutOff(ctx, c)
	}
	l.Generation = self.Generation
	result, err := d.core.Send(ctx, l)
	if err != nil {
		return err
	}
	switch result {
	case relay.PeerOffline:
		return d.reply(ctx, c, peerOffline(peer))
	case relay.QueueFull:
		return d.fail(ctx, c, codeQueueFull, "the mailbox of the recipient is full")
	case relay.NotFound:
		return d.fail(ctx, c, codeNotFound, "there is no such recipient in this namespace")
	case relay.TooLarge:
		return d.fail(ctx, c, codePayloadTooLarge, "the frame is larger than the recipient's connection carries")
	}
	return nil
}

// mayReceive reports whether messages may go to a member: to the agent, or to an
// authorised client.
func mayReceive(m *relay.Member) bool {
	return m.Role == roleAgent || m.State == stateAuthorised
}

// cutOff closes the connection of a member that was removed.
func (d *Dialect) cutOff(ctx context.Context, c *relay.Conn) error {
	if err := d.fail(ctx, c, codeUnauthorized, "the client is not authorised"); err != nil {
		return err
	}
	return d.close(ctx, c, gateway.ClosePolicy, codeUnauthorized)
}

// presenceRequest answers with the connected members, the requester included
// (section 7).
func (d *Dialect) presenceRequest(ctx context.Context, c *relay.Conn) error {
	if !c.Joined() {
		return d.reject(ctx, c, "this connection was for pairing")
	}
	ok, err := d.core.TakeMessage(ctx, c)
	if err != nil {
		return err
	}
	if !ok {
		return d.fail(ctx, c, codeRateLimited, "too many messages on this connection")
	}
	self, err := d.core.Self(ctx, c)
	if err != nil {
		return err
	}
	if self == nil {
		return d.cutOff(ctx, c)
	}
	members, err := d.core.Members(ctx, c.Group, self.Generation)
	if err != nil {
		return err
	}
	list := &skaldpb.PresenceList{}
	for _, m := range members {
		if !d.core.Online(m) && m.Key != c.Member {
			continue
		}
		pub, err := hex.DecodeString(m.Key)
		if err != nil {
			continue
		}
		list.Online = append(list.Online, pub)
	}
	return d.reply(ctx, c, &skaldpb.RelayFrame{Frame: &skaldpb.RelayFrame_PresenceList{PresenceList: list}})
}
