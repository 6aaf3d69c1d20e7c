package conformance

import (
	"testing"

	"blindpost/shared/dialect/skald/skaldpb"
)

var section4Forged = []story{
	{Name: "Section4_SmallOrderKeysAreRefused", Tell: section4SmallOrder},
	{Name: "Section4_SignaturesAreCanonical", Tell: section4Canonical},
}

// Public keys of small order are refused, in each encoding and role, with
// signatures that a lenient verifier accepts.
func section4SmallOrder(t *testing.T, r *relay) {
	h := r.home(t)
	agent := h.dialAgent()
	token := h.openWindow(agent)
	for _, point := range smallOrder {
		id := &identity{name: point.name, key: unhex(point.key), exchange: randomBytes(32),
			token: "device", platform: skaldpb.Platform_PLATFORM_IOS}
		for role, auth := range map[string]*skaldpb.Auth{
			"agent":   id.authAgent(),
			"client":  id.authClient(h.ns),
			"pairing": id.authPairing(h.ns, token),
		} {
			t.Run(role+" of "+point.name, func(t *testing.T) {
				p := r.stranger(t)
				auth.Signature = forge(t, id.key, challengeText(p.nonce))
				p.send(frameAuth(auth))
				p.wantRefusal("invalid_signature")
			})
		}
	}
	agent.wantNothing()
}

// Signatures have one encoding.
func section4Canonical(t *testing.T, r *relay) {
	for name, sign := range map[string]func(*identity, []byte) []byte{
		"S beyond the order": func(id *identity, nonce []byte) []byte { return stretched(id.sign(nonce)) },
		"R not reduced":      func(id *identity, nonce []byte) []byte { return twistedR(id, challengeText(nonce)) },
		"one bit off": func(id *identity, nonce []byte) []byte {
			s := id.sign(nonce)
			s[0] ^= 1
			return s
		},
		"zeros": func(*identity, []byte) []byte { return make([]byte, 64) },
	} {
		t.Run(name, func(t *testing.T) {
			id := newIdentity(r, "agent")
			p := r.stranger(t)
			auth := id.authAgent()
			auth.Signature = sign(id, p.nonce)
			p.send(frameAuth(auth))
			p.wantRefusal("invalid_signature")
		})
	}
}
