// Package settings answers, before anything is deployed, what the functions would
// say of their environment when they start. It is for the stack: a wrong setting is
// refused where it is made, by the code that would refuse it later.
package settings

import "blindpost/functions/internal/wiring"

// Limits are those of what a front has to carry, in bytes.
type Limits struct {
	MaxFrame, MaxLiveFrame int64
}

// Check reads the environment of one function ("connect", "message", "disconnect"
// or "sweeper") as os.Environ would list it. Its error names all that is wrong.
func Check(function string, environ []string) (Limits, error) {
	c, err := wiring.Load(environ, wiring.Function(function))
	if err != nil {
		return Limits{}, err
	}
	return Limits{MaxFrame: c.Skald.MaxFrame, MaxLiveFrame: c.Skald.MaxLiveFrame}, nil
}

// Variables lists the names of all that the functions read.
func Variables() []string { return wiring.Variables() }
