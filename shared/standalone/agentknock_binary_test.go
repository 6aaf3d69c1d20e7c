package standalone_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"blindpost/shared/proof/agentknock/conformance"
)

// The conformance suite of the Agentknock dialect against the binary, which can be
// killed.
func TestAgentknockConformanceBinary(t *testing.T) {
	if testing.Short() {
		t.Skip("builds the binary")
	}
	binary := filepath.Join(t.TempDir(), "blindpost")
	build := exec.Command("go", "build", "-o", binary, "blindpost/cmd/blindpost")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("failed to build: %v\n%s", err, out)
	}
	conformance.Run(t, func(t *testing.T, o conformance.Settings) conformance.Target {
		return openAgentknockBinary(t, binary, o)
	})
}

// openAgentknockBinary runs `blindpost serve`.
func openAgentknockBinary(t *testing.T, binary string, o conformance.Settings) conformance.Target {
	_, files, roots := certificate(t)
	l := agentknockLimits(o)
	address, dir, log := freeAddress(t), t.TempDir(), &logBook{}
	args := []string{"serve",
		"--listen", address,
		"--data-dir", dir,
		"--metrics-listen", "off",
		"--shutdown-spread", "0s",
		"--log-level", "debug",
		"--tls-cert", files.cert,
		"--tls-key", files.key,
		"--connections-per-ip", fmt.Sprint(l.Relay.ConnectionsPerIP),
		"--agentknock-client-exchanges-per-minute", fmt.Sprint(l.Agentknock.ClientExchangesPerMinute),
		"--agentknock-device-exchanges-per-minute", fmt.Sprint(l.Agentknock.DeviceExchangesPerMinute),
		"--agentknock-client-open-exchanges", fmt.Sprint(l.Agentknock.ClientOpenExchanges),
		"--agentknock-device-open-exchanges", fmt.Sprint(l.Agentknock.DeviceOpenExchanges),
		"--agentknock-frames-per-minute", fmt.Sprint(l.Agentknock.FramesPerMinute),
		"--agentknock-wake-interval", l.Agentknock.WakeInterval.String(),
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

	target := oursAgentknock(address, roots)
	target.Lacks = []string{ // nobody sees what it pushes
		"DevicePush_WakesADeviceThatIsAway", "DevicePush_CarriesNothingElse", "DevicePush_NotWhileConnected",
		"DevicePush_NotWithoutRegistration", "DevicePush_InitialPairing", "DevicePush_Completion",
	}
	target.Log = log.bytes
	target.Stored = func(t *testing.T) []byte { return folder(t, dir) }
	target.Restart = func(t *testing.T) { t.Helper(); end(t, os.Interrupt); start(t) }
	target.Kill = func(t *testing.T) { t.Helper(); end(t, os.Kill); start(t) }
	return target
}
