package wiring

import (
	"errors"
	"time"

	"blindpost/shared/dialect/agentknock"
	"blindpost/shared/dialect/agentknock/attest"
	"blindpost/shared/push"
	"blindpost/shared/relay"
)

// Attestation is what devices have to bring along when they claim their id. Only
// functions/connect serves claims, and is told.
type Attestation struct {
	Demand attest.Demand
	Roots  string // PEM file, which is deployed with the function
}

// agentknockSettings are the limits of that protocol, and what else it has.
func (c *Config) agentknockSettings() []setting {
	l := &c.Agentknock
	return []setting{
		{"AGENTKNOCK_ATTESTATION", "what is wanted of the Android key attestation of a device that claims its id: off, check or require", demand(&c.Attestation.Demand)},
		{"AGENTKNOCK_ATTESTATION_ROOTS", "PEM file with the root certificates that attestations have to lead to", text(&c.Attestation.Roots)},
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
	errs := []error{
		inRange("AGENTKNOCK_EXCHANGE_TTL", l.ExchangeTTL, time.Millisecond, maxTTL),
		inRange("AGENTKNOCK_RECOVERY_TTL", l.RecoveryTTL, 0, maxTTL),
		inRange("AGENTKNOCK_PAIRING_TTL", l.PairingTTL, time.Millisecond, maxTTL),
		inRange("AGENTKNOCK_WAKE_INTERVAL", l.WakeInterval, 0, maxTTL),
	}
	if err := attest.CheckPolicy(c.Attestation.Demand, c.Attestation.Roots); err != nil {
		errs = append(errs, complaint("AGENTKNOCK_ATTESTATION", "%w", err))
	}
	return errors.Join(errs...)
}

func demand(v *attest.Demand) func(string) error {
	return func(s string) (err error) {
		*v, err = attest.ParseDemand(s)
		return err
	}
}

// useAgentknock adds the dialect. A function whose roots cannot be read does not work:
// that is found when it is deployed, and a device that nobody vouches for would not be.
func (a *App) useAgentknock(r *relay.Relay, pusher push.Sender) (*agentknock.Dialect, error) {
	attestation, err := attest.ReadPolicy(a.cfg.Attestation.Demand, a.cfg.Attestation.Roots)
	if err != nil {
		return nil, complaint("AGENTKNOCK_ATTESTATION_ROOTS", "%w", err)
	}
	knock := agentknock.New(r, agentknock.Options{
		Limits: a.cfg.Agentknock, Pusher: pusher, RemoteIP: remoteIP, Attestation: attestation,
	})
	r.Use(knock)
	return knock, nil
}

// maxFrame is the largest frame of any dialect.
func (c *Config) maxFrame() int64 {
	return max(c.Skald.MaxFrame, c.Skald.MaxLiveFrame, c.Aelos.Limits.MaxFrame, agentknock.MaxFrame)
}
