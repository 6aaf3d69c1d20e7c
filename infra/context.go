//go:build cdk

package main

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	declared "blindpost/shared/settings"
)

// readContext reads the settings out of the whole context of an app, which has
// feature flags and cached look-ups too. An unknown
// key with our prefix is an error, so that a typing mistake is noticed.
func readContext(context any) (*settings, error) {
	all, ok := context.(map[string]any)
	if !ok && context != nil {
		return nil, fmt.Errorf("failed to read the context: it is a %T", context)
	}
	v := declared.For(declared.Stack, contextKey)
	var errs []error
	for _, key := range slices.Sorted(maps.Keys(all)) {
		name, ours := strings.CutPrefix(key, contextKey(""))
		if !ours {
			continue
		}
		text, err := contextText(all[key])
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", key, err))
		} else if _, err = v.Lookup(name); err != nil || text != "" { // "" is as good as not set
			errs = append(errs, v.Set("", contextKey, name, text))
		}
	}
	// The checks below would report the same mistakes again.
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	s, err := newSettings(v)
	if err != nil {
		return nil, err
	}
	return s, s.check()
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

// contextKey is how the CDK's context names a setting.
func contextKey(name string) string { return "blindpost:" + name }
