// Package attesttest makes key attestations as Android devices do, for tests: a maker
// of devices with a root of its own, and chains that are good or wrong in one way.
package attesttest

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/base64"
	"encoding/pem"
	"math/big"
	"slices"
	"testing"
	"time"
)

// The extensions of a chain.
var (
	Description  = asn1.ObjectIdentifier{1, 3, 6, 1, 4, 1, 11129, 2, 1, 17}
	Provisioning = asn1.ObjectIdentifier{1, 3, 6, 1, 4, 1, 11129, 2, 1, 30}
)

// Security levels.
const (
	Software  asn1.Enumerated = 0
	TEE       asn1.Enumerated = 1
	StrongBox asn1.Enumerated = 2
)

// KeyDescription is what the extension holds, with its lists as they are encoded.
type KeyDescription struct {
	Version     int
	AttestedBy  asn1.Enumerated
	KeptVersion int
	KeptBy      asn1.Enumerated
	Challenge   []byte
	ID          []byte
	BySoftware  asn1.RawValue
	ByHardware  asn1.RawValue
}

// Of describes a key in a TEE, with something in the lists that Android puts there: the
// time of its making under tag 701 and an origin under tag 702.
func Of(challenge []byte) KeyDescription {
	return KeyDescription{
		Version: 300, AttestedBy: TEE, KeptVersion: 300, KeptBy: TEE, Challenge: challenge, ID: []byte{},
		BySoftware: asn1.RawValue{FullBytes: []byte{0x30, 0x08, 0xbf, 0x85, 0x3d, 0x04, 0x02, 0x02, 0x01, 0x00}},
		ByHardware: asn1.RawValue{FullBytes: []byte{0x30, 0x07, 0xbf, 0x85, 0x3e, 0x03, 0x02, 0x01, 0x00}},
	}
}

// Encode is the DER of a description.
func (d KeyDescription) Encode(t testing.TB) []byte {
	t.Helper()
	b, err := asn1.Marshal(d)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// Challenge is that of a claim.
func Challenge(device, token string) []byte {
	h := sha256.New()
	for i, s := range []string{"agentknock-device-claim-v1", device, token} {
		if i > 0 {
			h.Write([]byte{0})
		}
		h.Write([]byte(s))
	}
	return h.Sum(nil)
}

// Maker makes devices and gives them keys to attest with.
type Maker struct {
	now  time.Time
	key  crypto.Signer
	root []byte
}

// NewMaker makes one whose root is valid at that time.
func NewMaker(t testing.TB, now time.Time) *Maker {
	t.Helper()
	return MakerOf(t, now, NewKey(t))
}

// MakerOf makes one with a key for its root.
func MakerOf(t testing.TB, now time.Time, key crypto.Signer) *Maker {
	t.Helper()
	m := &Maker{now: now, key: key}
	m.root = m.Root(t, now.Add(-10*365*24*time.Hour), now.Add(10*365*24*time.Hour))
	return m
}

// NewKey makes a key.
func NewKey(t testing.TB) crypto.Signer {
	t.Helper()
	k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// Root makes a certificate of the root's key.
func (m *Maker) Root(t testing.TB, from, until time.Time) []byte {
	t.Helper()
	c := m.certificate("Root", from, until)
	c.IsCA, c.BasicConstraintsValid, c.KeyUsage = true, true, x509.KeyUsageCertSign
	return Sign(t, c, c, m.key.Public(), m.key)
}

// PEM is the root as an operator has it in a file.
func (m *Maker) PEM() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: m.root})
}

func (m *Maker) certificate(name string, from, until time.Time) *x509.Certificate {
	return &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, NotBefore: from, NotAfter: until,
	}
}

// Sign makes a certificate, DER.
func Sign(t testing.TB, c, issuer *x509.Certificate, of crypto.PublicKey, by crypto.Signer) []byte {
	t.Helper()
	der, err := x509.CreateCertificate(rand.Reader, c, issuer, of, by)
	if err != nil {
		t.Fatal(err)
	}
	return der
}

// Chain is what a device sends: the certificate of the attested key, that of the key
// which attests, an intermediate one and the root. Change changes each of the first
// three, by its index, before it is signed.
type Chain struct {
	Description []byte // DER; nil for none
	Change      func(index int, c *x509.Certificate)
	// Keys are those of the first three; nil makes them.
	Keys []crypto.Signer
}

// Make makes a chain, DER.
func (m *Maker) Make(t testing.TB, o Chain) [][]byte {
	t.Helper()
	keys := o.Keys
	for len(keys) < 3 {
		keys = append(keys, NewKey(t))
	}
	year := 365 * 24 * time.Hour
	leaf := m.certificate("Android Keystore Key", time.Unix(0, 0), time.Date(2048, 1, 1, 0, 0, 0, 0, time.UTC))
	leaf.KeyUsage = x509.KeyUsageDigitalSignature
	if o.Description != nil {
		leaf.ExtraExtensions = []pkix.Extension{{Id: Description, Value: o.Description}}
	}
	certs := []*x509.Certificate{leaf}
	for _, name := range []string{"Attestation", "Intermediate"} {
		c := m.certificate(name, m.now.Add(-year), m.now.Add(year))
		c.IsCA, c.BasicConstraintsValid, c.KeyUsage = true, true, x509.KeyUsageCertSign
		certs = append(certs, c)
	}
	root, err := x509.ParseCertificate(m.root)
	if err != nil {
		t.Fatal(err)
	}
	certs = append(certs, root)
	chain := [][]byte{}
	for i, c := range certs[:3] {
		if o.Change != nil {
			o.Change(i, c)
		}
		by := m.key
		if i < 2 {
			by = keys[i+1]
		}
		chain = append(chain, Sign(t, c, certs[i+1], keys[i].Public(), by))
	}
	return append(chain, slices.Clone(m.root))
}

// Attest makes a good chain for a claim, in base64.
func (m *Maker) Attest(t testing.TB, device, token string) []string {
	t.Helper()
	return Base64(m.Make(t, Chain{Description: Of(Challenge(device, token)).Encode(t)}))
}

// Base64 writes a chain as it stands in a claim.
func Base64(chain [][]byte) []string {
	text := make([]string, len(chain))
	for i, der := range chain {
		text[i] = base64.StdEncoding.EncodeToString(der)
	}
	return text
}
