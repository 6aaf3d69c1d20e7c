package attest

import (
	"crypto/x509"

	"golang.org/x/crypto/cryptobyte"
	"golang.org/x/crypto/cryptobyte/asn1"
)

// Security levels, as Android numbers them.
const (
	levelSoftware  = 0
	levelTEE       = 1
	levelStrongBox = 2
)

// description is the key description, as far as it counts here.
type description struct {
	attestedBy int // security level of what has made the attestation
	keptBy     int // security level of what keeps the key
	challenge  []byte
}

func (d description) inHardware() bool { return hardware(d.attestedBy) && hardware(d.keptBy) }

func hardware(level int) bool { return level == levelTEE || level == levelStrongBox }

// describe reads the description in the first certificate, the only one that may have
// one.
func describe(certs []*x509.Certificate) (description, error) {
	for _, c := range certs[1:] {
		if has(c, descriptionOID) {
			return description{}, ErrOtherKey
		}
	}
	value, found := extension(certs[0], descriptionOID)
	if !found {
		return description{}, ErrNoKey
	}
	return parseDescription(value)
}

// parseDescription reads the DER of a key description: two versions with their security
// levels, the challenge, an id, and what the software and the hardware see to. The last
// two are lists in which Android adds something with each version; nothing in them
// counts here.
func parseDescription(der []byte) (description, error) {
	var d description
	var challenge, id, list cryptobyte.String
	var version int64
	all := cryptobyte.String(der)
	var s cryptobyte.String
	ok := all.ReadASN1(&s, asn1.SEQUENCE) && all.Empty() &&
		s.ReadASN1Integer(&version) && s.ReadASN1Enum(&d.attestedBy) &&
		s.ReadASN1Integer(&version) && s.ReadASN1Enum(&d.keptBy) &&
		s.ReadASN1(&challenge, asn1.OCTET_STRING) && s.ReadASN1(&id, asn1.OCTET_STRING) &&
		s.ReadASN1(&list, asn1.SEQUENCE) && s.ReadASN1(&list, asn1.SEQUENCE) && s.Empty()
	if !ok || d.attestedBy < levelSoftware || d.attestedBy > levelStrongBox || d.keptBy < levelSoftware || d.keptBy > levelStrongBox {
		return description{}, ErrDescription
	}
	d.challenge = challenge
	return d, nil
}
