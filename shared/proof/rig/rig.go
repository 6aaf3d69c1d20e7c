// Package rig starts whole relays for the suites, over TLS, in this process or as the
// built binary. A relay keeps its port over all its starts.
package rig

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"testing"
)

// Relay is a relay that runs until the test ends.
type Relay struct {
	Address string         // host and port
	Roots   *x509.CertPool // who trusts its certificate
	Dir     string         // its data folder
	Log     *Log           // what it has logged, over all its starts

	start func(t *testing.T)
	stop  func(t *testing.T)
	kill  func(t *testing.T) // nil where the relay is no process of its own
}

// TLS is how a peer dials it.
func (r *Relay) TLS() *tls.Config { return &tls.Config{RootCAs: r.Roots, MinVersion: tls.VersionTLS12} }

// Restart ends the relay in good order and starts it again.
func (r *Relay) Restart(t *testing.T) {
	t.Helper()
	r.stop(t)
	r.start(t)
}

// Stop ends the relay in good order.
func (r *Relay) Stop(t *testing.T) { t.Helper(); r.stop(t) }

// Kill ends the process with SIGKILL and starts it again.
func (r *Relay) Kill(t *testing.T) {
	t.Helper()
	r.kill(t)
	r.start(t)
}

// Stored is all that is in the files of the data folder.
func (r *Relay) Stored(t *testing.T) (all []byte) {
	t.Helper()
	err := filepath.WalkDir(r.Dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() {
			return err
		}
		content, err := os.ReadFile(path)
		all = append(all, content...)
		return err
	})
	if err != nil {
		t.Fatalf("failed to read the relay's files: %v", err)
	}
	return all
}

// Log keeps what a relay logs.
type Log struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

// Write implements io.Writer.
func (l *Log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(p)
}

// Bytes returns a copy.
func (l *Log) Bytes() []byte {
	l.mu.Lock()
	defer l.mu.Unlock()
	return bytes.Clone(l.buf.Bytes())
}

// String is the same as text.
func (l *Log) String() string { return string(l.Bytes()) }

// Take returns what was logged since it was called last, and forgets it.
func (l *Log) Take() []byte {
	l.mu.Lock()
	defer l.mu.Unlock()
	b := bytes.Clone(l.buf.Bytes())
	l.buf.Reset()
	return b
}
