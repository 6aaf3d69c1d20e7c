package conformance

// Environment is the settings as variables of the functions, which have no times of a
// front.
func (o Settings) Environment() (env []string) {
	if o.Plenty {
		for _, name := range []string{
			"CONNECTIONS_PER_IP", "AELOS_BOAT_FRAMES_PER_MINUTE", "AELOS_VIEWER_FRAMES_PER_MINUTE",
			"AELOS_COMMANDS_PER_MINUTE", "AELOS_COMMAND_BYTES_PER_MINUTE", "AELOS_HANDSHAKES_PER_MINUTE",
		} {
			env = append(env, "BLINDPOST_"+name+"=0")
		}
	}
	return env
}
