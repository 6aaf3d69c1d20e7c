package skald

import (
	"google.golang.org/protobuf/proto"

	"blindpost/shared/dialect/skald/skaldpb"
	"blindpost/shared/push"
	"blindpost/shared/relay"
)

// Wake makes the push for a client with a device token (section 6.3). A message that
// fits travels in the push, encrypted as it is; otherwise the push only wakes the phone.
func (d *Dialect) Wake(m *relay.Member, f relay.Frame) (push.Notification, bool) {
	namespace, err := namespaceOf(m.Group)
	if err != nil || len(namespace) != keySize || m.Role != roleClient {
		return push.Notification{}, false
	}
	n := push.Notification{Token: m.Token, Platform: push.Platform(m.Platform), TTL: d.core.Limits().MessageTTL}
	msg, ok := pushMessage(f)
	copy(msg.Namespace[:], namespace)
	if ok {
		n.Payload, n.Kind, err = push.SkaldPayload(n.Platform, msg, d.text)
	} else {
		n.Payload, err = push.SkaldWake(n.Platform, msg.Namespace, d.text)
		n.Kind = push.Wake
	}
	return n, err == nil
}

// pushMessage returns the message in a stored frame.
func pushMessage(f relay.Frame) (push.SkaldMessage, bool) {
	var frame skaldpb.RelayFrame
	if len(f.Data) == 0 || proto.Unmarshal(f.Data, &frame) != nil {
		return push.SkaldMessage{}, false
	}
	m := frame.GetMessage()
	if m == nil || len(m.GetPeer()) != keySize {
		return push.SkaldMessage{}, false
	}
	out := push.SkaldMessage{Nonce: m.GetNonce(), Ciphertext: m.GetCiphertext()}
	copy(out.From[:], m.GetPeer())
	return out, true
}
