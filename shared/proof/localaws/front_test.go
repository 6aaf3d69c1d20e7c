//go:build aws

package localaws_test

import (
	"crypto/tls"
	"crypto/x509"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"blindpost/shared/proof/localaws"
	"blindpost/shared/proof/port"
	"blindpost/shared/proof/rig"
)

// front is a house with `blindpost serve --lambda` in front of it.
type front struct {
	*localaws.House
	t       *testing.T
	address string
	roots   *x509.CertPool
	log     *rig.Log
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
	f := &front{t: t, address: port.Reserve(t), log: &rig.Log{}, next: port.Reserve(t)}
	// One of its own: with each transaction it looks at all those of the last ten minutes.
	standin, err := localaws.StartDynamo(tree)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(standin.Close)
	cert := rig.NewCertificate(t)
	f.roots = cert.Roots
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
		"--shutdown-spread", "0s", "--log-level", "debug", "--tls-cert", cert.Cert, "--tls-key", cert.Key,
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
			_ = os.WriteFile(name, f.log.Bytes(), 0o600)
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
			f.t.Fatalf("the front does not listen: %v\n%s", err, f.log.Bytes())
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
