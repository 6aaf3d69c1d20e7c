package attest

import (
	"crypto/rsa"
	"crypto/x509"
	"encoding/asn1"
	"encoding/base64"
	"slices"
	"strings"
	"time"
)

// Bounds of what is decoded. Devices send from three to five certificates of one or
// two kilobytes.
const (
	maxCertificates = 10
	maxEncoded      = 16 << 10 // characters of one certificate
	// maxRSA bounds what verifying one signature costs; the largest in use are of 4096.
	maxRSA = 8192 // bits
)

var (
	// descriptionOID is the extension in which a device describes an attested key.
	descriptionOID = asn1.ObjectIdentifier{1, 3, 6, 1, 4, 1, 11129, 2, 1, 17}
	// provisioningOID is in the certificates of keys that a device gets over the
	// network, for a few weeks each. Keys without it were put in at the factory.
	provisioningOID = asn1.ObjectIdentifier{1, 3, 6, 1, 4, 1, 11129, 2, 1, 30}
)

func decode(chain []string) ([]*x509.Certificate, error) {
	if len(chain) == 0 || len(chain) > maxCertificates {
		return nil, ErrSize
	}
	certs := make([]*x509.Certificate, len(chain))
	for i, text := range chain {
		if len(text) > maxEncoded {
			return nil, ErrSize
		}
		der, err := decodeBase64(text)
		if err != nil {
			return nil, ErrEncoding
		}
		if certs[i], err = x509.ParseCertificate(der); err != nil {
			return nil, ErrEncoding
		}
	}
	return certs, nil
}

// decodeBase64 takes either alphabet, with padding or without.
func decodeBase64(text string) ([]byte, error) {
	e := base64.StdEncoding
	if strings.ContainsAny(text, "-_") {
		e = base64.URLEncoding
	}
	if !strings.Contains(text, "=") {
		e = e.WithPadding(base64.NoPadding)
	}
	return e.Strict().DecodeString(text)
}

// reached walks up the chain to a root. Names are not compared: who signed is told by
// the signatures.
func (r *Roots) reached(certs []*x509.Certificate, now time.Time) error {
	fetched := slices.ContainsFunc(certs[1:], func(c *x509.Certificate) bool { return has(c, provisioningOID) })
	last := len(certs) - 1
	for i, c := range certs {
		// The first one is never taken for a root: only its signature says that
		// anything in it is true.
		if i > 0 && r.trusts(c) {
			if i != last {
				return ErrRoot
			}
			return nil // and what else is in its certificate does not count
		}
		if err := checkCritical(c); err != nil {
			return err
		}
		if i > 0 {
			if err := checkIssuer(c, i, now, fetched); err != nil {
				return err
			}
		}
		if i < last && !signed(c, certs[i+1]) {
			return ErrSignature
		}
	}
	if !r.signed(certs[last]) {
		return ErrRoot
	}
	return nil
}

// checkCritical refuses what a certificate says must be understood and is not. Some
// devices say so of the key description, which only the first one has by now.
func checkCritical(c *x509.Certificate) error {
	for _, oid := range c.UnhandledCriticalExtensions {
		if !oid.Equal(descriptionOID) {
			return ErrCritical
		}
	}
	return nil
}

// checkIssuer is for all certificates but the first and the root. What is absent is not
// demanded, since the oldest devices lack some of it; what is there has to hold.
//
// Dates count from both ends for keys that were fetched. Those of the factory stay in a
// device for as long as it lives, and nobody can give it others when they expire. The
// dates of the first certificate are the device's own words, from a clock that anybody
// may set, and count for nothing.
func checkIssuer(c *x509.Certificate, index int, now time.Time, fetched bool) error {
	if c.BasicConstraintsValid {
		bounded := c.MaxPathLen > 0 || c.MaxPathLenZero
		if !c.IsCA || bounded && index-1 > c.MaxPathLen {
			return ErrIssuer
		}
	}
	if c.KeyUsage != 0 && c.KeyUsage&x509.KeyUsageCertSign == 0 {
		return ErrIssuer
	}
	if now.Before(c.NotBefore) || fetched && now.After(c.NotAfter) {
		return ErrDate
	}
	return nil
}

// signed reports whether the key of by has signed c. CheckSignatureFrom would demand of
// by what old devices do not have.
func signed(c, by *x509.Certificate) bool {
	if k, ok := by.PublicKey.(*rsa.PublicKey); ok && k.N.BitLen() > maxRSA {
		return false
	}
	return by.CheckSignature(c.SignatureAlgorithm, c.RawTBSCertificate, c.Signature) == nil
}

func has(c *x509.Certificate, oid asn1.ObjectIdentifier) bool {
	_, found := extension(c, oid)
	return found
}

// extension is the value of an extension. x509 has refused a certificate that has one
// twice.
func extension(c *x509.Certificate, oid asn1.ObjectIdentifier) ([]byte, bool) {
	for _, e := range c.Extensions {
		if e.Id.Equal(oid) {
			return e.Value, true
		}
	}
	return nil, false
}
