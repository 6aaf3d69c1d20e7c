package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"blindpost/shared/proof/bench"
)

// The test binary is the relay, or the bench, when these are set.
const (
	benchRelayVariable  = "TEST_BENCH_RELAY"
	benchParentVariable = "TEST_BENCH_PARENT"
)

// TestBenchRelayProcess is no test: it is this binary as `blindpost serve`.
func TestBenchRelayProcess(t *testing.T) {
	if os.Getenv(benchRelayVariable) == "" {
		t.Skip("for other tests only")
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	args := os.Args[slices.Index(os.Args, "--")+1:]
	status := run(ctx, env{stdin: os.Stdin, stdout: os.Stdout, stderr: os.Stderr, environ: os.Environ()}, args)
	os.Exit(status)
}

// testExecutable runs this test binary as relay.
func testExecutable(t *testing.T) benchExecutable {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return benchExecutable{
		path:    exe,
		before:  []string{"-test.run=^TestBenchRelayProcess$", "--"},
		environ: []string{benchRelayVariable + "=1"},
	}
}

func tinyBench(only ...string) benchSettings {
	c := bench.Default()
	c.Only = only
	c.FewPairs, c.ManyPairs, c.Senders, c.Askers, c.Agents, c.Idle = 4, 6, 3, 6, 5, 7
	c.Boats, c.Viewers = 60, 3 // of the boats, a fifth has its moment within the time
	c.LatencyRate = 2000
	c.Warmup, c.Measure, c.Patience = 20*time.Millisecond, 200*time.Millisecond, 0
	return benchSettings{cfg: c, short: true}
}

// The whole command with small numbers: relays in processes of their own.
func TestBenchMeasuresRelaysInOtherProcesses(t *testing.T) {
	s := tinyBench()
	s.json, s.dir, s.profile = true, t.TempDir(), filepath.Join(t.TempDir(), "profiles")
	var out, errout bytes.Buffer
	e := env{stdout: &out, stderr: &errout, environ: append(os.Environ(), "BLINDPOST_MAILBOX_CAP=1", "BLINDPOST_NONSENSE=1")}
	if err := measureAndReport(t.Context(), e, s, testExecutable(t)); err != nil {
		t.Fatal(err)
	}
	var got map[string]any
	if err := json.Unmarshal(out.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	for _, k := range []string{
		"live_msgs_per_s_64", "live_p99_ms_64", "live_msgs_per_s_1000", "live_p99_ms_1000",
		"stored_msgs_per_s", "drain_msgs_per_s", "agentknock_exchanges_per_s", "agentknock_p99_ms",
		"aelos_snapshots_per_s_1k", "aelos_snapshots_per_s_32k", "aelos_p99_ms_1000_boats", "auth_per_s", "auth_tls_per_s",
	} {
		if v, ok := got[k].(float64); !ok || v <= 0 {
			t.Errorf("%s is %v", k, got[k])
		}
	}
	if _, ok := processUsage(os.Getpid()); ok {
		for _, k := range []string{"idle_bytes_plain", "idle_bytes_tls"} {
			if v, ok := got[k].(float64); !ok || v <= 0 {
				t.Errorf("%s is %v", k, got[k])
			}
		}
	}
	if short, _ := got["short"].(bool); !short || got["message_bytes"] != 256.0 || got["cpus"] == nil || got["go"] == nil || got["date"] == nil {
		t.Errorf("got %v", got)
	}
	if n := strings.Count(errout.String(), "\n"); n != len(bench.Parts()) {
		t.Errorf("%d lines of progress:\n%s", n, errout.String())
	}
	wantEmpty(t, s.dir)
	for _, name := range []string{"live-few-rate.heap.pprof", "idle-tls.heap.pprof"} {
		if f, err := os.Stat(filepath.Join(s.profile, name)); err != nil || f.Size() == 0 {
			t.Errorf("profile %s: %v", name, err)
		}
	}
}

func wantEmpty(t *testing.T, dir string) {
	t.Helper()
	left, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range left {
		t.Errorf("%s was left behind", f.Name())
	}
}

func TestBenchSaysWhyARelayDoesNotStart(t *testing.T) {
	exe := testExecutable(t)
	exe.before = append(exe.before, "no-such-command") // before "serve"
	s := tinyBench("stored")
	s.dir = t.TempDir()
	err := measureAndReport(t.Context(), env{stdout: io.Discard, stderr: io.Discard}, s, exe)
	if err == nil || !strings.Contains(err.Error(), "ended at once") || !strings.Contains(err.Error(), "no-such-command") {
		t.Errorf("got %v", err)
	}
	wantEmpty(t, s.dir)
	exe.path = filepath.Join(t.TempDir(), "missing")
	if err := measureAndReport(t.Context(), env{stdout: io.Discard, stderr: io.Discard}, s, exe); err == nil || !strings.Contains(err.Error(), "failed to start missing") {
		t.Errorf("got %v", err)
	}
	wantEmpty(t, s.dir)
}

// Stop reports a relay that has died, with the end of its output.
func TestBenchNoticesThatARelayDies(t *testing.T) {
	l := benchLauncher{exe: testExecutable(t), dir: t.TempDir(), environ: os.Environ()}
	r, err := l.start(t.Context(), true)
	if err != nil {
		t.Fatal(err)
	}
	c := r.(*benchChild)
	if err := c.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	<-c.exited
	if err := r.Stop(); err == nil || !strings.Contains(err.Error(), "killed") {
		t.Errorf("got %v", err)
	}
	wantEmpty(t, l.dir)
}

// The relay dies with the context.
func TestBenchEndsItsRelayWithTheContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	l := benchLauncher{exe: testExecutable(t), dir: t.TempDir(), environ: os.Environ()}
	r, err := l.start(ctx, true)
	if err != nil {
		t.Fatal(err)
	}
	cancel()
	<-r.(*benchChild).exited
	if err := r.Stop(); err == nil {
		t.Error("a relay that was killed has ended well")
	}
	wantEmpty(t, l.dir)
}

// TestBenchParentProcess is no test: it starts a relay, prints its process id
// and waits to be killed.
func TestBenchParentProcess(t *testing.T) {
	if os.Getenv(benchParentVariable) == "" {
		t.Skip("for another test only")
	}
	l := benchLauncher{exe: testExecutable(t), dir: os.Getenv(benchParentVariable), environ: os.Environ()}
	r, err := l.start(context.Background(), true)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stdout.WriteString(strconv.Itoa(r.(*benchChild).cmd.Process.Pid) + "\n"); err != nil {
		t.Fatal(err)
	}
	select {}
}

func TestBenchRelayDiesWithItsParent(t *testing.T) {
	if _, ok := processUsage(os.Getpid()); !ok {
		t.Skip("only Linux can do that")
	}
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	parent := exec.Command(exe, "-test.run=^TestBenchParentProcess$")
	parent.Env = append(os.Environ(), benchParentVariable+"="+t.TempDir())
	out, err := parent.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := parent.Start(); err != nil {
		t.Fatal(err)
	}
	line := make([]byte, 20)
	n, err := out.Read(line)
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(line[:n])))
	if err != nil {
		t.Fatal(err)
	}
	if _, ok := processUsage(pid); !ok {
		t.Fatal("there is no relay")
	}
	if err := parent.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_, _ = io.Copy(io.Discard, out)
	_ = parent.Wait()
	for end := time.Now().Add(20 * time.Second); ; {
		if _, ok := processUsage(pid); !ok { // gone, or a zombie, which has no memory
			return
		}
		if time.Now().After(end) {
			if p, err := os.FindProcess(pid); err == nil {
				_ = p.Kill()
			}
			t.Fatal("the relay has outlived its parent")
		}
		time.Sleep(10 * time.Millisecond)
	}
}

