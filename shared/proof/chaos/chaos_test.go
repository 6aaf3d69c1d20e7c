package chaos

import (
	"blindpost/shared/proof/rig"
	"blindpost/shared/proof/suite"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"
)

var (
	chaosFlag  = flag.Bool("chaos", false, "run the scenarios; with -short in under a minute")
	seedFlag   = flag.Uint64("seed", 0, "of what is drawn by chance; 0 draws one")
	binaryFlag = flag.String("binary", "", "a relay that is built already")
)

func TestMain(m *testing.M) {
	if runHeld() {
		return
	}
	os.Exit(m.Run())
}

// run is what the scenarios of a run share.
type run struct {
	binary  string
	files   string // folder of logs and scrapes
	seed    uint64
	press   *press
	secrets *suite.Secrets
}

// TestChaos runs the scenarios.
func TestChaos(t *testing.T) {
	if !*chaosFlag {
		t.Skip("only with -chaos; make chaos does it")
	}
	u := &run{
		binary: *binaryFlag, files: t.TempDir(), seed: *seedFlag,
		press: newPress(), secrets: suite.NewSecrets(),
	}
	if u.seed == 0 {
		u.seed = rand.Uint64()
	}
	t.Logf("seed %d", u.seed)
	if u.binary == "" {
		u.binary = rig.Build(t)
	}
	u.secrets.Add("payload", u.press.body[:])
	u.secrets.Add("a nonce", u.press.nonce[:])
	t.Cleanup(func() { u.wantNothingTold(t) })
	for _, scenario := range []struct {
		name string
		play func(*testing.T, *run)
		// beside is for those that mostly wait: they run at the end, at once.
		beside bool
	}{
		{"Kill", playKill, false},
		{"FullDisk", playFullDisk, false},
		{"HalfCommit", playHalfCommit, false},
		{"Storm", playStorm, false},
		{"Flood", playFlood, false},
		{"Soak", playSoak, false},
		{"Vanish", playVanish, true},
		{"BadDisk", playBadDisk, true},
		{"SlowReader", playSlowReader, true},
	} {
		t.Run(scenario.name, func(t *testing.T) {
			if scenario.beside {
				t.Parallel()
			}
			scenario.play(t, u)
		})
	}
}

// stage sets up a scenario with a relay that is not started.
func (u *run) stage(t *testing.T, data string, flags ...string) *stage {
	t.Helper()
	s := &stage{
		t: t, relay: newRelay(t, u.binary, u.files, data, flags...),
		book: newLedger(), press: u.press, secrets: u.secrets, people: people{secrets: u.secrets},
	}
	s.init()
	return s
}

// wantNothingTold searches everything that the relays have logged, and said in
// their metrics.
func (u *run) wantNothingTold(t *testing.T) {
	began := time.Now()
	files, err := filepath.Glob(filepath.Join(u.files, "*"))
	if err != nil {
		t.Fatal(err)
	}
	var logs, scrapes int
	var logSize, scrapeSize int64
	for _, file := range files {
		size, found := u.searchFile(t, file)
		for _, f := range found {
			t.Errorf("%s tells %s in line %d", filepath.Base(file), f.what, f.line)
		}
		if filepath.Ext(file) == ".log" {
			logs, logSize = logs+1, logSize+size
		} else {
			scrapes, scrapeSize = scrapes+1, scrapeSize+size
		}
	}
	report("leak", began, "%d KB of %d logs and %d KB of %d scrapes searched for %d secrets in all their forms",
		logSize>>10, logs, scrapeSize>>10, scrapes, u.secrets.Count())
	if !t.Failed() && len(files) > 0 && (logSize == 0 || scrapeSize == 0) {
		t.Error("there was nothing to search")
	}
}

func (u *run) searchFile(t *testing.T, file string) (int64, []finding) {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	size, found, err := search(u.secrets, f)
	if err != nil {
		t.Fatal(err)
	}
	return size, found
}

// report prints the line of a scenario.
func report(name string, began time.Time, format string, args ...any) {
	fmt.Printf("chaos %-11s %5.1f s  %s\n", name, time.Since(began).Seconds(), fmt.Sprintf(format, args...))
}

// budget is n for the whole run and a share of it for the short one.
func budget[T int | time.Duration](short, full T) T {
	if testing.Short() {
		return short
	}
	return full
}
