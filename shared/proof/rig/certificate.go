package rig

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// Certificate is one for 127.0.0.1 and the name relay, in memory and in files.
type Certificate struct {
	Pair      tls.Certificate
	Cert, Key string // paths of PEM files
	Roots     *x509.CertPool
}

// NewCertificate makes one that is valid at any time that a test may pretend.
func NewCertificate(t testing.TB) Certificate {
	t.Helper()
	must := func(err error) {
		if err != nil {
			t.Fatalf("failed to make a certificate: %v", err)
		}
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(err)
	template := &x509.Certificate{
		SerialNumber:          big.NewInt(1),
		NotBefore:             time.Date(1999, 1, 1, 0, 0, 0, 0, time.UTC), // a bubble begins in 2000
		NotAfter:              time.Date(2100, 1, 1, 0, 0, 0, 0, time.UTC),
		DNSNames:              []string{"relay"},
		IPAddresses:           []net.IP{net.IPv4(127, 0, 0, 1)},
		BasicConstraintsValid: true,
		IsCA:                  true,
		KeyUsage:              x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage:           []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	must(err)
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	must(err)
	certPEM := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	keyPEM := pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: keyDER})
	dir := t.TempDir()
	c := Certificate{Cert: filepath.Join(dir, "cert.pem"), Key: filepath.Join(dir, "key.pem"), Roots: x509.NewCertPool()}
	c.Pair, err = tls.X509KeyPair(certPEM, keyPEM)
	must(err)
	must(os.WriteFile(c.Cert, certPEM, 0o600))
	must(os.WriteFile(c.Key, keyPEM, 0o600))
	c.Roots.AppendCertsFromPEM(certPEM)
	return c
}
