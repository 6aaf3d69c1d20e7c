package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"

	"blindpost/shared/settings"
)

// ParseSettings reads the settings of `blindpost serve` from the arguments, from the environment of the process and from
// the file that either names. A flag wins over a variable, a variable over the file. For --help it prints the settings
// that most people need to out, for --help-all all of them, and returns flag.ErrHelp. Every other error names all that is
// wrong, with its place.
func ParseSettings(args []string, out io.Writer) (settings.Values, error) {
	v, err := readSettings(args, os.Environ(), out)
	if errors.Is(err, flag.ErrHelp) {
		return settings.Values{}, flag.ErrHelp
	}
	if err == nil {
		err = checkSettings(v)
	}
	if err != nil {
		return settings.Values{}, fmt.Errorf("failed to read the settings: %w", err)
	}
	return v, nil
}

func readSettings(args, environ []string, out io.Writer) (settings.Values, error) {
	flags, err := readFlags(args, out)
	if err != nil {
		return settings.Values{}, err
	}
	above := settings.For(settings.Binary, settings.Line) // what wins over the file
	err = errors.Join(above.SetEnviron(environ), setFlags(above, flags))
	v := settings.For(settings.Binary, settings.Line)
	if name := settings.Config.Of(above); name != "" {
		err = errors.Join(err, readFile(v, name))
	}
	return v.Under(above), err
}

// given is a flag with what was said.
type given struct{ name, text string }

func readFlags(args []string, out io.Writer) (all []given, err error) {
	f := newFlags("serve")
	for _, s := range settings.All(settings.Binary) {
		take := func(text string) error {
			all = append(all, given{s.Name, text})
			return nil
		}
		if s.Switch {
			f.BoolFunc(s.Name, "", take)
		} else {
			f.Func(s.Name, "", take)
		}
	}
	everything := f.Bool("help-all", false, "")
	err = parseOnlyFlags(f, args)
	switch {
	case errors.Is(err, flag.ErrHelp) || err == nil && *everything:
		helpSettings(out, *everything)
		return nil, flag.ErrHelp
	case err != nil:
		return nil, err
	}
	return all, nil
}

func setFlags(v settings.Values, flags []given) error {
	var errs []error
	lists := map[string]string{}
	for _, g := range flags {
		if s, err := v.Lookup(g.name); err == nil && s.List {
			lists[g.name] += g.text + ","
			g.text = strings.TrimSuffix(lists[g.name], ",")
		}
		errs = append(errs, v.Set("", settings.Flag, g.name, g.text))
	}
	return errors.Join(errs...)
}
