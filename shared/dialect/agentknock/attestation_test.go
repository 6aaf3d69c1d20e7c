package agentknock

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"log/slog"
	"strings"
	"testing"

	peer "blindpost/shared/client/agentknock"
	"blindpost/shared/dialect/agentknock/attest"
	"blindpost/shared/proof/attesttest"
	"blindpost/shared/relay"
	"blindpost/shared/table"
)

// demanding sets what the relay of a stage demands of attestations.
func (s *stage) demanding(d attest.Demand, maker *attesttest.Maker) {
	s.t.Helper()
	roots, err := attest.ParseRoots(maker.PEM())
	if err != nil {
		s.t.Fatal(err)
	}
	s.knock = New(s.relay, Options{Limits: DefaultLimits(), Pusher: stagePusher{s}, Attestation: attest.Policy{Demand: d, Roots: roots}})
}

func claimWith(t *testing.T, token string, attestation any) string {
	t.Helper()
	b, err := json.Marshal(map[string]any{"device_token": token, "attestation": attestation})
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func attested(chain []string) map[string]any {
	return map[string]any{"type": "android", "certificate_chain": chain}
}

func TestClaimsUnderADemand(t *testing.T) {
	maker, other := attesttest.NewMaker(t, stageStart), attesttest.NewMaker(t, stageStart)
	token := peer.NewToken()
	good := maker.Attest(t, stageDevice, token)
	raw, err := base64.RawURLEncoding.DecodeString(token)
	if err != nil {
		t.Fatal(err)
	}
	const required, invalid = "ATTESTATION_REQUIRED", "ATTESTATION_INVALID"
	for _, tt := range []struct {
		name           string
		attestation    any
		check, require string // code of the refusal, "" for none
	}{
		{"none", nil, "", required},
		{"good", attested(good), "", ""},
		{"of another type", map[string]any{"type": "android_key", "certificate_chain": good}, "", ""},
		{"with more members", map[string]any{"type": "android", "certificate_chain": good, "x": 1}, "", ""},
		{"for the bytes of the token", attested(maker.Attest(t, stageDevice, string(raw))), "", ""},
		{"for another token", attested(maker.Attest(t, stageDevice, peer.NewToken())), invalid, invalid},
		{"for another device", attested(maker.Attest(t, "01KJME0000DEV1CE0000000001", token)), invalid, invalid},
		{"of another maker", attested(other.Attest(t, stageDevice, token)), invalid, invalid},
		{"empty", attested([]string{}), invalid, invalid},
		{"garbage", attested([]string{"!!", "AAAA"}), invalid, invalid},
		{"a hundred certificates", attested(append(good[:1:1], make([]string, 99)...)), invalid, invalid},
		{"no chain", map[string]any{"type": "android"}, "INVALID_REQUEST", "INVALID_REQUEST"},
		{"no type", map[string]any{"certificate_chain": good}, "INVALID_REQUEST", "INVALID_REQUEST"},
		{"text", "android", "INVALID_REQUEST", "INVALID_REQUEST"},
	} {
		for demand, code := range map[attest.Demand]string{attest.Check: tt.check, attest.Require: tt.require} {
			t.Run(tt.name+", "+demand.String(), func(t *testing.T) {
				s := newStage(t, true)
				s.demanding(demand, maker)
				status, got, _ := s.ask("POST", stageDevice+"/claim", "", jsonType, claimWith(t, token, tt.attestation))
				want := map[string]int{"": 200, required: 403, invalid: 403, "INVALID_REQUEST": 400}[code]
				if status != want || code != "" && (got["error"] != code || got["message"] == "") {
					t.Errorf("%d %v, want %d %s", status, got, want, code)
				}
				if left := s.left(); (len(left) > 0) != (code == "") {
					t.Errorf("%d items are stored", len(left))
				}
				// Nothing has come of it that would be in the way of a good one.
				status, got, _ = s.ask("POST", stageDevice+"/claim", "", jsonType, claimWith(t, token, attested(good)))
				if status != 200 {
					t.Errorf("then a good one: %d %v", status, got)
				}
			})
		}
	}
}

// left is what there is in the table about the device of a stage.
func (s *stage) left() []table.Item {
	all := s.everything(relay.GroupPrefix)
	return append(all, s.everything(devicePartition)...)
}

// The same claim succeeds again, whatever attestation it has; and a valid attestation does
// not give the id to another token.
func TestAttestedOnce(t *testing.T) {
	s := newStage(t, true)
	maker := attesttest.NewMaker(t, s.now)
	token, second := peer.NewToken(), peer.NewToken()
	short := maker.Make(t, attesttest.Chain{Description: attesttest.Of(attesttest.Challenge(stageDevice, token)).Encode(t)})
	ask := func(what, token string, attestation any, want int) {
		t.Helper()
		if status, got, _ := s.ask("POST", stageDevice+"/claim", "", jsonType, claimWith(t, token, attestation)); status != want {
			t.Errorf("%s: %d %v, want %d", what, status, got, want)
		}
	}
	s.demanding(attest.Require, maker)
	ask("none", token, nil, 403)
	ask("good", token, attested(attesttest.Base64(short)), 200)
	ask("again", token, attested(attesttest.Base64(short)), 200)
	ask("again, without", token, nil, 200)
	ask("somebody else", second, attested(maker.Attest(t, stageDevice, second)), 409)
	if status, got, _ := s.ask("POST", stageDevice+"/delete", token, jsonType, `{}`); status != 200 {
		t.Fatal(status, got)
	}
	ask("after it was deleted", token, nil, 403)
	ask("by another token, with its own", second, attested(maker.Attest(t, stageDevice, second)), 200)
}

// A member in another letter case is another member, and one that is there twice is
// refused: two readers could use different ones.
func TestFormOfAttestations(t *testing.T) {
	for raw, want := range map[string]bool{
		`{"type":"a","certificate_chain":[]}`:                           true,
		`{"type":"a","certificate_chain":["x"],"y":{"type":1},"y":2}`:   true,
		`{"type":"a","Certificate_Chain":[]}`:                           false,
		`{"type":"a","type":"a","certificate_chain":[]}`:                false,
		`{"type":"a","certificate_chain":[],"certificate_chain":["x"]}`: false,
		`{"type":"a","certificate_chain":null}`:                         false,
		`{"type":"a","certificate_chain":"x"}`:                          false,
		`{"type":"a","certificate_chain":[1]}`:                          false,
		`{"type":null,"certificate_chain":[]}`:                          false,
		`[]`:                                                            false, `{}`: false, `false`: false,
	} {
		if a, ok := parseAttestation([]byte(raw)); ok != want {
			t.Errorf("%s: %+v, %v", raw, a, ok)
		}
	}
}

// The challenge as the specification has it, written out.
func TestChallenge(t *testing.T) {
	token := peer.NewToken()
	sum := sha256.Sum256([]byte("agentknock-device-claim-v1\x00" + stageDevice + "\x00" + token))
	if got := challenges(stageDevice, token); len(got) != 2 || !bytes.Equal(got[0], sum[:]) || bytes.Equal(got[0], got[1]) {
		t.Errorf("got %x", got)
	}
}

// The log says why a claim was refused, and nothing of what was in it.
func TestRefusedClaimIsLogged(t *testing.T) {
	s := newStage(t, true)
	maker := attesttest.NewMaker(t, s.now)
	var log bytes.Buffer
	o := relay.Options{Table: s.durable, Queue: stageQueue{s}, Front: stageFront{s}, Log: slog.New(slog.NewTextHandler(&log, nil)), Now: s.clock, Random: rand.Reader, NewID: func() string { return "x" }}
	s.relay = relay.New(o)
	s.demanding(attest.Require, maker)
	token := peer.NewToken()
	chain := maker.Attest(t, stageDevice, peer.NewToken())
	if status, got, _ := s.ask("POST", stageDevice+"/claim", "", jsonType, claimWith(t, token, attested(chain))); status != 403 {
		t.Fatal(status, got)
	}
	if !strings.Contains(log.String(), attest.ErrChallenge.Error()) {
		t.Errorf("the log has %q", &log)
	}
	for _, secret := range []string{stageDevice, token, chain[0][:20]} {
		if strings.Contains(log.String(), secret) {
			t.Errorf("%q is in the log: %s", secret, &log)
		}
	}
}
