package main

import (
	"crypto/tls"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"

	"blindpost/shared/settings"
)

// fileCert is a certificate from two PEM files that are read again when one of
// them changes, so that a renewed certificate needs no restart.
type fileCert struct {
	certFile, keyFile string
	log               *slog.Logger

	mu    sync.Mutex
	cert  *tls.Certificate
	stamp [2]fileStamp // of the files when they were last read, well or not
}

// fileStamp changes when a file does.
type fileStamp struct {
	modified time.Time
	size     int64
}

// certFrom is the certificate in the files that two settings name.
func certFrom(v settings.Values, cert, key settings.Key[string], log *slog.Logger) (*fileCert, error) {
	f, err := newFileCert(cert.Of(v), key.Of(v), log)
	if err != nil {
		return nil, v.Wrong(cert, "it cannot be used with %s: %w", key, err)
	}
	return f, nil
}

func newFileCert(certFile, keyFile string, log *slog.Logger) (*fileCert, error) {
	f := &fileCert{certFile: certFile, keyFile: keyFile, log: log}
	stamp, err := f.look()
	if err != nil {
		return nil, err
	}
	if f.cert, err = f.read(); err != nil {
		return nil, err
	}
	f.stamp = stamp
	return f, nil
}

// GetCertificate returns the certificate as it is in the files now, or, when they
// cannot be used (a renewal may be half done), as it was before.
func (f *fileCert) GetCertificate(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	// Looking first makes sure that a change while reading is seen next time.
	stamp, err := f.look()
	if stamp == f.stamp {
		return f.cert, nil
	}
	f.stamp = stamp
	var fresh *tls.Certificate
	if err == nil {
		fresh, err = f.read()
	}
	if err != nil {
		f.log.Error("changed certificate not used, the old one holds", "error", err)
		return f.cert, nil
	}
	f.cert = fresh
	f.log.Info("changed certificate in use", "file", f.certFile, "expires", fresh.Leaf.NotAfter)
	return fresh, nil
}

// look returns the stamps of the files; that of a missing one is zero.
func (f *fileCert) look() (stamp [2]fileStamp, err error) {
	for i, name := range []string{f.certFile, f.keyFile} {
		info, e := os.Stat(name)
		if e != nil {
			err = fmt.Errorf("failed to find a certificate file: %w", e)
			continue
		}
		stamp[i] = fileStamp{info.ModTime(), info.Size()}
	}
	return stamp, err
}

func (f *fileCert) read() (*tls.Certificate, error) {
	c, err := tls.LoadX509KeyPair(f.certFile, f.keyFile)
	if err != nil {
		return nil, fmt.Errorf("failed to load the certificate %s with the key %s: %w", f.certFile, f.keyFile, err)
	}
	return &c, nil
}
