package aelos

import (
	"errors"

	"blindpost/shared/settings"
)

// DefaultLimits are the values of section 2. A boat sends a snapshot a second to
// each of eight viewers, which is 480 a minute.
func DefaultLimits() Limits { return LimitsFrom(settings.Defaults()) }

// LimitsFrom reads the limits.
func LimitsFrom(v settings.Values) Limits {
	return Limits{
		MaxFrame:         settings.AelosMaxFrame.Of(v),
		MaxViewers:       settings.AelosMaxViewers.Of(v),
		HelloTimeout:     settings.AelosHelloTimeout.Of(v),
		Leeway:           settings.AelosClockLeeway.Of(v),
		BoatFrames:       settings.AelosBoatFrames.Of(v),
		ViewerFrames:     settings.AelosViewerFrames.Of(v),
		Commands:         settings.AelosCommands.Of(v),
		CommandBytes:     settings.AelosCommandBytes.Of(v),
		MaxHandshake:     settings.AelosMaxHandshake.Of(v),
		Handshakes:       settings.AelosHandshakes.Of(v),
		MaxViewersPerSub: settings.AelosMaxViewersPerSub.Of(v),
		MaxTokenLife:     settings.AelosMaxTokenLife.Of(v),
	}
}

// minHandshake is the least that aelos-max-handshake may be. A real hs2 has some three hundred bytes.
const minHandshake = 512

// CheckSettings finds what makes no sense among the settings of the dialect.
func CheckSettings(v settings.Values) error {
	var errs []error
	if n := settings.AelosMaxHandshake.Of(v); n != 0 && n < minHandshake {
		errs = append(errs, v.Wrong(settings.AelosMaxHandshake, "a handshake does not fit into it: it must be %d or more, or 0", minHandshake))
	}
	if p := settings.AelosPath.Of(v); p != "" {
		if err := CheckPath(p); err != nil {
			errs = append(errs, v.Wrong(settings.AelosPath, "%w", err))
		}
	}
	if _, err := ControllerFrom(v); err != nil {
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// ControllerFrom reads how a token says that a viewer may send commands.
func ControllerFrom(v settings.Values) (Controller, error) {
	c, err := ParseController(settings.AelosController.Of(v))
	if err != nil {
		return c, v.Wrong(settings.AelosController, "%w", err)
	}
	return c, nil
}
