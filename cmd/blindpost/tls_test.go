package main

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/crypto/acme"
)

// clock is a clock that tests set.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

// newClock starts at a whole second, as the times in certificates do.
func newClock() *clock { return &clock{now: time.Now().Truncate(time.Second)} }

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) add(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

func textLog(out *bytes.Buffer) *slog.Logger { return slog.New(slog.NewTextHandler(out, nil)) }

// served returns the certificate that a configuration presents for a name.
func served(t *testing.T, c *tls.Config, name string) *x509.Certificate {
	t.Helper()
	cert, err := c.GetCertificate(&tls.ClientHelloInfo{ServerName: name})
	if err != nil {
		t.Fatal(err)
	}
	return cert.Leaf
}

func TestTLSSource(t *testing.T) {
	const proxy, files, domains = "behind-proxy=10.0.0.0/8", "tls-cert=c", "acme-domain=a.example.org"
	tests := []struct {
		lines []string
		want  TLSSource
	}{
		{nil, SelfSigned},
		{[]string{files}, FromFiles},
		{[]string{domains}, FromACME},
		{[]string{proxy}, NoTLS},
		{[]string{proxy, files}, FromFiles},
		{[]string{proxy, domains}, FromACME},
	}
	for _, tt := range tests {
		if got := tlsSource(with(t, tt.lines...)); got != tt.want {
			t.Errorf("%q: source %d, want %d", tt.lines, got, tt.want)
		}
	}
	if c, err := NewTLS(with(t, proxy), "h", time.Now, slog.New(slog.DiscardHandler)); c != nil || err != nil {
		t.Errorf("behind a proxy: %v, %v", c, err)
	}
}

// A client that trusts the public copy reaches the relay by every name.
func TestSelfSignedServesEveryName(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "new", "data")
	c, err := NewTLS(with(t, "data-dir="+dir), "Box.Example.org.", time.Now, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	public, err := os.ReadFile(filepath.Join(dir, tlsFolder, selfSignedPublic))
	if err != nil {
		t.Fatal(err)
	}
	if bytes.Contains(public, []byte("PRIVATE")) {
		t.Fatal("the public copy holds the key")
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(public)
	for _, name := range []string{"localhost", "127.0.0.1", "::1", "box.example.org"} {
		if err := handshake(t, c, &tls.Config{RootCAs: roots, ServerName: name, NextProtos: []string{"h2", "http/1.1"}}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := handshake(t, c, &tls.Config{RootCAs: roots, ServerName: "other.example.org"}); err == nil {
		t.Error("the certificate is good for any name")
	}
	if err := handshake(t, c, &tls.Config{RootCAs: roots, ServerName: "localhost", MinVersion: tls.VersionTLS10, MaxVersion: tls.VersionTLS11}); err == nil {
		t.Error("TLS 1.1 is spoken")
	}
	for name, want := range map[string]os.FileMode{selfSignedFile: 0o600, selfSignedPublic: 0o644} {
		if info, err := os.Stat(filepath.Join(dir, tlsFolder, name)); err != nil || info.Mode().Perm() != want {
			t.Errorf("%s has mode %v, %v", name, info.Mode(), err)
		}
	}
	if left, err := filepath.Glob(filepath.Join(dir, tlsFolder, ".*")); err != nil || len(left) > 0 {
		t.Errorf("temporary files are left: %v, %v", left, err)
	}
}

// handshake lets a client shake hands with a server, and returns the client's error.
func handshake(t *testing.T, server, client *tls.Config) error {
	t.Helper()
	l, err := tls.Listen("tcp", "127.0.0.1:0", server)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	done := make(chan struct{})
	go func() {
		defer close(done)
		c, err := l.Accept()
		if err != nil {
			t.Error(err)
			return
		}
		defer c.Close()
		_, _ = c.Read(make([]byte, 1)) // shakes hands, then waits for the end
	}()
	raw, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	err = tls.Client(raw, client).Handshake()
	raw.Close()
	<-done
	return err
}

func TestSelfSignedIsKeptAndReplacedInTime(t *testing.T) {
	dir, c := t.TempDir(), newClock()
	open := func(names ...string) *x509.Certificate {
		t.Helper()
		s, err := newSelfSigned(dir, names, c.Now, slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		return s.cert.Leaf
	}
	first := open("localhost")
	if !open("localhost").Equal(first) {
		t.Error("a restart made a new certificate")
	}
	c.add(selfSignedLife - selfSignedRenew)
	if !open("localhost").Equal(first) {
		t.Error("replaced 30 days before its end")
	}
	c.add(time.Second)
	second := open("localhost")
	if second.Equal(first) {
		t.Error("not replaced less than 30 days before its end")
	}
	if open("localhost", "new.example.org").Equal(second) {
		t.Error("not replaced although the name of the machine has changed")
	}
	third := open("localhost")
	c.add(-2 * selfSignedLife)
	if open("localhost").Equal(third) {
		t.Error("not replaced although it is not valid yet")
	}
}

func TestSelfSignedMendsItsFiles(t *testing.T) {
	dir := t.TempDir()
	log := slog.New(slog.DiscardHandler)
	open := func() *selfSigned {
		t.Helper()
		s, err := newSelfSigned(dir, []string{"localhost"}, time.Now, log)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	first := open().cert.Leaf
	private, public := filepath.Join(dir, selfSignedFile), filepath.Join(dir, selfSignedPublic)

	if err := os.Chmod(private, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(public); err != nil {
		t.Fatal(err)
	}
	if !open().cert.Leaf.Equal(first) {
		t.Error("a good certificate was replaced")
	}
	if info, err := os.Stat(private); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the key has mode %v, %v", info.Mode(), err)
	}
	if _, err := os.Stat(public); err != nil {
		t.Error("the public copy was not made again")
	}

	for _, content := range []string{"", "garbage", "-----BEGIN CERTIFICATE-----\n"} {
		if err := os.WriteFile(private, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		if open().cert.Leaf.Equal(first) {
			t.Errorf("with %q in the file the old certificate is there", content)
		}
		if _, err := tls.LoadX509KeyPair(private, private); err != nil {
			t.Errorf("the file was not mended: %v", err)
		}
	}
}

func TestSelfSignedIsReplacedWhileServing(t *testing.T) {
	dir, c := filepath.Join(t.TempDir(), "tls"), newClock()
	var log bytes.Buffer
	s, err := newSelfSigned(dir, []string{"localhost"}, c.Now, textLog(&log))
	if err != nil {
		t.Fatal(err)
	}
	config := &tls.Config{GetCertificate: s.GetCertificate}
	first := served(t, config, "")
	c.add(selfSignedLife - selfSignedRenew + time.Second)

	// As long as the folder is gone, the old one is served and the log is quiet.
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if !served(t, config, "").Equal(first) {
			t.Error("a certificate is served that was not kept")
		}
	}
	if n := strings.Count(log.String(), "level=ERROR"); n != 1 {
		t.Errorf("%d errors logged, want 1:\n%s", n, log.String())
	}

	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	c.add(selfSignedRetry)
	second := served(t, config, "")
	if second.Equal(first) || !served(t, config, "").Equal(second) {
		t.Error("not replaced, or more than once")
	}
	again, err := newSelfSigned(dir, []string{"localhost"}, c.Now, textLog(&log))
	if err != nil || !again.cert.Leaf.Equal(second) {
		t.Errorf("the new one was not kept: %v", err)
	}
}

func TestLocalNames(t *testing.T) {
	loopback := []string{"localhost", "127.0.0.1", "::1"}
	tests := map[string][]string{
		"box": {"box"}, "Box.Example.ORG.": {"box.example.org"}, "10.0.0.1": {"10.0.0.1"},
		"": nil, "localhost": nil, "127.0.0.1": nil, "under_score": nil, "a b": nil, "-x": nil, "a..b": nil, "ü": nil,
		strings.Repeat("a", 64): nil, strings.Repeat("a.", 200): nil,
	}
	for hostname, extra := range tests {
		names := localNames(hostname)
		if !slices.Equal(names, append(slices.Clone(loopback), extra...)) {
			t.Errorf("%q: %v", hostname, names)
		}
		// The certificate fits its names for every host name.
		s, err := newSelfSigned(t.TempDir(), names, time.Now, slog.New(slog.DiscardHandler))
		if err != nil || !s.fits(s.cert) {
			t.Errorf("%q: no certificate: %v", hostname, err)
		}
	}
}

func TestWriteFileLeavesTheOldOneOnError(t *testing.T) {
	dir := t.TempDir()
	name := filepath.Join(dir, "f")
	if err := os.MkdirAll(filepath.Join(name, "in the way"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := writeFile(name, []byte("x"), 0o600); err == nil {
		t.Fatal("a folder was replaced")
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 1 {
		t.Errorf("left over: %v, %v", entries, err)
	}
}

// writePair writes a new certificate for a name, with a time in the past that
// differs each time: file systems may keep time too coarsely to tell two
// writes apart.
func writePair(t *testing.T, certFile, keyFile, name string, at time.Time) {
	t.Helper()
	certPEM, keyPEM, err := makeSelfSigned([]string{name}, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	for file, data := range map[string][]byte{certFile: certPEM, keyFile: keyPEM} {
		if data == nil || file == "" {
			continue
		}
		if err := os.WriteFile(file, data, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(file, at, at); err != nil {
			t.Fatal(err)
		}
	}
}

func TestFilesAreReadAgainWhenTheyChange(t *testing.T) {
	dir := t.TempDir()
	certFile, keyFile := filepath.Join(dir, "c.pem"), filepath.Join(dir, "k.pem")
	at := time.Now().Add(-time.Hour)
	writePair(t, certFile, keyFile, "one.example.org", at)
	var log bytes.Buffer
	c, err := NewTLS(with(t, "tls-cert="+certFile, "tls-key="+keyFile), "", time.Now, textLog(&log))
	if err != nil {
		t.Fatal(err)
	}
	want := func(name string, errorsLogged int) {
		t.Helper()
		for range 3 {
			if got := served(t, c, "").DNSNames[0]; got != name {
				t.Errorf("%s is served, want %s", got, name)
			}
		}
		if n := strings.Count(log.String(), "level=ERROR"); n != errorsLogged {
			t.Errorf("%d errors logged, want %d:\n%s", n, errorsLogged, log.String())
		}
	}
	want("one.example.org", 0)

	writePair(t, certFile, keyFile, "two.example.org", at.Add(time.Second))
	want("two.example.org", 0)

	// Half a renewal: the new certificate does not fit the old key. It is said
	// once, and used when the key has come.
	writePair(t, certFile, "", "three.example.org", at.Add(2*time.Second))
	want("two.example.org", 1)
	if err := os.Remove(keyFile); err != nil {
		t.Fatal(err)
	}
	want("two.example.org", 2)
	writePair(t, certFile, keyFile, "four.example.org", at.Add(3*time.Second))
	want("four.example.org", 2)

	if err := os.WriteFile(certFile, []byte("garbage"), 0o600); err != nil {
		t.Fatal(err)
	}
	want("four.example.org", 3)
	writePair(t, certFile, keyFile, "five.example.org", at.Add(4*time.Second))
	want("five.example.org", 3)
	if strings.Contains(log.String(), "BEGIN") {
		t.Error("the log holds a file")
	}
}

func TestFilesThatCannotBeUsedStopTheStart(t *testing.T) {
	dir := t.TempDir()
	certFile, keyFile, other := filepath.Join(dir, "c"), filepath.Join(dir, "k"), filepath.Join(dir, "o")
	writePair(t, certFile, keyFile, "a.example.org", time.Now())
	writePair(t, filepath.Join(dir, "x"), other, "a.example.org", time.Now())
	for _, files := range [][2]string{
		{filepath.Join(dir, "none"), keyFile},
		{certFile, filepath.Join(dir, "none")},
		{certFile, other},
		{keyFile, certFile},
	} {
		c, err := NewTLS(with(t, "tls-cert="+files[0], "tls-key="+files[1]), "", time.Now, slog.New(slog.DiscardHandler))
		if err == nil {
			t.Errorf("%+v: %v", files, c)
		} else if want := `tls-cert "` + files[0] + `": it cannot be used with tls-key: `; !strings.HasPrefix(err.Error(), want) || !strings.Contains(err.Error()[len(want):], dir) {
			t.Errorf("%+v: the error does not name the settings and a file: %v", files, err)
		}
	}
}

// A certificate of an earlier run is served from the data folder. Let's Encrypt is not
// asked about other domains.
func TestACMEServesFromItsCache(t *testing.T) {
	dir := t.TempDir()
	cache := filepath.Join(dir, tlsFolder, "acme")
	if err := os.MkdirAll(cache, 0o700); err != nil {
		t.Fatal(err)
	}
	certPEM, keyPEM, err := makeSelfSigned([]string{"relay.example.org"}, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(cache, "relay.example.org"), slices.Concat(keyPEM, certPEM), 0o600); err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	s := with(t, "data-dir="+dir, "acme-domain=Relay.example.org", "acme-email=me@example.org")
	c, err := NewTLS(s, "", time.Now, textLog(&log))
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Contains(c.NextProtos, acme.ALPNProto) || !slices.Contains(c.NextProtos, "http/1.1") || slices.Contains(c.NextProtos, "h2") {
		t.Errorf("protocols are %v", c.NextProtos)
	}
	hello := &tls.ClientHelloInfo{
		ServerName:        "relay.example.org",
		SignatureSchemes:  []tls.SignatureScheme{tls.ECDSAWithP256AndSHA256},
		SupportedCurves:   []tls.CurveID{tls.CurveP256},
		CipherSuites:      []uint16{tls.TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256},
		SupportedVersions: []uint16{tls.VersionTLS13},
	}
	cert, err := c.GetCertificate(hello)
	if err != nil || cert.Leaf.DNSNames[0] != "relay.example.org" {
		t.Errorf("got %v, %v", cert, err)
	}
	for _, name := range []string{"other.example.org", "", "localhost", "../relay.example.org", "a\nb.example.org"} {
		hello.ServerName = name
		if cert, err := c.GetCertificate(hello); err == nil {
			t.Errorf("%q got %v", name, cert)
		}
	}
	if log.Len() > 0 {
		t.Errorf("foreign names are logged:\n%s", log.String())
	}
}
