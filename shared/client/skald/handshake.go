package skald

import (
	"context"
	"fmt"
	"time"

	"google.golang.org/protobuf/proto"

	"blindpost/shared/dialect/skald/skaldpb"
)

// handshakeTimeout bounds challenge and answer. A relay has the same timeout.
const handshakeTimeout = 30 * time.Second

// AuthFunc answers a challenge: it makes the Auth frame for its 32-byte nonce.
type AuthFunc func(nonce []byte) (*skaldpb.RelayFrame, error)

// AgentAuth admits an identity as agent of its own namespace.
func AgentAuth(id *Identity) AuthFunc {
	return func(nonce []byte) (*skaldpb.RelayFrame, error) {
		key := id.PublicKey()
		return signedAuth(id, nonce, &skaldpb.Auth{Role: &skaldpb.Auth_Agent{
			Agent: &skaldpb.AuthAgent{AgentEd25519Pub: key[:]},
		}})
	}
}

// ClientAuth admits an identity as authorised client of a namespace. An empty
// deviceToken means no push.
func ClientAuth(id *Identity, ns NamespaceID, deviceToken string, platform Platform) AuthFunc {
	return func(nonce []byte) (*skaldpb.RelayFrame, error) {
		key := id.PublicKey()
		return signedAuth(id, nonce, &skaldpb.Auth{Role: &skaldpb.Auth_Client{
			Client: &skaldpb.AuthClient{
				NamespaceId:      ns[:],
				ClientEd25519Pub: key[:],
				DeviceToken:      deviceToken,
				Platform:         platform,
			},
		}})
	}
}

// PairingAuth registers an identity as pending client, with the token of a
// pairing window.
func PairingAuth(id *Identity, ns NamespaceID, token PairingToken, deviceToken string, platform Platform) AuthFunc {
	return func(nonce []byte) (*skaldpb.RelayFrame, error) {
		key, exchange := id.PublicKey(), id.ExchangeKey()
		return signedAuth(id, nonce, &skaldpb.Auth{Role: &skaldpb.Auth_Pairing{
			Pairing: &skaldpb.AuthPairing{
				NamespaceId:      ns[:],
				ClientEd25519Pub: key[:],
				ClientX25519Pub:  exchange[:],
				PairingToken:     token[:],
				DeviceToken:      deviceToken,
				Platform:         platform,
			},
		}})
	}
}

func signedAuth(id *Identity, nonce []byte, auth *skaldpb.Auth) (*skaldpb.RelayFrame, error) {
	signature, err := id.SignChallenge(nonce)
	if err != nil {
		return nil, err
	}
	auth.Signature = signature
	return &skaldpb.RelayFrame{Frame: &skaldpb.RelayFrame_Auth{Auth: auth}}, nil
}

// MessageFrame returns the frame that carries a sealed message to a peer.
func MessageFrame(to PublicKey, s Sealed, live bool) *skaldpb.RelayFrame {
	return &skaldpb.RelayFrame{Frame: &skaldpb.RelayFrame_Message{Message: &skaldpb.Message{
		Ciphertext: s.Ciphertext,
		Nonce:      s.Nonce[:],
		Peer:       to[:],
		Live:       live,
	}}}
}

// EncodeMessage returns [MessageFrame] as the bytes of one binary WebSocket
// message.
func EncodeMessage(to PublicKey, s Sealed, live bool) ([]byte, error) {
	return encodeFrame(MessageFrame(to, s, live))
}

func encodeFrame(f *skaldpb.RelayFrame) ([]byte, error) {
	b, err := proto.Marshal(f)
	if err != nil {
		return nil, fmt.Errorf("failed to encode frame: %w", err)
	}
	return b, nil
}

// frameCarrier is the part of a connection that a handshake uses.
type frameCarrier interface {
	Receive(ctx context.Context) (*skaldpb.RelayFrame, error)
	Send(ctx context.Context, f *skaldpb.RelayFrame) error
}

// handshake answers the relay's challenge and returns the namespace to which the relay has
// admitted us. answered says that our Auth was written: after an error the relay may still
// have admitted us.
func handshake(ctx context.Context, c frameCarrier, auth AuthFunc) (ns NamespaceID, answered bool, err error) {
	f, err := c.Receive(ctx)
	if err != nil {
		return ns, false, fmt.Errorf("failed to wait for challenge: %w", err)
	}
	if err := refusal(f); err != nil {
		return ns, false, err
	}
	if f.GetChallenge() == nil {
		return ns, false, fmt.Errorf("%w: first frame is no challenge", ErrProtocol)
	}
	reply, err := auth(f.GetChallenge().GetNonce())
	if err != nil {
		return ns, false, err
	}
	if err := c.Send(ctx, reply); err != nil {
		return ns, true, fmt.Errorf("failed to answer challenge: %w", err)
	}
	f, err = c.Receive(ctx)
	if err != nil {
		return ns, true, fmt.Errorf("failed to wait for admission: %w", err)
	}
	if err := refusal(f); err != nil {
		return ns, true, err
	}
	if f.GetAuthOk() == nil {
		return ns, true, fmt.Errorf("%w: challenge was answered by another frame", ErrProtocol)
	}
	id, err := fixed32(f.GetAuthOk().GetNamespaceId())
	if err != nil {
		return ns, true, fmt.Errorf("%w: namespace: %w", ErrProtocol, err)
	}
	return id, true, nil
}

// refusal returns the error in an error frame. Before admission the relay may use either
// kind of error frame; both refuse us.
func refusal(f *skaldpb.RelayFrame) error {
	if e := f.GetAuthError(); e != nil {
		return &RelayError{Code: e.GetCode(), Message: e.GetMessage(), Auth: true}
	}
	if e := f.GetError(); e != nil {
		return &RelayError{Code: e.GetCode(), Message: e.GetMessage(), Auth: true}
	}
	return nil
}
