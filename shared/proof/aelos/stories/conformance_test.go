package stories

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"blindpost/shared/dialect/aelos"
	"blindpost/shared/proof/aelos/conformance"
	"blindpost/shared/proof/rig"
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
	binary := rig.Build(t)
	conformance.Run(t, func(t *testing.T, o conformance.Settings) conformance.Target {
		return openAelosBinary(t, binary, o)
	})
}

// oursAelos is what our own front can do.
func oursAelos(r *rig.Relay) conformance.Target {
	return conformance.Target{
		URL:        "wss://" + r.Address + aelos.Path,
		TLS:        r.TLS(),
		Log:        r.Log.Bytes,
		Restart:    r.Restart,
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
	target := oursAelos(rig.InProcess(t, standalone.Config{
		Limits: aelosLimits(o),
		Aelos: standalone.Aelos{
			Secrets: func(context.Context) ([]string, error) { return []string{aelosSecret}, nil },
		},
		PingEvery: o.PingInterval,
		IdleAfter: o.IdleTimeout,
	}))
	target.Lacks = []string{"Vanish_AnEndThatIsNeverTold", "Kill_EverybodyComesBack"}
	return target
}

// openAelosBinary runs `blindpost serve`.
func openAelosBinary(t *testing.T, binary string, o conformance.Settings) conformance.Target {
	secretFile := filepath.Join(t.TempDir(), "aelos-secret")
	if err := os.WriteFile(secretFile, []byte(aelosSecret), 0o600); err != nil {
		t.Fatal(err)
	}
	l := aelosLimits(o)
	flags := []string{
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
		flags = append(flags, "--ping-interval", o.PingInterval.String())
	}
	if o.IdleTimeout != 0 {
		flags = append(flags, "--idle-timeout", o.IdleTimeout.String())
	}
	r := rig.Binary(t, binary, flags...)
	target := oursAelos(r)
	target.Lacks = []string{"Vanish_AnEndThatIsNeverTold"}
	target.Kill = r.Kill
	return target
}
