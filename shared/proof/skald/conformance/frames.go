package conformance

import (
	"fmt"
	"slices"

	"google.golang.org/protobuf/proto"

	"blindpost/shared/dialect/skald/skaldpb"
)

// Frames that peers send.

func frameAuth(a *skaldpb.Auth) *skaldpb.RelayFrame {
	return &skaldpb.RelayFrame{Frame: &skaldpb.RelayFrame_Auth{Auth: a}}
}

func frameAuthorize(keys ...[]byte) *skaldpb.RelayFrame {
	return &skaldpb.RelayFrame{Frame: &skaldpb.RelayFrame_Authorize{Authorize: &skaldpb.Authorize{Clients: keys}}}
}

func framePairingStart(token []byte, ttl uint32) *skaldpb.RelayFrame {
	return &skaldpb.RelayFrame{Frame: &skaldpb.RelayFrame_PairingStart{
		PairingStart: &skaldpb.PairingStart{PairingToken: token, Ttl: ttl}}}
}

func framePairingStop() *skaldpb.RelayFrame {
	return &skaldpb.RelayFrame{Frame: &skaldpb.RelayFrame_PairingStop{PairingStop: &skaldpb.PairingStop{}}}
}

func framePresenceRequest() *skaldpb.RelayFrame {
	return &skaldpb.RelayFrame{Frame: &skaldpb.RelayFrame_PresenceRequest{PresenceRequest: &skaldpb.PresenceRequest{}}}
}

// parcel is a message as its sender sees it, apart from the address. The label
// is the beginning of the ciphertext, so that a failing test can say which
// message it means; the rest is random.
type parcel struct {
	ciphertext []byte
	nonce      []byte
	live       bool
}

const labelLength = 16

// parcel makes a new one of at least 48 bytes.
func (r *relay) parcel(format string, args ...any) parcel {
	label := fmt.Sprintf("%-*.*s", labelLength, labelLength, fmt.Sprintf(format, args...))
	p := parcel{ciphertext: append([]byte(label), randomBytes(32)...), nonce: randomBytes(12)}
	r.secrets.Add("payload of "+label, p.ciphertext[labelLength:])
	r.secrets.Add("nonce of "+label, p.nonce)
	return p
}

// liveParcel makes one for the live channel.
func (r *relay) liveParcel(format string, args ...any) parcel {
	p := r.parcel(format, args...)
	p.live = true
	return p
}

// parcels makes n of them.
func (r *relay) parcels(n int) []parcel {
	ps := make([]parcel, n)
	for i := range ps {
		ps[i] = r.parcel("message %d", i)
	}
	return ps
}

// grown returns m with a ciphertext so long that its frame to a peer has
// exactly size bytes.
func (m parcel) grown(size int) parcel {
	probe := m
	probe.ciphertext = slices.Clone(m.ciphertext)
	// The length prefixes grow with the content: come nearer until it fits.
	for {
		missing := size - proto.Size(probe.to(make([]byte, 32)))
		switch {
		case missing == 0:
			return probe
		case missing < 0:
			panic("no frame of that size")
		}
		probe.ciphertext = append(probe.ciphertext, randomBytes(max(1, missing-8))...)
	}
}

// to is the frame that carries m to a peer.
func (m parcel) to(key []byte) *skaldpb.RelayFrame {
	return &skaldpb.RelayFrame{Frame: &skaldpb.RelayFrame_Message{Message: &skaldpb.Message{
		Ciphertext: m.ciphertext, Nonce: m.nonce, Peer: key, Live: m.live,
	}}}
}

// label is what the story called it.
func labelOf(ciphertext []byte) string {
	if len(ciphertext) < labelLength {
		return "(no label)"
	}
	return string(ciphertext[:labelLength])
}

