package standalone_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"blindpost/shared/dialect/aelos"
	"blindpost/shared/proof/aelos/conformance"
	"blindpost/shared/standalone"
)

// aelosSecret signs the admission tokens of the tests.
const aelosSecret = "what-the-relay-and-the-minter-of-tokens-share-and-nobody-else"

// The conformance suite of the Aelos dialect against a relay in this process.
func TestAelosConformance(t *testing.T) {
	conformance.Run(t, openAelosInProcess)
}

// And against the binary, which can be killed.
func TestAelosConformanceBinary(t *testing.T) {
	if testing.Short() {
		t.Skip("builds the binary")
	}
	binary := filepath.Join(t.TempDir(), "blindpost")
	build := exec.Command("go", "build", "-o", binary, "blindpost/cmd/blindpost")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("failed to build: %v\n%s", err, out)
	}
	conformance.Run(t, func(t *testing.T, o conformance.Settings) conformance.Target {
		return openAelosBinary(t, binary, o)
	})
}

// oursAelos is what our own front can do.
func oursAelos(address string, roots *x509.CertPool) conformance.Target {
	return conformance.Target{
		URL:        "wss://" + address + aelos.Path,
		TLS:        &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12},
		Secret:     []byte(aelosSecret),
		Pings:      true,
		CloseCodes: true,
		Droppable:  true,
	}
}

// aelosLimits are the defaults where o does not say otherwise, but for the leeway:
// the clock of the tests is that of the relay.
func aelosLimits(o conformance.Settings) standalone.Limits {
	l := standalone.DefaultLimits()
	l.Aelos.Leeway = 0
	if o.Plenty {
		l.Relay.ConnectionsPerIP = 0
		l.Aelos.BoatFrames, l.Aelos.ViewerFrames, l.Aelos.Commands = 0, 0, 0
		l.Aelos.CommandBytes, l.Aelos.Handshakes = 0, 0
	}
	return l
}

func openAelosInProcess(t *testing.T, o conformance.Settings) conformance.Target {
	pair, _, roots := certificate(t)
	log := &logBook{}
	cfg := standalone.Config{
		DataDir: t.TempDir(),
		Limits:  aelosLimits(o),
		Aelos: standalone.Aelos{
			Secrets: func(context.Context) ([]string, error) { return []string{aelosSecret}, nil },
		},
		TLS:       &tls.Config{Certificates: []tls.Certificate{pair}, NextProtos: []string{"http/1.1"}},
		PingEvery: o.PingInterval,
		IdleAfter: o.IdleTimeout,
		Log:       slog.New(slog.NewJSONHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug})),
	}
	address := freeAddress(t)
	stop := serve(t, cfg, address)
	t.Cleanup(func() { stop() })
	target := oursAelos(address, roots)
	target.Lacks = []string{"Vanish_AnEndThatIsNeverTold", "Kill_EverybodyComesBack"}
	target.Log = log.bytes
	target.Restart = func(t *testing.T) {
		t.Helper()
		stop()
		stop = serve(t, cfg, address)
	}
	return target
}

// openAelosBinary runs `blindpost serve`.
func openAelosBinary(t *testing.T, binary string, o conformance.Settings) conformance.Target {
	_, files, roots := certificate(t)
	secretFile := filepath.Join(t.TempDir(), "aelos-secret")
	if err := os.WriteFile(secretFile, []byte(aelosSecret), 0o600); err != nil {
		t.Fatal(err)
	}
	l := aelosLimits(o)
	address := freeAddress(t)
	log := &logBook{}
	args := []string{"serve",
		"--listen", address,
		"--data-dir", t.TempDir(),
		"--metrics-listen", "off",
		"--shutdown-spread", "0s",
		"--log-level", "debug",
		"--tls-cert", files.cert,
		"--tls-key", files.key,
		"--aelos-secret-file", secretFile,
		"--aelos-clock-leeway", l.Aelos.Leeway.String(),
		"--connections-per-ip", fmt.Sprint(l.Relay.ConnectionsPerIP),
		"--aelos-boat-frames-per-minute", fmt.Sprint(l.Aelos.BoatFrames),
		"--aelos-viewer-frames-per-minute", fmt.Sprint(l.Aelos.ViewerFrames),
		"--aelos-commands-per-minute", fmt.Sprint(l.Aelos.Commands),
		"--aelos-command-bytes-per-minute", fmt.Sprint(l.Aelos.CommandBytes),
		"--aelos-handshakes-per-minute", fmt.Sprint(l.Aelos.Handshakes),
	}
	if o.PingInterval != 0 {
		args = append(args, "--ping-interval", o.PingInterval.String())
	}
	if o.IdleTimeout != 0 {
		args = append(args, "--idle-timeout", o.IdleTimeout.String())
	}
	var relay *exec.Cmd
	start := func(t *testing.T) {
		t.Helper()
		relay = exec.Command(binary, args...)
		relay.Stdout, relay.Stderr = log, log
		if err := relay.Start(); err != nil {
			t.Fatalf("failed to start: %v", err)
		}
		waitForListener(t, address, log)
	}
	end := func(t *testing.T, sig os.Signal) {
		t.Helper()
		_ = relay.Process.Signal(sig)
		err := relay.Wait()
		if sig == os.Interrupt && err != nil {
			t.Errorf("the relay did not end well: %v\n%s", err, log.bytes())
		}
	}
	start(t)
	t.Cleanup(func() { end(t, os.Interrupt) })

	target := oursAelos(address, roots)
	target.Lacks = []string{"Vanish_AnEndThatIsNeverTold"}
	target.Log = log.bytes
	target.Restart = func(t *testing.T) { t.Helper(); end(t, os.Interrupt); start(t) }
	target.Kill = func(t *testing.T) { t.Helper(); end(t, os.Kill); start(t) }
	return target
}
