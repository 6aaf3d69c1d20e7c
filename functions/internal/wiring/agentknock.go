package wiring

import (
	"errors"
	"time"

	"blindpost/shared/dialect/agentknock"
)

// agentknockSettings are the limits of that protocol.
func (c *Config) agentknockSettings() []setting {
	l := &c.Agentknock
	return []setting{
		{"AGENTKNOCK_CLIENT_EXCHANGES_PER_MINUTE", "new exchanges a minute of one client; 0: no limit", count(&l.ClientExchangesPerMinute)},
		{"AGENTKNOCK_DEVICE_EXCHANGES_PER_MINUTE", "new exchanges a minute of all clients of one device; 0: no limit", count(&l.DeviceExchangesPerMinute)},
		{"AGENTKNOCK_CLIENT_OPEN_EXCHANGES", "open exchanges of one client; 0: no limit", count(&l.ClientOpenExchanges)},
		{"AGENTKNOCK_DEVICE_OPEN_EXCHANGES", "open exchanges of one device; 0: no limit", count(&l.DeviceOpenExchanges)},
		{"AGENTKNOCK_CLIENT_STORED_BYTES", "bytes that wait for delivery, of one client; 0: no limit", size(&l.ClientStoredBytes)},
		{"AGENTKNOCK_DEVICE_STORED_BYTES", "bytes that wait for delivery, of one device; 0: no limit", size(&l.DeviceStoredBytes)},
		{"AGENTKNOCK_FRAMES_PER_MINUTE", "frames a minute on one connection; 0: no limit", count(&l.FramesPerMinute)},
		{"AGENTKNOCK_EXCHANGE_TTL", "time that an exchange stays open without any activity", duration(&l.ExchangeTTL)},
		{"AGENTKNOCK_RECOVERY_TTL", "time that the state of an exchange can be asked for after its end", duration(&l.RecoveryTTL)},
		{"AGENTKNOCK_PAIRING_TTL", "time that an admitted pairing attempt can be taken up again", duration(&l.PairingTTL)},
		{"AGENTKNOCK_WAKE_INTERVAL", "shortest time between two pushes to one device", duration(&l.WakeInterval)},
	}
}

func (c *Config) checkAgentknock() error {
	l := c.Agentknock
	return errors.Join(
		inRange("AGENTKNOCK_EXCHANGE_TTL", l.ExchangeTTL, time.Millisecond, maxTTL),
		inRange("AGENTKNOCK_RECOVERY_TTL", l.RecoveryTTL, 0, maxTTL),
		inRange("AGENTKNOCK_PAIRING_TTL", l.PairingTTL, time.Millisecond, maxTTL),
		inRange("AGENTKNOCK_WAKE_INTERVAL", l.WakeInterval, 0, maxTTL),
	)
}

// maxFrame is the largest frame of any dialect.
func (c *Config) maxFrame() int64 {
	return max(c.Skald.MaxFrame, c.Skald.MaxLiveFrame, c.Aelos.Limits.MaxFrame, agentknock.MaxFrame)
}
