package main

import (
	"fmt"
	"io"
	"maps"
	"slices"

	"gopkg.in/yaml.v2"
)

// maxSettingsFile is the largest settings file that is read.
const maxSettingsFile = 1 << 20

// fileValue is a value in the settings file: one text or a list of texts. The
// text is as it stands in the file: 010 and 1:30 are not taken for numbers.
type fileValue struct {
	texts []string
	list  bool
	bad   bool // something else
}

// UnmarshalYAML reads a scalar or a list of scalars. It is not called for a
// value that is left out. It leaves errors to parseFile, which knows the name.
func (v *fileValue) UnmarshalYAML(unmarshal func(any) error) error {
	if unmarshal(&v.texts) == nil {
		v.list = true
		return nil
	}
	v.texts = make([]string, 1)
	v.bad = unmarshal(&v.texts[0]) != nil
	return nil
}

// parseFile is the ff.ConfigFileParser of the settings file: YAML, a flat map
// from the names of flags to values. (ffyaml would take nested maps, let the
// second of two equal keys win, and read numbers as YAML does.)
func (f *settingsFlags) parseFile(r io.Reader, set func(name, value string) error) error {
	data, err := io.ReadAll(io.LimitReader(r, maxSettingsFile+1))
	if err != nil {
		return fmt.Errorf("failed to read the settings file: %w", err)
	}
	if len(data) > maxSettingsFile {
		return fmt.Errorf("settings file is larger than %d bytes", maxSettingsFile)
	}
	settings := map[string]fileValue{}
	if err := yaml.UnmarshalStrict(data, &settings); err != nil {
		return fmt.Errorf("settings file: %w", err)
	}
	for _, name := range slices.Sorted(maps.Keys(settings)) {
		v := settings[name]
		fl := f.Lookup(name)
		switch {
		case fl == nil || name == "config":
			return fmt.Errorf("settings file: unknown setting %q", name)
		case v.bad:
			return fmt.Errorf("settings file: setting %q must be one value or a list of values", name)
		case v.texts == nil:
			return fmt.Errorf("settings file: setting %q has no value", name)
		}
		if _, many := fl.Value.(manyValue); v.list && !many {
			return fmt.Errorf("settings file: setting %q takes one value, not a list", name)
		}
		for _, text := range v.texts {
			if err := set(name, text); err != nil {
				return fmt.Errorf("settings file: %w", err)
			}
		}
	}
	return nil
}
