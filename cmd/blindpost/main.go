// Command blindpost is the relay in one binary, and the tools around it.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"blindpost/shared/settings"
)

// env is what a command may use of the outside world.
type env struct {
	stdin  io.Reader
	stdout io.Writer
	stderr io.Writer
	// environ is the environment in the form of os.Environ.
	environ []string
}

// command is one subcommand. run gets the arguments after its name and returns
// the exit status: 0 fine, 1 failed, 2 used wrongly.
type command struct {
	name    string
	summary string
	run     func(ctx context.Context, e env, args []string) int
}

func commands() []command {
	return []command{
		{"serve", "run the relay", runServe},
		{"demo", "start a relay, pair, talk, and check what must hold", runDemo},
		{"agent", "be a Skald agent: pair a client and chat with it", runAgent},
		{"client", "be a Skald client: pair with an agent and chat with it", runClient},
		{"doctor", "check a relay from outside", runDoctor},
		{"bench", "measure a relay", runBench},
		{"cost", "print what the relay costs a month on AWS", runCost},
		{"version", "print the version", runVersion},
	}
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	e := env{stdin: os.Stdin, stdout: os.Stdout, stderr: os.Stderr, environ: os.Environ()}
	status := run(ctx, e, os.Args[1:])
	stop()
	os.Exit(status)
}

func run(ctx context.Context, e env, args []string) int {
	if len(args) == 0 {
		usage(e.stderr)
		return 2
	}
	if args[0] == "help" && len(args) > 1 {
		args = []string{args[1], "--help"}
	}
	switch args[0] {
	case "help", "-h", "-help", "--help":
		usage(e.stdout)
		return 0
	case "-version", "--version":
		args[0] = "version"
	}
	var names []string
	for _, c := range commands() {
		if c.name == args[0] {
			return c.run(ctx, e, args[1:])
		}
		names = append(names, c.name)
	}
	fmt.Fprintf(e.stderr, "blindpost: %s: %v\n\n", args[0], settings.Unknown("command", args[0], names, settings.Line))
	usage(e.stderr)
	return 2
}

func usage(w io.Writer) {
	fmt.Fprint(w, "Blindpost, a relay that cannot read what it carries.\n\nUsage: blindpost COMMAND [flags]\n\nCommands:\n")
	for _, c := range commands() {
		fmt.Fprintf(w, "  %-8s %s\n", c.name, c.summary)
	}
	fmt.Fprint(w, "\n`blindpost COMMAND --help` lists the flags of a command.\n")
}
