package conformance

import "fmt"

// Environment is the settings as variables of the functions. What all clients of a
// device may do together is not limited.
func (o Settings) Environment() (env []string) {
	for name, v := range map[string]int{
		"CONNECTIONS_PER_IP": o.ConnectionsPerIP, "AGENTKNOCK_FRAMES_PER_MINUTE": o.FramesPerMinute,
		"AGENTKNOCK_CLIENT_EXCHANGES_PER_MINUTE": o.NewExchanges, "AGENTKNOCK_CLIENT_OPEN_EXCHANGES": o.OpenExchanges,
	} {
		if v != 0 {
			env = append(env, fmt.Sprintf("BLINDPOST_%s=%d", name, v))
		}
	}
	if o.WakeInterval != 0 {
		env = append(env, "BLINDPOST_AGENTKNOCK_WAKE_INTERVAL="+o.WakeInterval.String())
	}
	return append(env, "BLINDPOST_AGENTKNOCK_DEVICE_EXCHANGES_PER_MINUTE=0", "BLINDPOST_AGENTKNOCK_DEVICE_OPEN_EXCHANGES=0")
}
