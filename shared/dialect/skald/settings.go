package skald

import (
	"errors"
	"time"

	"blindpost/shared/settings"
)

// DefaultLimits are the values of section 10.
func DefaultLimits() Limits { return LimitsFrom(settings.Defaults()) }

// LimitsFrom reads the limits. CheckSettings has found that they make sense.
func LimitsFrom(v settings.Values) Limits {
	return Limits{
		MaxFrame:         settings.MaxFrame.Of(v),
		MaxLiveFrame:     settings.MaxLiveFrame.Of(v),
		ChallengeTimeout: settings.ChallengeTimeout.Of(v),
		NamespaceTTL:     settings.NamespaceTTL.Of(v),
		PairingTTL:       settings.PairingTTL.Of(v),
		PairingTTLMax:    settings.PairingTTLMax.Of(v),
	}
}

// CheckSettings finds limits that contradict each other.
func CheckSettings(v settings.Values) error {
	l := LimitsFrom(v)
	var errs []error
	for _, k := range []settings.Key[time.Duration]{settings.PairingTTL, settings.PairingTTLMax} {
		if k.Of(v)%time.Second != 0 {
			errs = append(errs, v.Wrong(k, "it must be whole seconds"))
		}
	}
	if l.PairingTTL > l.PairingTTLMax {
		errs = append(errs, v.Wrong(settings.PairingTTL, "it is longer than %s", settings.PairingTTLMax))
	}
	if l.MaxLiveFrame < l.MaxFrame {
		errs = append(errs, v.Wrong(settings.MaxLiveFrame, "it is smaller than %s", settings.MaxFrame))
	}
	return errors.Join(errs...)
}
