//go:build cdk

package main

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// contextPrefix is in front of every key of ours in the context of the CDK, which
// it shares with feature flags and cached look-ups. What begins with it and is
// unknown is an error, so that a typing mistake does not go unnoticed.
const contextPrefix = "blindpost:"

// readContext reads the settings out of the whole context of an app.
func readContext(context any) (*settings, error) {
	given := map[string]string{}
	all, ok := context.(map[string]any)
	if !ok && context != nil {
		return nil, fmt.Errorf("failed to read the context: it is a %T", context)
	}
	var errs []error
	for name, v := range all {
		short, ours := strings.CutPrefix(name, contextPrefix)
		if !ours {
			continue
		}
		text, err := contextText(v)
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", name, err))
		}
		given[short] = text
	}
	s := &settings{reserved: map[string]int{}, maxConcurrency: map[string]int{}, limits: map[string]string{}}
	for _, k := range contextKeys {
		value, set := given[k.name]
		delete(given, k.name)
		if !set || value == "" {
			value = k.def
		}
		if value == "" {
			continue
		}
		if err := k.read(s, value); err != nil {
			errs = append(errs, fmt.Errorf("%s%s: %q %w", contextPrefix, k.name, value, err))
		}
	}
	for _, l := range limits {
		if value := given[string(l)]; value != "" {
			s.limits[l.variable()] = value
		}
		delete(given, string(l))
	}
	for _, name := range slices.Sorted(maps.Keys(given)) {
		errs = append(errs, fmt.Errorf("%s%s: there is no such setting (infra/README.md lists them)", contextPrefix, name))
	}
	if _, set := s.limits[maxLiveFrame]; !set && s.allFronts() == nil {
		s.limits[maxLiveFrame] = strconv.Itoa(apiFrame>>10) + "KiB"
	}
	// What could not be read would only be found again.
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return s, s.check()
}

// maxLiveFrame is beyond API Gateway where nobody sets it.
const maxLiveFrame = "BLINDPOST_MAX_LIVE_FRAME"

// keyNames are the names of all settings.
func keyNames() []string {
	var all []string
	for _, k := range contextKeys {
		all = append(all, k.name)
	}
	for _, l := range limits {
		all = append(all, string(l))
	}
	return all
}

// contextText takes values from cdk.json, where they can have a type, and from
// the command line, where all are text.
func contextText(v any) (string, error) {
	switch v := v.(type) {
	case string:
		return v, nil
	case bool:
		return strconv.FormatBool(v), nil
	case float64:
		return strconv.FormatFloat(v, 'f', -1, 64), nil
	default:
		return "", errors.New("it must be text, a number, true or false")
	}
}
