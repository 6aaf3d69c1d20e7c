package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"strings"
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
	switch err := f.Parse(args); {
	case errors.Is(err, flag.ErrHelp):
		fmt.Fprintf(out, "Usage: %s [flags]\n\n%s\n\n", f.Name(), about)
		helpFlags(out, f)
		return flag.ErrHelp
	case err != nil:
		return err
	case f.NArg() > 0:
		return fmt.Errorf("unexpected argument %q", f.Arg(0))
	}
	return nil
}

// noFlags ends a command whose flags were not to be had: because help was all that
// was wanted, or because they are wrong. It returns the exit status.
func noFlags(e env, command string, err error) int {
	if errors.Is(err, flag.ErrHelp) {
		return 0
	}
	fmt.Fprintf(e.stderr, "blindpost %s: %v\n", command, err)
	return 2
}

// helpFlags prints the flags of a command by their names.
func helpFlags(w io.Writer, f *flag.FlagSet) {
	f.VisitAll(func(fl *flag.Flag) { helpFlag(w, fl, "false") })
}

// helpFlag prints one flag, with its default unless that goes without saying.
func helpFlag(w io.Writer, fl *flag.Flag, unsaid string) {
	placeholder, usage := flag.UnquoteUsage(fl)
	fmt.Fprintf(w, "  --%s", fl.Name)
	if placeholder != "" {
		fmt.Fprintf(w, " %s", strings.ToUpper(placeholder))
	}
	fmt.Fprintf(w, "\n      %s", usage)
	if fl.DefValue != "" && fl.DefValue != unsaid {
		fmt.Fprintf(w, " (default %s)", fl.DefValue)
	}
	fmt.Fprintln(w)
}