// relayOnly are the frames that only the relay may send, filled in as well as
// a forger could.
func relayOnly(id *identity) map[string]*skaldpb.RelayFrame {
	return map[string]*skaldpb.RelayFrame{
		"Challenge":     {Frame: &skaldpb.RelayFrame_Challenge{Challenge: &skaldpb.Challenge{Nonce: randomBytes(32)}}},
		"AuthOk":        {Frame: &skaldpb.RelayFrame_AuthOk{AuthOk: &skaldpb.AuthOk{NamespaceId: randomBytes(32)}}},
		"AuthError":     {Frame: &skaldpb.RelayFrame_AuthError{AuthError: &skaldpb.AuthError{Code: "unauthorized"}}},
		"AuthorizeOk":   {Frame: &skaldpb.RelayFrame_AuthorizeOk{AuthorizeOk: &skaldpb.AuthorizeOk{Authorized: 1}}},
		"PairingReady":  {Frame: &skaldpb.RelayFrame_PairingReady{PairingReady: &skaldpb.PairingReady{Ttl: 300}}},
		"PairingStopOk": {Frame: &skaldpb.RelayFrame_PairingStopOk{PairingStopOk: &skaldpb.PairingStopOk{}}},
		"ClientPaired": {Frame: &skaldpb.RelayFrame_ClientPaired{ClientPaired: &skaldpb.ClientPaired{
			ClientEd25519Pub: id.key, ClientX25519Pub: id.exchange, Platform: id.platform}}},
		"PeerOffline":  {Frame: &skaldpb.RelayFrame_PeerOffline{PeerOffline: &skaldpb.PeerOffline{Peer: id.key}}},
		"PresenceList": {Frame: &skaldpb.RelayFrame_PresenceList{PresenceList: &skaldpb.PresenceList{Online: [][]byte{id.key}}}},
		"PresenceEvent": {Frame: &skaldpb.RelayFrame_PresenceEvent{PresenceEvent: &skaldpb.PresenceEvent{
			Pubkey: id.key, Status: skaldpb.Status_STATUS_OFFLINE}}},
		"Error": {Frame: &skaldpb.RelayFrame_Error{Error: &skaldpb.Error{Code: "bad_request"}}},
	}
}

// codes are those of section 12.
var codes = []string{
	"challenge_timeout", "invalid_signature", "unauthorized", "not_found", "pairing_closed",
	"rate_limited", "payload_too_large", "queue_full", "bad_request",
}

// faultOf says what is wrong with a frame that the relay sent, whatever the
// story: fields of the wrong length, codes that do not exist, secrets in texts.
func (r *relay) faultOf(f *skaldpb.RelayFrame) string {
	if n := len(f.ProtoReflect().GetUnknown()); n > 0 {
		return fmt.Sprintf("carries %d bytes that the schema does not know", n)
	}
	wants := func(field []byte, n int) string {
		if len(field) != n {
			return fmt.Sprintf("has a field of %d bytes that must have %d", len(field), n)
		}
		return ""
	}
	switch f := f.GetFrame().(type) {
	case nil:
		return "is empty"
	case *skaldpb.RelayFrame_Challenge:
		return wants(f.Challenge.GetNonce(), 32)
	case *skaldpb.RelayFrame_AuthOk:
		return wants(f.AuthOk.GetNamespaceId(), 32)
	case *skaldpb.RelayFrame_AuthError:
		return r.faultOfError(f.AuthError.GetCode(), f.AuthError.GetMessage())
	case *skaldpb.RelayFrame_Error:
		return r.faultOfError(f.Error.GetCode(), f.Error.GetMessage())
	case *skaldpb.RelayFrame_Message:
		if fault := wants(f.Message.GetPeer(), 32); fault != "" {
			return fault
		}
		return wants(f.Message.GetNonce(), 12)
	case *skaldpb.RelayFrame_PeerOffline:
		return wants(f.PeerOffline.GetPeer(), 32)
	case *skaldpb.RelayFrame_PresenceList:
		for _, key := range f.PresenceList.GetOnline() {
			if fault := wants(key, 32); fault != "" {
				return fault
			}
		}
		return ""
	case *skaldpb.RelayFrame_PresenceEvent:
		if s := f.PresenceEvent.GetStatus(); s != skaldpb.Status_STATUS_ONLINE && s != skaldpb.Status_STATUS_OFFLINE {
			return "has no status"
		}
		return wants(f.PresenceEvent.GetPubkey(), 32)
	case *skaldpb.RelayFrame_ClientPaired:
		if fault := wants(f.ClientPaired.GetClientEd25519Pub(), 32); fault != "" {
			return fault
		}
		return wants(f.ClientPaired.GetClientX25519Pub(), 32)
	case *skaldpb.RelayFrame_AuthorizeOk, *skaldpb.RelayFrame_PairingReady, *skaldpb.RelayFrame_PairingStopOk:
		return ""
	}
	return "is none that a relay sends"
}

func (r *relay) faultOfError(code, message string) string {
	if !slices.Contains(codes, code) {
		return "has a code that section 12 does not know"
	}
	if what := r.secrets.In([]byte(message)); what != "" {
		return "tells " + what
	}
	return ""
}
