package agentknock

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"

	"blindpost/shared/dialect/agentknock/attest"
)

// attestation is the proof that a device sends with its claim. The specification lists no
// types, so only the chain is checked.
type attestation struct {
	chain []string
}

// parseAttestation reads the attestation of a claim, nil if there is none. It reports
// false if the form is wrong.
func parseAttestation(raw []byte) (*attestation, bool) {
	if raw == nil || string(raw) == "null" {
		return nil, true
	}
	var a attestation
	seen := map[string]bool{}
	err := members(raw, func(name string, raw []byte) error {
		if name != "type" && name != "certificate_chain" {
			return nil
		}
		if seen[name] {
			return errTwice
		}
		seen[name] = true
		switch name {
		case "type":
			if _, isText := unquote(raw); !isText {
				return errNotJSON
			}
		case "certificate_chain":
			if string(raw) == "null" || json.Unmarshal(raw, &a.chain) != nil {
				return errNotJSON
			}
		}
		return nil
	})
	return &a, err == nil && seen["type"] && seen["certificate_chain"]
}

// unattested is why a claim without a valid attestation is refused. Its texts repeat
// nothing of the claim.
type unattested struct {
	code   string
	reason error
}

func (u *unattested) Error() string   { return u.reason.Error() }
func (u *unattested) Unwrap() error   { return u.reason }
func (u *unattested) message() string { return "The device is not attested: " + u.Error() + "." }

var errNoAttestation = errors.New("this relay demands an attestation")

// attested checks that a new claim has the attestation that the operator demands.
func (d *Dialect) attested(a *attestation, device, token string) error {
	switch demand := d.attestation.Demand; {
	case demand == attest.Off:
		return nil
	case a == nil && demand == attest.Check:
		return nil
	case a == nil:
		return &unattested{"ATTESTATION_REQUIRED", errNoAttestation}
	}
	if err := d.attestation.Roots.Verify(a.chain, d.core.Now(), challenges(device, token)...); err != nil {
		return &unattested{"ATTESTATION_INVALID", err}
	}
	return nil
}

// challenges are those that an attestation may answer. The specification does not say
// whether they contain the token as the text of the claim or as the bytes that it encodes.
// Both are bound to the same device and token, and cannot be confused, because they
// differ in length.
func challenges(device, token string) [][]byte {
	of := func(token string) []byte {
		sum := sha256.Sum256([]byte("agentknock-device-claim-v1\x00" + device + "\x00" + token))
		return sum[:]
	}
	all := [][]byte{of(token)}
	if raw, err := base64.RawURLEncoding.DecodeString(token); err == nil {
		all = append(all, of(string(raw)))
	}
	return all
}
