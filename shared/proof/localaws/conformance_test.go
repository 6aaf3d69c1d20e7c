//go:build aws

package localaws_test

import (
	"fmt"
	"os"
	"testing"

	"blindpost/shared/proof/localaws"
	"blindpost/shared/proof/skald/conformance"
)

// The conformance suite of the Skald dialect through the compiled functions: with frames
// that go straight to the function, and with frames that wait in the ingress queue.
func TestConformance(t *testing.T) {
	conformance.Run(t, func(t *testing.T, o conformance.Settings) conformance.Target { return target(t, o, false) })
}

func TestConformanceIngress(t *testing.T) {
	conformance.Run(t, func(t *testing.T, o conformance.Settings) conformance.Target { return target(t, o, true) })
}

// maxQueued is the largest frame in bytes that fits into a message of a queue, which may
// have 256 KiB, as base64 and with what is around it. (SQS has taken a megabyte since
// 2025; the stand-in keeps to what every queue takes.)
const maxQueued = 190_000

func target(t *testing.T, o conformance.Settings, ingress bool) conformance.Target {
	var args []string
	flag := func(name string, v any, given bool) {
		if given {
			args = append(args, "--"+name, fmt.Sprint(v))
		}
	}
	flag("ping-interval", o.PingInterval, o.PingInterval != 0)
	flag("idle-timeout", o.IdleTimeout, o.IdleTimeout != 0)
	flag("max-frame", o.MaxFrame, o.MaxFrame != 0)
	flag("max-live-frame", o.MaxLiveFrame, o.MaxLiveFrame != 0)
	f := open(t, plan{ingress: ingress, args: args, house: localaws.Options{Env: o.Environment()}})
	c := conformance.Target{
		URL: f.url(), TLS: f.tls(),
		Pings: true, CloseCodes: true, OwnAddresses: true,
		MaxIdle: 100,
		// What is posted counts as delivered.
		Lacks: []string{
			"Section6_3_UnconfirmedComesAgain", "Hostile_SilentNetworkLosesNothing", "Hostile_SilentNetworkOfTheAgent", "Hostile_NetworkThatComesBack",
		},
		// Handlers of one member run in several processes.
		RepeatsPresence: true,
		Pushes: func() []conformance.Push {
			var out []conformance.Push
			for _, p := range f.Pushes() {
				out = append(out, conformance.Push{Token: p.Token, Android: p.Android, Payload: p.Payload})
			}
			return out
		},
		Log: f.log.Bytes,
	}
	if ingress {
		c.MaxMessage = maxQueued
		c.Lacks = append(c.Lacks,
			"Section5_TooManyKeys", "Section10_LiveSizeBeforeAuth", "Section10_MuchBeforeAuth", "Section10_LiveFrame",
			"Section10_NoStoredMessageOfLiveSize", "Hostile_StalledReaderHoldsUpNobody")
	}
	c.Restart = func(t *testing.T) { t.Helper(); f.end(os.Interrupt); f.start() }
	c.Kill = func(t *testing.T) { t.Helper(); f.end(os.Kill); f.start() }
	return c
}
