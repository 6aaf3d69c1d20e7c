package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"blindpost/shared/standalone"
)

const demoAbout = `Start a relay on a free port, let peers pair and talk through it, and check on the
way what the relay promises. It takes seconds, needs nothing, and leaves nothing
behind.`

// demoStories are the demos by dialect.
var demoStories = map[string]func(context.Context, *demoStory){
	"skald":      func(ctx context.Context, s *demoStory) { (&skaldDemo{demoStory: s}).play(ctx) },
	"agentknock": func(ctx context.Context, s *demoStory) { (&agentknockDemo{demoStory: s}).play(ctx) },
	"aelos":      func(ctx context.Context, s *demoStory) { (&aelosDemo{demoStory: s}).play(ctx) },
}

func demoDialects() string { return strings.Join(slices.Sorted(maps.Keys(demoStories)), ", ") }

// demoSettings are the settings of a demo. The last three are not flags: tests
// set them, to shorten waits and to break the relay.
type demoSettings struct {
	dialect string
	verbose bool
	keep    bool

	patience time.Duration // for one thing to happen
	limits   standalone.Limits
	// tap sees every line that the relay logs, and may add to it.
	tap func(log io.Writer)
}

func defaultDemo() demoSettings {
	return demoSettings{dialect: "skald", patience: 10 * time.Second, limits: standalone.DefaultLimits()}
}

func runDemo(ctx context.Context, e env, args []string) int {
	settings := defaultDemo()
	f := newFlags("demo")
	f.StringVar(&settings.dialect, "dialect", settings.dialect, "")
	f.BoolVar(&settings.verbose, "verbose", false, "")
	f.BoolVar(&settings.keep, "keep", false, "")
	err := parseArgs(f, args)
	switch {
	case errors.Is(err, flag.ErrHelp):
		fmt.Fprintf(e.stdout, "Usage: blindpost demo [flags]\n\n%s\n\n"+
			"  --dialect NAME\n      protocol to speak: %s (default skald)\n"+
			"  --verbose\n      show what the relay logs\n"+
			"  --keep\n      keep the relay's folder, to look into\n", demoAbout, demoDialects())
		return 0
	case err == nil && f.NArg() > 0:
		err = fmt.Errorf("unexpected argument %q", f.Arg(0))
	case err == nil && demoStories[settings.dialect] == nil:
		err = fmt.Errorf("there is no demo of dialect %q: only of %s", settings.dialect, demoDialects())
	}
	if err != nil {
		fmt.Fprintf(e.stderr, "blindpost demo: %v\n`blindpost demo --help` lists the flags.\n", err)
		return 2
	}
	return playDemo(ctx, e, settings)
}

// playDemo runs the demo in a folder of its own and returns the exit status.
func playDemo(ctx context.Context, e env, settings demoSettings) int {
	s := newScreen(env{stdout: e.stdout, stderr: e.stdout, environ: e.environ}, "")
	began := time.Now()
	dir, err := os.MkdirTemp("", "blindpost-demo-")
	if err != nil {
		s.warn("demo: failed to make a folder: %v", err)
		return 1
	}
	if !settings.keep {
		defer func() {
			if err := os.RemoveAll(dir); err != nil {
				fmt.Fprintf(e.stderr, "demo: failed to remove %s: %v\n", dir, err)
			}
		}()
	}
	r := &demoReport{screen: s}
	demoStories[settings.dialect](ctx, &demoStory{demoReport: r, demoSettings: settings, dir: dir})
	if settings.keep {
		s.note("\nThe relay's files are in %s", dir)
	}
	if ctx.Err() != nil {
		s.warn("demo: interrupted")
		return 1
	}
	s.note("\nThat took %.1f s.", time.Since(began).Seconds())
	return r.finish()
}
