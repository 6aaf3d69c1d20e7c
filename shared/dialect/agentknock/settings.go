package agentknock

import (
	"blindpost/shared/dialect/agentknock/attest"
	"blindpost/shared/settings"
)

// DefaultLimits are the default values of the settings.
func DefaultLimits() Limits { return LimitsFrom(settings.Defaults()) }

// LimitsFrom reads the limits.
func LimitsFrom(v settings.Values) Limits {
	return Limits{
		ClientExchangesPerMinute: settings.KnockClientExchangesPerMinute.Of(v),
		DeviceExchangesPerMinute: settings.KnockDeviceExchangesPerMinute.Of(v),
		ClientOpenExchanges:      settings.KnockClientOpenExchanges.Of(v),
		DeviceOpenExchanges:      settings.KnockDeviceOpenExchanges.Of(v),
		ClientStoredBytes:        settings.KnockClientStoredBytes.Of(v),
		DeviceStoredBytes:        settings.KnockDeviceStoredBytes.Of(v),
		FramesPerMinute:          settings.KnockFramesPerMinute.Of(v),
		ExchangeTTL:              settings.KnockExchangeTTL.Of(v),
		RecoveryTTL:              settings.KnockRecoveryTTL.Of(v),
		PairingTTL:               settings.KnockPairingTTL.Of(v),
		WakeInterval:             settings.KnockWakeInterval.Of(v),
	}
}

// CheckSettings finds a demand without roots, and roots without a demand.
func CheckSettings(v settings.Values) error {
	demand, err := attest.ParseDemand(settings.KnockAttestation.Of(v))
	if err == nil {
		err = attest.CheckPolicy(demand, settings.KnockRoots.Of(v))
	}
	if err != nil {
		return v.Wrong(settings.KnockAttestation, "%w", err)
	}
	return nil
}

// AttestationFrom reads the demand and its roots.
func AttestationFrom(v settings.Values) (attest.Policy, error) {
	demand, err := attest.ParseDemand(settings.KnockAttestation.Of(v))
	if err != nil {
		return attest.Policy{}, v.Wrong(settings.KnockAttestation, "%w", err)
	}
	policy, err := attest.ReadPolicy(demand, settings.KnockRoots.Of(v))
	if err != nil {
		return attest.Policy{}, v.Wrong(settings.KnockRoots, "%w", err)
	}
	return policy, nil
}
