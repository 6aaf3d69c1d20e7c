package wiring

import (
	"errors"
	"fmt"

	"blindpost/functions"
	"blindpost/shared/settings"
)

var readers = map[Function]settings.Readers{
	Connect: settings.Connect, Message: settings.Message, Disconnect: settings.Disconnect, Sweeper: settings.Sweeper,
}

// Load reads the settings of a function from its environment, as os.Environ lists it. The error names all that is wrong.
func Load(environ []string, f Function) (settings.Values, error) {
	v := settings.For(settings.Functions, settings.Variable)
	if err := errors.Join(v.SetEnviron(environ), functions.Check(v, readers[f])); err != nil {
		return settings.Values{}, fmt.Errorf("failed to read the settings: %w", err)
	}
	return v, nil
}
