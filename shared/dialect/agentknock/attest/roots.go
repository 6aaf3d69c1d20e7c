package attest

import (
	"bytes"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"os"
)

// Bounds of a file with roots. Each of them can cost a signature to check.
const (
	maxRootsFile = 1 << 20
	maxRoots     = 32
)

// Roots are the keys that chains have to lead to. Without any, no chain is good.
type Roots struct {
	certs []*x509.Certificate // one for each key
	keys  map[string]bool
}

// ReadRoots reads the roots from a PEM file with their certificates.
func ReadRoots(file string) (*Roots, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, fmt.Errorf("failed to read the roots: %w", err)
	}
	b, err := io.ReadAll(io.LimitReader(f, maxRootsFile+1))
	if err = errors.Join(err, f.Close()); err != nil {
		return nil, fmt.Errorf("failed to read the roots: %w", err)
	}
	return ParseRoots(b)
}

// ParseRoots reads the roots from PEM. Nothing but certificates may be in it, but for
// text around them, so that a file that was damaged does not pass for one with fewer.
func ParseRoots(b []byte) (*Roots, error) {
	if len(b) > maxRootsFile {
		return nil, fmt.Errorf("failed to read the roots: there are more than %d bytes", maxRootsFile)
	}
	marks := bytes.Count(b, []byte("-----BEGIN"))
	r := &Roots{keys: map[string]bool{}}
	blocks := 0
	for block, rest := pem.Decode(b); block != nil; block, rest = pem.Decode(rest) {
		blocks++
		if block.Type != "CERTIFICATE" {
			return nil, fmt.Errorf("failed to read the roots: number %d is no certificate", blocks)
		}
		c, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, fmt.Errorf("failed to read root %d: %w", blocks, err)
		}
		if key := string(c.RawSubjectPublicKeyInfo); !r.keys[key] {
			r.keys[key] = true
			r.certs = append(r.certs, c)
		}
	}
	switch {
	case blocks == 0:
		return nil, errors.New("failed to read the roots: there is no certificate in PEM")
	case blocks != marks:
		return nil, errors.New("failed to read the roots: a certificate is not whole")
	case len(r.certs) > maxRoots:
		return nil, fmt.Errorf("failed to read the roots: there are more than %d", maxRoots)
	}
	return r, nil
}

// trusts reports whether a certificate is of the key of a root.
func (r *Roots) trusts(c *x509.Certificate) bool {
	return r != nil && r.keys[string(c.RawSubjectPublicKeyInfo)]
}

// signed reports whether one of the roots has signed a certificate.
func (r *Roots) signed(c *x509.Certificate) bool {
	if r == nil {
		return false
	}
	for _, root := range r.certs {
		if signed(c, root) {
			return true
		}
	}
	return false
}
