package conformance

import "fmt"

// Environment is the settings as variables of the functions.
func (o Settings) Environment() (env []string) {
	set := func(name string, v any, given bool) {
		if given {
			env = append(env, fmt.Sprintf("BLINDPOST_%s=%v", name, v))
		}
	}
	set("MESSAGES_PER_MINUTE", o.MessagesPerMinute, o.MessagesPerMinute != 0)
	set("CONTROL_FRAMES_PER_MINUTE", o.MessagesPerMinute, o.MessagesPerMinute != 0)
	set("CONNECTIONS_PER_IP", o.ConnectionsPerIP, o.ConnectionsPerIP != 0)
	set("MAILBOX_CAP", o.MailboxCap, o.MailboxCap != 0)
	set("MAX_FRAME", o.MaxFrame, o.MaxFrame != 0)
	set("MAX_LIVE_FRAME", o.MaxLiveFrame, o.MaxLiveFrame != 0)
	set("CHALLENGE_TIMEOUT", o.ChallengeTimeout, o.ChallengeTimeout != 0)
	set("MESSAGE_TTL", o.QueueTTL, o.QueueTTL != 0)
	set("NAMESPACE_TTL", o.NamespaceTTL, o.NamespaceTTL != 0)
	return env
}
