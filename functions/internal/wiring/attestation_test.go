package wiring_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"blindpost/functions/internal/wiring"
	"blindpost/shared/proof/attesttest"
)

// The device of the samples.
const (
	sampleDevice = "01K5XT7Q2M8V3N6B4C9D0E1F2G"
	sampleToken  = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8"
)

// withAttestation changes the sample of a claim into one that has a chain.
func withAttestation(t *testing.T, chain []string) (was, is string) {
	t.Helper()
	b, err := json.Marshal(map[string]any{"type": "android", "certificate_chain": chain})
	if err != nil {
		t.Fatal(err)
	}
	is = strings.ReplaceAll(`{"attestation":`+string(b)+`,"device_token"`, `"`, `\"`)
	return `{\"device_token\"`, is
}

// The settings reach the claim: what is demanded, and the roots, from a file.
func TestAttestation(t *testing.T) {
	maker, other := attesttest.NewMaker(t, sampleTime), attesttest.NewMaker(t, sampleTime)
	roots := filepath.Join(t.TempDir(), "roots.pem")
	if err := os.WriteFile(roots, maker.PEM(), 0o600); err != nil {
		t.Fatal(err)
	}
	good, bad := maker.Attest(t, sampleDevice, sampleToken), other.Attest(t, sampleDevice, sampleToken)
	for demand, want := range map[string][3]int{"": {200, 200, 200}, "off": {200, 200, 200}, "check": {200, 403, 200}, "require": {403, 403, 200}} {
		env := []string{"BLINDPOST_AGENTKNOCK_ATTESTATION=" + demand}
		if want[1] == 403 {
			env = append(env, "BLINDPOST_AGENTKNOCK_ATTESTATION_ROOTS="+roots)
		}
		for i, chain := range [][]string{nil, bad, good} {
			d := newDesk(t, wiring.Connect, env...)
			var changes []string
			if chain != nil {
				was, is := withAttestation(t, chain)
				changes = append(changes, was, is)
			}
			d.http("http-claim.json", want[i], "", changes...)
			known := 200
			if want[i] != 200 {
				known = 404
			}
			d.http("http-push.json", known, "")
		}
	}
}

// Without its roots the function refuses everything, rather than accept devices unchecked.
func TestAttestationWithoutItsRoots(t *testing.T) {
	d := newDesk(t, wiring.Connect, "BLINDPOST_AGENTKNOCK_ATTESTATION=check", "BLINDPOST_AGENTKNOCK_ATTESTATION_ROOTS="+filepath.Join(t.TempDir(), "none.pem"))
	out, err := d.sample(wiring.Connect, "http-claim.json")
	if err == nil || !strings.Contains(err.Error(), "BLINDPOST_AGENTKNOCK_ATTESTATION_ROOTS ") {
		t.Errorf("it answers %s, %v", out, err)
	}
}
