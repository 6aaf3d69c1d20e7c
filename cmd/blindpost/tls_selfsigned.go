package main

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
)

// A self-signed certificate lives for a year, which all clients accept, and is
// replaced when less than a month is left.
const (
	selfSignedLife  = 365 * 24 * time.Hour
	selfSignedRenew = 30 * 24 * time.Hour
	selfSignedRetry = time.Minute // after a failure, so that not every handshake tries
)

// Files in the certificate folder. The first holds certificate and key and is
// what counts: one file is replaced in one step. The second is a copy of the
// certificate alone, to hand to clients that shall trust it.
const (
	selfSignedFile   = "localhost.pem"
	selfSignedPublic = "localhost.crt"
)

// selfSigned is a certificate for this machine that it signs itself.
type selfSigned struct {
	dir   string
	names []string
	now   func() time.Time
	log   *slog.Logger

	mu    sync.Mutex
	cert  *tls.Certificate
	tried time.Time // when a replacement failed
}

// localNames are the names of this machine for a certificate: loopback, and the
// host name, if it can stand in a certificate.
func localNames(hostname string) []string {
	names := []string{"localhost", "127.0.0.1", "::1"}
	hostname = strings.ToLower(strings.TrimSuffix(hostname, "."))
	if slices.Contains(names, hostname) || len(hostname) > 253 {
		return names
	}
	for label := range strings.SplitSeq(hostname, ".") {
		if !isLabel(label) {
			return names
		}
	}
	return append(names, hostname)
}

// isLabel reports whether l can stand between two dots of a host name.
func isLabel(l string) bool {
	const letters = "abcdefghijklmnopqrstuvwxyz0123456789-"
	return l != "" && len(l) <= 63 && l[0] != '-' && l[len(l)-1] != '-' && strings.Trim(l, letters) == ""
}

// newSelfSigned reads the certificate in dir, or makes one.
func newSelfSigned(dir string, names []string, now func() time.Time, log *slog.Logger) (*selfSigned, error) {
	s := &selfSigned{dir: dir, names: names, now: now, log: log}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("failed to make the certificate folder: %w", err)
	}
	cert, err := s.read()
	switch {
	case errors.Is(err, fs.ErrNotExist):
		log.Info("making a certificate for this machine", "names", names)
	case err != nil:
		log.Warn("replacing a certificate that cannot be used", "error", err)
	case !s.fits(cert):
		log.Info("replacing a certificate that ends soon or has other names", "names", names)
	default:
		s.cert = cert
		return s, s.publish(cert)
	}
	if s.cert, err = s.create(); err != nil {
		return nil, err
	}
	return s, nil
}

// GetCertificate returns the certificate, and makes a new one when it ends soon.
func (s *selfSigned) GetCertificate(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.fits(s.cert) || s.now().Sub(s.tried).Abs() < selfSignedRetry {
		return s.cert, nil
	}
	fresh, err := s.create()
	if err != nil {
		s.tried = s.now()
		s.log.Error("failed to replace the certificate of this machine", "error", err)
		return s.cert, nil
	}
	s.log.Info("replaced the certificate of this machine", "expires", fresh.Leaf.NotAfter)
	s.cert = fresh
	return fresh, nil
}

// fits reports whether a certificate has our names and lives long enough.
func (s *selfSigned) fits(c *tls.Certificate) bool {
	now := s.now()
	if now.Before(c.Leaf.NotBefore) || c.Leaf.NotAfter.Sub(now) < selfSignedRenew {
		return false
	}
	return !slices.ContainsFunc(s.names, func(n string) bool { return c.Leaf.VerifyHostname(n) != nil })
}

// read reads the certificate, and makes its file private: it holds the key.
func (s *selfSigned) read() (*tls.Certificate, error) {
	name := filepath.Join(s.dir, selfSignedFile)
	data, err := os.ReadFile(name)
	if err != nil {
		return nil, fmt.Errorf("failed to read the certificate of this machine: %w", err)
	}
	c, err := tls.X509KeyPair(data, data)
	if err != nil {
		return nil, fmt.Errorf("failed to read the certificate of this machine: %w", err)
	}
	if err := os.Chmod(name, 0o600); err != nil {
		return nil, fmt.Errorf("failed to protect the key of this machine: %w", err)
	}
	return &c, nil
}

// create makes a certificate and puts it into the folder.
func (s *selfSigned) create() (*tls.Certificate, error) {
	certPEM, keyPEM, err := makeSelfSigned(s.names, s.now())
	if err != nil {
		return nil, fmt.Errorf("failed to make a certificate: %w", err)
	}
	c, err := tls.X509KeyPair(certPEM, keyPEM)
	if err != nil {
		return nil, fmt.Errorf("failed to make a certificate: %w", err)
	}
	if err := writeFile(filepath.Join(s.dir, selfSignedFile), slices.Concat(certPEM, keyPEM), 0o600); err != nil {
		return nil, err
	}
	return &c, s.publish(&c)
}

// publish keeps the public copy equal to the certificate.
func (s *selfSigned) publish(c *tls.Certificate) error {
	name := filepath.Join(s.dir, selfSignedPublic)
	want := encodePEM("CERTIFICATE", c.Leaf.Raw)
	if have, err := os.ReadFile(name); err == nil && bytes.Equal(have, want) {
		return nil
	}
	return writeFile(name, want, 0o644)
}

// makeSelfSigned makes a key and a certificate for the names.
func makeSelfSigned(names []string, now time.Time) (certPEM, keyPEM []byte, err error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	t := &x509.Certificate{ // package x509 draws the serial number
		Subject:               pkix.Name{Organization: []string{"Blindpost"}, CommonName: names[0]},
		NotBefore:             now.Add(-time.Hour), // for clients whose clock is late
		NotAfter:              now.Add(selfSignedLife),
		KeyUsage:              x509.KeyUsageDigitalSignature,
		ExtKeyUsage:           []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		BasicConstraintsValid: true,
	}
	for _, n := range names {
		if ip := net.ParseIP(n); ip != nil {
			t.IPAddresses = append(t.IPAddresses, ip)
		} else {
			t.DNSNames = append(t.DNSNames, n)
		}
	}
	cert, err := x509.CreateCertificate(rand.Reader, t, t, key.Public(), key)
	if err != nil {
		return nil, nil, err
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, nil, err
	}
	return encodePEM("CERTIFICATE", cert), encodePEM("PRIVATE KEY", keyDER), nil
}

func encodePEM(kind string, der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
}

// writeFile replaces a file in one step: a reader gets the old content or the
// new one, also after a crash.
func writeFile(name string, data []byte, mode fs.FileMode) (err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("failed to write %s: %w", filepath.Base(name), err)
		}
	}()
	f, err := os.CreateTemp(filepath.Dir(name), "."+filepath.Base(name)+".*") // mode 0600
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.Remove(f.Name()))
		}
	}()
	_, err = f.Write(data)
	err = errors.Join(err, f.Chmod(mode), f.Sync(), f.Close())
	if err != nil {
		return err
	}
	return os.Rename(f.Name(), name)
}
