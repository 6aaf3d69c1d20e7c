package relay

import "blindpost/shared/settings"

// LimitsFrom reads the limits of the core.
func LimitsFrom(v settings.Values) Limits {
	return Limits{
		MailboxCap:        settings.MailboxCap.Of(v),
		MessageTTL:        settings.MessageTTL.Of(v),
		ConnectionsPerIP:  settings.ConnectionsPerIP.Of(v),
		MessagesPerMinute: settings.MessagesPerMinute.Of(v),
		ControlPerMinute:  settings.ControlPerMinute.Of(v),
	}
}