func TestBenchFlags(t *testing.T) {
	s, err := parseBench([]string{"--short", "--json", "--only", "live,stored", "--only", "idle-tls", "--measure", "1s", "--senders", "9", "--askers", "8",
		"--message-bytes", "100", "--burst", "2", "--dir", "d", "--profile", "p"}, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	want := bench.Short()
	want.Only, want.Measure = []string{"live", "stored", "idle-tls"}, time.Second
	if !slices.Equal(s.cfg.Only, want.Only) || s.cfg.Measure != want.Measure || s.cfg.Warmup != want.Warmup || s.cfg.Senders != 9 || s.cfg.Askers != 8 ||
		s.cfg.MessageBytes != 100 || s.cfg.Burst != 2 || !s.json || !s.short || s.dir != "d" || s.profile != "p" {
		t.Errorf("got %+v", s)
	}
	if s, err = parseBench(nil, io.Discard); err != nil || s.cfg.Measure != bench.Default().Measure || s.cfg.Idle != 5000 || s.cfg.FewPairs != 64 || s.cfg.ManyPairs != 1000 {
		t.Errorf("without flags: %+v, %v", s, err)
	}
	for args, said := range map[string]string{
		"--only life": `"life"`, "--senders 0": "senders", "--askers 0": "asking clients", "--measure -1s": "time", "--bogus": "bogus", "more": `"more"`, "--message-bytes 3": "16 bytes",
	} {
		var errout bytes.Buffer
		if status := runBench(t.Context(), env{stdout: io.Discard, stderr: &errout}, strings.Fields(args)); status != 2 || !strings.Contains(errout.String(), said) {
			t.Errorf("%s: status %d, %s", args, status, errout.String())
		}
	}
	var out bytes.Buffer
	if _, err := parseBench([]string{"--help"}, &out); !errors.Is(err, flag.ErrHelp) || !strings.Contains(out.String(), "--short") {
		t.Errorf("--help: %v, %s", err, out.String())
	}
}

func TestBenchTable(t *testing.T) {
	cfg := bench.Default()
	report := bench.Report{
		"live_msgs_per_s_64": 61234.4, "live_latency_load_msgs_per_s_64": 48987, "live_p50_ms_64": 1.234, "live_p99_ms_64": 10.5,
		"stored_msgs_per_s": 9999, "idle_bytes_tls": 30000, "auth_tls_per_s": 812,
	}
	m := benchMachine{Version: "v1", Go: "go1.26", OS: "linux", Arch: "amd64", CPUs: 2, Date: "2026-01-02T03:04:05Z", InMemory: true}
	var out bytes.Buffer
	if err := printBenchTable(&out, m, cfg, report); err != nil {
		t.Fatal(err)
	}
	head, table, _ := strings.Cut(out.String(), "\n\n")
	if !strings.HasPrefix(head, "Blindpost v1, go1.26, linux/amd64, 2 processors, 2026-01-02T03:04:05Z\n") || !strings.Contains(head, "what is called durable here is not") {
		t.Errorf("begins with\n%s", head)
	}
	want := strings.TrimPrefix(`
live messages/s, 64 pairs                                         61,234  goal: at least 50,000: met
  latency at 48,987/s, median                                    1.23 ms
  latency at 48,987/s, 99 of 100                                10.50 ms  goal: at most 10.00 ms: MISSED
stored messages/s, durable, to 512 clients offline                 9,999  goal: at least 10,000: MISSED
connections + authentications/s, TLS                                 812
bytes per idle connection, 5,000 of them, TLS ended here          30,000  goal: at most 30,000: met
`, "\n")
	if table != want {
		t.Errorf("got\n%s\nwant\n%s", table, want)
	}
}

func TestCommas(t *testing.T) {
	for v, want := range map[float64]string{0: "0", 999.4: "999", 1000: "1,000", 12345678: "12,345,678", -1234: "-1,234", -123: "-123"} {
		if got := commas(v); got != want {
			t.Errorf("%v: got %s, want %s", v, got, want)
		}
	}
}

func TestBenchTailKeepsTheEnd(t *testing.T) {
	var b benchTail
	for range 1000 {
		if n, err := b.Write([]byte("0123456789")); n != 10 || err != nil {
			t.Fatal(n, err)
		}
	}
	if n, err := b.Write([]byte("end")); n != 3 || err != nil {
		t.Fatal(n, err)
	}
	if got := b.String(); len(got) != benchTailBytes || !strings.HasSuffix(got, "789end") {
		t.Errorf("%d bytes, ending with %q", len(got), got[max(0, len(got)-9):])
	}
}

func TestBenchFolder(t *testing.T) {
	dir := t.TempDir()
	got, _, err := benchFolder(dir)
	if err != nil || filepath.Dir(got) != dir {
		t.Errorf("got %s, %v", got, err)
	}
	if _, _, err := benchFolder(filepath.Join(dir, "missing")); err == nil {
		t.Error("a folder in a folder that is not there")
	}
}
