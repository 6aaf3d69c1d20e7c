package relay_test

import (
	"blindpost/shared/dialect/skald/skaldpb"
	"bytes"
	"crypto/ed25519"
	"crypto/sha256"
	"errors"
	"fmt"
	"google.golang.org/protobuf/proto"
	"slices"
)

// wellFormed says what is wrong with a frame of the relay.
func wellFormed(f *skaldpb.RelayFrame) error {
	size := func(b []byte, n int) error {
		if len(b) != n {
			return fmt.Errorf("has %d bytes where %d belong: %T", len(b), n, f.GetFrame())
		}
		return nil
	}
	code := func(code, message string) error {
		if !slices.Contains(errorCodes, code) || message == "" {
			return fmt.Errorf("has no code of section 12: %T", f.GetFrame())
		}
		return nil
	}
	switch f := f.GetFrame().(type) {
	case *skaldpb.RelayFrame_AuthOk:
		return size(f.AuthOk.GetNamespaceId(), 32)
	case *skaldpb.RelayFrame_AuthError:
		return code(f.AuthError.GetCode(), f.AuthError.GetMessage())
	case *skaldpb.RelayFrame_Error:
		return code(f.Error.GetCode(), f.Error.GetMessage())
	case *skaldpb.RelayFrame_Message:
		if len(f.Message.GetCiphertext()) == 0 {
			return errors.New("has no ciphertext")
		}
		return errors.Join(size(f.Message.GetPeer(), 32), size(f.Message.GetNonce(), 12))
	case *skaldpb.RelayFrame_PeerOffline:
		return size(f.PeerOffline.GetPeer(), 32)
	case *skaldpb.RelayFrame_PresenceEvent:
		if s := f.PresenceEvent.GetStatus(); s != skaldpb.Status_STATUS_ONLINE && s != skaldpb.Status_STATUS_OFFLINE {
			return errors.New("has no status")
		}
		return size(f.PresenceEvent.GetPubkey(), 32)
	case *skaldpb.RelayFrame_PresenceList:
		for _, key := range f.PresenceList.GetOnline() {
			if err := size(key, 32); err != nil {
				return err
			}
		}
		return nil
	case *skaldpb.RelayFrame_ClientPaired:
		return errors.Join(size(f.ClientPaired.GetClientEd25519Pub(), 32), size(f.ClientPaired.GetClientX25519Pub(), 32))
	case *skaldpb.RelayFrame_AuthorizeOk, *skaldpb.RelayFrame_PairingReady, *skaldpb.RelayFrame_PairingStopOk:
		return nil
	}
	return fmt.Errorf("no relay sends after the challenge: %T", f.GetFrame())
}

var errorCodes = []string{
	"challenge_timeout", "invalid_signature", "unauthorized", "not_found", "pairing_closed",
	"rate_limited", "payload_too_large", "queue_full", "bad_request",
}

// actor is a peer with a key. The agent is number 0.
type actor struct {
	key      ed25519.PrivateKey
	pub      []byte
	exchange []byte
	token    string
}

var actors = func() (all []actor) {
	for i := range byte(3) {
		key := ed25519.NewKeyFromSeed(bytes.Repeat([]byte{i + 1}, ed25519.SeedSize))
		all = append(all, actor{
			key: key, pub: key.Public().(ed25519.PublicKey),
			exchange: bytes.Repeat([]byte{0x40 + i}, 32), token: fmt.Sprint("device-token-of-actor-", i),
		})
	}
	return all
}()

// namespace is that of the agent.
var namespace = actors[0].namespace()

// namespace is the one that the actor would own as an agent.
func (a actor) namespace() []byte {
	sum := sha256.Sum256(slices.Concat([]byte("skald-namespace-v1\x00"), a.pub))
	return sum[:]
}

func (a actor) sign(nonce []byte) []byte {
	return ed25519.Sign(a.key, slices.Concat([]byte("skald-relay-auth-v1\x00"), nonce))
}

// auth makes the Auth of an actor in the role of agent, client or pairing client.
func (a actor) auth(role int, nonce, pairing []byte) *skaldpb.RelayFrame {
	x := &skaldpb.Auth{Signature: a.sign(nonce)}
	switch role % 3 {
	case 0:
		x.Role = &skaldpb.Auth_Agent{Agent: &skaldpb.AuthAgent{AgentEd25519Pub: a.pub}}
	case 1:
		x.Role = &skaldpb.Auth_Client{Client: &skaldpb.AuthClient{
			NamespaceId: namespace, ClientEd25519Pub: a.pub, DeviceToken: a.token, Platform: skaldpb.Platform_PLATFORM_IOS}}
	case 2:
		x.Role = &skaldpb.Auth_Pairing{Pairing: &skaldpb.AuthPairing{
			NamespaceId: namespace, ClientEd25519Pub: a.pub, ClientX25519Pub: a.exchange,
			PairingToken: pairing, DeviceToken: a.token, Platform: skaldpb.Platform_PLATFORM_ANDROID}}
	}
	return &skaldpb.RelayFrame{Frame: &skaldpb.RelayFrame_Auth{Auth: x}}
}

func marshal(f *skaldpb.RelayFrame) []byte {
	b, err := proto.Marshal(f)
	if err != nil {
		panic(err) // ours are all well-formed
	}
	return b
}
