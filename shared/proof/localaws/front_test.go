//go:build aws

package localaws_test

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"blindpost/shared/proof/localaws"
	"blindpost/shared/proof/port"
)

// front is a house with `blindpost serve --lambda` in front of it.
type front struct {
	*localaws.House
	t       *testing.T
	address string
	roots   *x509.CertPool
	log     *book
	args    []string
	cmd     *exec.Cmd
	next    string // callback address of another front
}

// plan says what a test needs to be different.
type plan struct {
	house localaws.Options
	args  []string
	// ingress puts frames into the queue; they go to the function otherwise.
	ingress bool
	// callback is the address that the functions call, if it is not that of the front;
	// through gets the address of the front.
	through func(t *testing.T, front string) (callback string)
}

func open(t *testing.T, p plan) *front {
	t.Helper()
	f := &front{t: t, address: port.Reserve(t), log: &book{}, next: port.Reserve(t)}
	// One of its own: with each transaction it looks at all those of the last ten minutes.
	standin, err := localaws.StartDynamo(tree)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(standin.Close)
	cert, key, roots := certificate(t)
	f.roots = roots
	dir, callback := t.TempDir(), port.Reserve(t)
	secret := filepath.Join(dir, "callback-secret")
	url := "http://" + callback
	if p.through != nil {
		url = p.through(t, url)
	}
	o := p.house
	o.Dynamo, o.Binaries, o.Log = standin, binaries, f.log
	o.Fronts, o.SecretFile = url+",http://"+f.next, secret
	house, err := localaws.Open(o)
	if err != nil {
		t.Fatal(err)
	}
	f.House = house
	t.Cleanup(house.Close)
	f.args = append([]string{
		"serve", "--lambda", house.Lambda.URL, "--listen", f.address, "--data-dir", dir, "--metrics-listen", "off",
		"--shutdown-spread", "0s", "--log-level", "debug", "--tls-cert", cert, "--tls-key", key,
		"--callback-listen", callback, "--callback-url", url, "--callback-secret-file", secret,
	}, p.args...)
	if p.ingress {
		f.args = append(f.args, "--lambda-ingress", house.IngressURL)
	}
	if err := os.WriteFile(secret, []byte("the-secret-of-the-fronts-and-the-functions\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	f.start()
	t.Cleanup(func() { f.end(os.Interrupt) })
	t.Cleanup(func() {
		if t.Failed() {
			name := filepath.Join(os.TempDir(), "localaws-"+strings.NewReplacer("/", "_", " ", "_").Replace(t.Name())+".log")
			_ = os.WriteFile(name, f.log.bytes(), 0o600)
			t.Logf("the log is in %s", name)
		}
	})
	return f
}

// another starts one more front of the same house.
func (f *front) another() *front {
	f.t.Helper()
	g := *f
	g.address = port.Reserve(f.t)
	g.args = append(append([]string(nil), f.args...),
		"--listen", g.address, "--callback-listen", f.next, "--callback-url", "http://"+f.next) // the last one counts
	g.start()
	return &g
}

func (f *front) start() {
	f.t.Helper()
	f.cmd = exec.Command(filepath.Join(binaries, "blindpost"), f.args...)
	f.cmd.Stdout, f.cmd.Stderr = f.log, f.log
	// Our own variables are none of its settings, which it would complain about.
	f.cmd.Env = slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "BLINDPOST_") })
	if err := f.cmd.Start(); err != nil {
		f.t.Fatalf("failed to start: %v", err)
	}
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		c, err := net.Dial("tcp", f.address)
		if err == nil {
			_ = c.Close()
			return
		}
		if time.Now().After(deadline) {
			f.t.Fatalf("the front does not listen: %v\n%s", err, f.log.bytes())
		}
	}
}

func (f *front) end(sig os.Signal) {
	f.t.Helper()
	_ = f.cmd.Process.Signal(sig)
	if f.cmd.ProcessState != nil {
		return // it has ended before
	}
	if err := f.cmd.Wait(); sig == os.Interrupt && err != nil {
		f.t.Errorf("the front did not end well: %v", err)
	}
}

func (f *front) url() string { return "wss://" + f.address + "/v1/ws" }

func (f *front) tls() *tls.Config {
	return &tls.Config{RootCAs: f.roots, MinVersion: tls.VersionTLS12}
}

// certificate makes a certificate for 127.0.0.1 in files, and a pool that trusts it.
func certificate(t *testing.T) (certFile, keyFile string, _ *x509.CertPool) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, BasicConstraintsValid: true, IsCA: true,
		KeyUsage:    x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	write := func(name, kind string, der []byte) string {
		name = filepath.Join(dir, name)
		if err := os.WriteFile(name, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
			t.Fatal(err)
		}
		return name
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
	return write("cert.pem", "CERTIFICATE", der), write("key.pem", "PRIVATE KEY", keyDER), roots
}

// book is a log that many write.
type book struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *book) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *book) bytes() []byte {
	b.mu.Lock()
	defer b.mu.Unlock()
	return bytes.Clone(b.b.Bytes())
}
