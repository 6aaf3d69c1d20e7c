package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/crypto/acme"
	"golang.org/x/crypto/acme/autocert"

	"blindpost/shared/settings"
)

// TLSSource is where the certificate of the relay comes from.
type TLSSource int

// The sources.
const (
	SelfSigned TLSSource = iota + 1 // made here, for localhost
	FromFiles                       // tls-cert and tls-key
	FromACME                        // Let's Encrypt
	NoTLS                           // a proxy in front ends TLS
)

// tlsSource is the source that the settings choose.
func tlsSource(v settings.Values) TLSSource {
	switch {
	case settings.TLSCert.Of(v) != "":
		return FromFiles
	case len(settings.ACMEDomains.Of(v)) > 0:
		return FromACME
	case len(settings.BehindProxy.Of(v)) > 0:
		return NoTLS
	}
	return SelfSigned
}

// tlsFolder is where certificates are kept, below the data folder.
const tlsFolder = "tls"

// NewTLS makes the TLS configuration for clients, nil for NoTLS. It reads or
// makes the certificate first, so that a wrong certificate is an error at
// start; a certificate by ACME is fetched when the first client asks for it.
// The hostname of the machine goes into a self-signed certificate; now is the
// clock that it expires by.
func NewTLS(v settings.Values, hostname string, now func() time.Time, log *slog.Logger) (*tls.Config, error) {
	// HTTP/2 is not offered: its connections cannot become WebSockets here.
	c := &tls.Config{MinVersion: tls.VersionTLS12, NextProtos: []string{"http/1.1"}}
	dir := filepath.Join(settings.DataDir.Of(v), tlsFolder)
	switch tlsSource(v) {
	case NoTLS:
		return nil, nil
	case FromFiles:
		f, err := certFrom(v, settings.TLSCert, settings.TLSKey, log)
		if err != nil {
			return nil, err
		}
		c.GetCertificate = f.GetCertificate
	case FromACME:
		c.GetCertificate = acmeCertificates(settings.ACMEDomains.Of(v), settings.ACMEEmail.Of(v), filepath.Join(dir, "acme"), log)
		c.NextProtos = append(c.NextProtos, acme.ALPNProto)
	default:
		f, err := newSelfSigned(dir, localNames(hostname), now, log)
		if err != nil {
			return nil, v.Wrong(settings.DataDir, "%w", err)
		}
		c.GetCertificate = f.GetCertificate
	}
	return c, nil
}

// errNotOurs is the answer to a client that asks for another domain. Scanners do
// that all day.
var errNotOurs = errors.New("no certificate for this domain")

// acmeCertificates gets certificates from Let's Encrypt and keeps them in dir.
func acmeCertificates(domains []string, email, dir string, log *slog.Logger) func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	m := &autocert.Manager{
		Prompt: autocert.AcceptTOS,
		Cache:  autocert.DirCache(dir),
		Email:  email,
		HostPolicy: func(_ context.Context, host string) error {
			if !slices.Contains(domains, host) {
				return errNotOurs
			}
			return nil
		},
	}
	return func(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
		cert, err := m.GetCertificate(hello)
		if err == nil {
			return cert, nil
		}
		// An unknown name is the client's mistake and is not logged: otherwise any
		// client could fill the log. (The manager refuses invalid names by itself.)
		if slices.Contains(domains, strings.ToLower(strings.TrimSuffix(hello.ServerName, "."))) {
			log.Warn("failed to get a certificate by ACME", "domain", hello.ServerName, "error", err)
		}
		return nil, fmt.Errorf("failed to get a certificate: %w", err)
	}
}
