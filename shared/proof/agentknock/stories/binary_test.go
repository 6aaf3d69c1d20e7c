package stories

import (
	"fmt"
	"testing"

	"blindpost/shared/proof/agentknock/conformance"
	"blindpost/shared/proof/rig"
)

// The conformance suite of the Agentknock dialect against the binary, which can be
// killed.
func TestAgentknockConformanceBinary(t *testing.T) {
	if testing.Short() {
		t.Skip("builds the binary")
	}
	binary := rig.Build(t)
	conformance.Run(t, func(t *testing.T, o conformance.Settings) conformance.Target {
		return openAgentknockBinary(t, binary, o)
	})
}

// openAgentknockBinary runs `blindpost serve`.
func openAgentknockBinary(t *testing.T, binary string, o conformance.Settings) conformance.Target {
	l := agentknockLimits(o)
	r := rig.Binary(t, binary,
		"--connections-per-ip", fmt.Sprint(l.Relay.ConnectionsPerIP),
		"--agentknock-client-exchanges-per-minute", fmt.Sprint(l.Agentknock.ClientExchangesPerMinute),
		"--agentknock-device-exchanges-per-minute", fmt.Sprint(l.Agentknock.DeviceExchangesPerMinute),
		"--agentknock-client-open-exchanges", fmt.Sprint(l.Agentknock.ClientOpenExchanges),
		"--agentknock-device-open-exchanges", fmt.Sprint(l.Agentknock.DeviceOpenExchanges),
		"--agentknock-frames-per-minute", fmt.Sprint(l.Agentknock.FramesPerMinute),
		"--agentknock-wake-interval", l.Agentknock.WakeInterval.String(),
	)
	target := oursAgentknock(r)
	target.Lacks = []string{ // nobody sees what it pushes
		"DevicePush_WakesADeviceThatIsAway", "DevicePush_CarriesNothingElse", "DevicePush_NotWhileConnected",
		"DevicePush_NotWithoutRegistration", "DevicePush_InitialPairing", "DevicePush_Completion",
	}
	target.Kill = r.Kill
	return target
}
