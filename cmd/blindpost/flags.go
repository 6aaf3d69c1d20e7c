package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"strings"

	"blindpost/shared/settings"
)

// newFlags makes the flags of a command. They print nothing: errors are returned,
// and help is printed where it is asked for.
func newFlags(command string) *flag.FlagSet {
	f := flag.NewFlagSet("blindpost "+command, flag.ContinueOnError)
	f.SetOutput(io.Discard)
	f.Usage = func() {}
	return f
}

// parseFlags reads the arguments of a command that takes flags only. For --help it
// prints them to out, below what the command is about, and returns flag.ErrHelp.
func parseFlags(f *flag.FlagSet, args []string, out io.Writer, about string) error {
	err := parseOnlyFlags(f, args)
	if errors.Is(err, flag.ErrHelp) {
		fmt.Fprintf(out, "Usage: %s [flags]\n\n%s\n\n", f.Name(), about)
		helpFlags(out, f)
	}
	return err
}

func parseOnlyFlags(f *flag.FlagSet, args []string) error {
	err := parseArgs(f, args)
	if err == nil && f.NArg() > 0 {
		return fmt.Errorf("unexpected argument %q", f.Arg(0))
	}
	return err
}

// parseArgs reads arguments. The error about an unknown flag names the nearest one.
func parseArgs(f *flag.FlagSet, args []string) error {
	err := f.Parse(args)
	if err == nil {
		return nil
	}
	if name, unknown := strings.CutPrefix(err.Error(), "flag provided but not defined: -"); unknown {
		var names []string
		f.VisitAll(func(fl *flag.Flag) { names = append(names, fl.Name) })
		return fmt.Errorf("--%s: %w", name, settings.Unknown("flag", name, names, settings.Flag))
	}
	if name, bare := strings.CutPrefix(err.Error(), "flag needs an argument: -"); bare {
		return fmt.Errorf("--%s: it needs a value, as in --%s=VALUE", name, name)
	}
	return err
}

// noFlags returns the exit status of a command that ends after its flags were read: 0
// after --help, 2 with a message if they are wrong.
func noFlags(e env, command string, err error) int {
	if errors.Is(err, flag.ErrHelp) {
		return 0
	}
	fmt.Fprintf(e.stderr, "blindpost %s: %v\n", command, err)
	return 2
}

// helpFlags prints the flags of a command by their names.
func helpFlags(w io.Writer, f *flag.FlagSet) {
	f.VisitAll(func(fl *flag.Flag) { helpFlag(w, fl) })
}

// helpFlag prints one flag, with its default unless that is empty or false.
func helpFlag(w io.Writer, fl *flag.Flag) {
	placeholder, usage := flag.UnquoteUsage(fl)
	fmt.Fprintf(w, "  --%s", fl.Name)
	if placeholder != "" {
		fmt.Fprintf(w, " %s", strings.ToUpper(placeholder))
	}
	fmt.Fprintf(w, "\n      %s", usage)
	if fl.DefValue != "" && fl.DefValue != "false" {
		fmt.Fprintf(w, " (default %s)", fl.DefValue)
	}
	fmt.Fprintln(w)
}

// listValue is a flag with a list: commas separate the items, and a repeated flag
// appends to it.
type listValue []string

func (v *listValue) String() string { return strings.Join(*v, ",") }

func (v *listValue) Set(s string) error {
	for one := range strings.SplitSeq(s, ",") {
		if one = strings.TrimSpace(one); one != "" {
			*v = append(*v, one)
		}
	}
	return nil
}
