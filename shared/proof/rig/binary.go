package rig

import (
	"blindpost/shared/proof/port"
	"bufio"
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// Build compiles the binary into a folder of the test.
func Build(t testing.TB) string {
	t.Helper()
	binary := filepath.Join(t.TempDir(), "blindpost")
	if out, err := exec.Command("go", "build", "-o", binary, "blindpost/cmd/blindpost").CombinedOutput(); err != nil {
		t.Fatalf("failed to build: %v\n%s", err, out)
	}
	return binary
}

// Binary runs `blindpost serve` with further flags. Its data folder, certificate and
// log are the rig's.
func Binary(t *testing.T, binary string, flags ...string) *Relay {
	t.Helper()
	cert := NewCertificate(t)
	r := &Relay{Address: port.Reserve(t), Roots: cert.Roots, Dir: t.TempDir(), Log: &Log{}}
	var relay *exec.Cmd
	r.start = func(t *testing.T) {
		t.Helper()
		from := len(r.Log.Bytes())
		relay = exec.Command(binary, append([]string{
			"serve", "--listen", r.Address, "--data-dir", r.Dir, "--metrics-listen", "off",
			"--shutdown-spread", "0s", "--log-level", "debug", "--tls-cert", cert.Cert, "--tls-key", cert.Key,
		}, flags...)...)
		relay.Stdout, relay.Stderr = r.Log, r.Log
		if err := relay.Start(); err != nil {
			t.Fatalf("failed to start: %v", err)
		}
		r.serving(t, from)
	}
	end := func(t *testing.T, sig os.Signal) {
		t.Helper()
		_ = relay.Process.Signal(sig)
		err := relay.Wait()
		if sig == os.Interrupt && err != nil {
			t.Errorf("the relay did not end well: %v\n%s", err, r.Log.Bytes())
		}
	}
	r.stop = func(t *testing.T) { t.Helper(); end(t, os.Interrupt) }
	r.kill = func(t *testing.T) { t.Helper(); end(t, os.Kill) }
	r.start(t)
	t.Cleanup(func() { r.stop(t) })
	return r
}

// serving waits until the log says, after its first bytes, that the relay serves.
func (r *Relay) serving(t *testing.T, from int) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		for lines := bufio.NewScanner(bytes.NewReader(r.Log.Bytes()[from:])); lines.Scan(); {
			var line struct{ Msg string }
			if json.Unmarshal(lines.Bytes(), &line) == nil && line.Msg == "serving" {
				return
			}
		}
		if time.Now().After(deadline) {
			t.Fatalf("the relay does not serve:\n%s", r.Log.Bytes())
		}
	}
}
