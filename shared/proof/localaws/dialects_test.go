//go:build aws

package localaws_test

import (
	"os"
	"path/filepath"
	"testing"

	"blindpost/shared/dialect/aelos"
	aelosconformance "blindpost/shared/proof/aelos/conformance"
	agentknock "blindpost/shared/proof/agentknock/conformance"
	"blindpost/shared/proof/localaws"
)

const aelosSecret = "what-the-relay-and-the-minter-of-tokens-share-and-nobody-else"

// The conformance suite of the Aelos dialect through the compiled functions: its frames
// are binary, and need this front.
func TestConformanceAelos(t *testing.T) {
	aelosconformance.Run(t, func(t *testing.T, o aelosconformance.Settings) aelosconformance.Target {
		secret := filepath.Join(t.TempDir(), "aelos-secret")
		if err := os.WriteFile(secret, []byte(aelosSecret), 0o600); err != nil {
			t.Fatal(err)
		}
		env := append(o.Environment(), "BLINDPOST_AELOS_SECRET_FILE="+secret, "BLINDPOST_AELOS_CLOCK_LEEWAY=0s")
		// Through the functions a flood takes longer than a reader may stand still.
		args := []string{"--write-timeout", "60s"}
		if o.PingInterval != 0 {
			args = append(args, "--ping-interval", o.PingInterval.String())
		}
		if o.IdleTimeout != 0 {
			args = append(args, "--idle-timeout", o.IdleTimeout.String())
		}
		f := open(t, plan{args: args, house: localaws.Options{Env: env}})
		c := aelosconformance.Target{
			URL: "wss://" + f.address + aelos.Path, TLS: f.tls(), Secret: []byte(aelosSecret),
			Pings: true, CloseCodes: true, Droppable: true,
			Lacks: []string{"Vanish_AnEndThatIsNeverTold", "Kill_EverybodyComesBack"},
			// Handlers of one boat run in several processes.
			Repeats: true,
			Log:     f.log.Bytes,
		}
		// No Kill: it is the relay that has to die for those stories. When this front does,
		// the functions find out with their next word to each connection.
		c.Restart = func(t *testing.T) { t.Helper(); f.end(os.Interrupt); f.start() }
		return c
	})
}

// The conformance suite of the Agentknock dialect: WebSockets, and endpoints that are
// plain HTTP, at one address.
func TestConformanceAgentknock(t *testing.T) {
	agentknock.Run(t, func(t *testing.T, o agentknock.Settings) agentknock.Target {
		f := open(t, plan{house: localaws.Options{Env: o.Environment()}})
		c := agentknock.Target{
			URL: "wss://" + f.address, TLS: f.tls(),
			CloseCodes: true, RefusalBodies: true, BinaryFrames: true, KnowsMethods: true, Processes: true,
			Lacks: []string{"DeviceCredentials_OnlyAHashIsStored"}, // there are no files
			Pushes: func() (all []agentknock.Push) {
				for _, p := range f.Pushes() {
					all = append(all, agentknock.Push{Token: p.Token, Android: p.Android, Payload: p.Payload})
				}
				return all
			},
			Log: f.log.Bytes,
		}
		c.Restart = func(t *testing.T) { t.Helper(); f.end(os.Interrupt); f.start() }
		c.Kill = func(t *testing.T) { t.Helper(); f.end(os.Kill); f.start() }
		return c
	})
}
