package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"runtime"
	"runtime/debug"
	"strings"
	"time"

	"blindpost/shared/proof/bench"
)

// benchSettings are the flags of `blindpost bench`.
type benchSettings struct {
	cfg     bench.Config
	json    bool
	short   bool
	dir     string // for the databases of the relays
	profile string // folder, "" is off
}

const benchAbout = `Starts relays of its own and measures them. What it prints depends on the
machine, and on what else runs there.`

// parseBench reads the flags. For --help it prints them to out and returns
// flag.ErrHelp.
func parseBench(args []string, out io.Writer) (benchSettings, error) {
	var s benchSettings
	var only listValue
	d := bench.Default()
	f := newFlags("bench")
	f.BoolVar(&s.short, "short", false, "take less than a minute")
	f.BoolVar(&s.json, "json", false, "print one JSON object instead of a table")
	f.Var(&only, "only", "`parts` to run, separated by commas: "+strings.Join(bench.Parts(), ", ")+"; live, auth, idle and aelos name all parts of a kind")
	f.StringVar(&s.dir, "dir", "", "`folder` for the database of the relay; it should be on the disk that is to be measured (default: one for temporary files that is not in memory)")
	f.StringVar(&s.profile, "profile", "", "`folder` for processor and memory profiles of the relay, one each per measurement")
	measure := f.Duration("measure", d.Measure, "`time` that one measurement takes")
	f.IntVar(&d.MessageBytes, "message-bytes", d.MessageBytes, "`bytes` of ciphertext in a message")
	f.IntVar(&d.Burst, "burst", d.Burst, "`messages` that one pair sends at a time while latency is measured")
	f.IntVar(&d.Senders, "senders", d.Senders, "`agents` that write stored messages, each to one client")
	f.IntVar(&d.Askers, "askers", d.Askers, "Agentknock `clients` that have an exchange open at a time, four with each device")
	if err := parseFlags(f, args, out, benchAbout); err != nil {
		return s, err
	}
	s.cfg = bench.Default()
	if s.short {
		s.cfg = bench.Short()
	}
	f.Visit(func(fl *flag.Flag) {
		if fl.Name == "measure" {
			s.cfg.Measure = *measure
		}
	})
	s.cfg.Only = only
	s.cfg.MessageBytes, s.cfg.Burst, s.cfg.Senders, s.cfg.Askers = d.MessageBytes, d.Burst, d.Senders, d.Askers
	return s, s.cfg.Check()
}

// runBench measures relays that it starts from its own executable.
func runBench(ctx context.Context, e env, args []string) int {
	s, err := parseBench(args, e.stdout)
	if err != nil {
		return noFlags(e, "bench", err)
	}
	exe, err := os.Executable()
	if err != nil {
		fmt.Fprintf(e.stderr, "blindpost bench: failed to find the executable: %v\n", err)
		return 1
	}
	if err := measureAndReport(ctx, e, s, benchExecutable{path: exe}); err != nil {
		if ctx.Err() != nil {
			err = errors.New("interrupted") // the other errors follow from that
		}
		fmt.Fprintf(e.stderr, "blindpost bench: %v\n", err)
		return 1
	}
	return 0
}

// benchFiles is how many open files a process needs besides its connections.
const benchFiles = 256

func measureAndReport(ctx context.Context, e env, s benchSettings, exe benchExecutable) error {
	if err := raiseFileLimit(uint64(s.cfg.Connections() + benchFiles)); err != nil {
		return err
	}
	dir, inMemory, err := benchFolder(s.dir)
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }() // each relay has removed its own files
	if s.profile != "" {
		if err := os.MkdirAll(s.profile, 0o755); err != nil {
			return fmt.Errorf("failed to make the folder for profiles: %w", err)
		}
	}
	// The load generator must not be the bottleneck, so it may use more memory.
	defer debug.SetGCPercent(debug.SetGCPercent(400))
	begin := time.Now()
	s.cfg.Progress = func(what string) {
		fmt.Fprintf(e.stderr, "%4.0f s  %s\n", time.Since(begin).Seconds(), what)
	}
	l := benchLauncher{exe: exe, dir: dir, profile: s.profile, environ: e.environ}
	report, errRun := bench.Run(ctx, s.cfg, l.start)
	m := benchMachine{
		Version: buildInfo().Version, Go: runtime.Version(), OS: runtime.GOOS, Arch: runtime.GOARCH,
		CPUs: runtime.GOMAXPROCS(0), Date: begin.UTC().Format(time.RFC3339), InMemory: inMemory,
	}
	switch {
	case s.json && errRun != nil:
		return errRun // part of a report would pass for a whole one
	case s.json:
		return printBenchJSON(e.stdout, m, s, report)
	case len(report) == 0:
		return errRun
	}
	// What was measured before a failure is printed: it may have taken minutes.
	return errors.Join(errRun, printBenchTable(e.stdout, m, s.cfg, report))
}

// benchMachine says what was measured, on what machine and when.
type benchMachine struct {
	Version, Go, OS, Arch string
	CPUs                  int
	Date                  string
	InMemory              bool // the database was not on a disk
}

// printBenchJSON prints one object: the numbers, and what is needed to compare
// them with others.
func printBenchJSON(w io.Writer, m benchMachine, s benchSettings, r bench.Report) error {
	object := map[string]any{
		"version": m.Version, "go": m.Go, "os": m.OS, "arch": m.Arch, "cpus": m.CPUs, "date": m.Date,
		"database_in_memory": m.InMemory, "short": s.short, "measure_s": s.cfg.Measure.Seconds(),
		"message_bytes": s.cfg.MessageBytes, "burst": s.cfg.Burst, "senders": s.cfg.Senders, "askers": s.cfg.Askers,
	}
	for k, v := range r {
		object[string(k)] = v
	}
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	if err := enc.Encode(object); err != nil {
		return fmt.Errorf("failed to print the result: %w", err)
	}
	return nil
}
