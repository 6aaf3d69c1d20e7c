package aelos

import (
	"os"
	"runtime/debug"
	"strconv"
	"strings"
	"testing"
	"time"

	"blindpost/shared/sim/engine"
)

// The schedules to run come from the environment, since `make sim` sets them: SEED=n
// runs one and prints what happens in it, START and SEEDS run many.

func TestMain(m *testing.M) {
	debug.SetGCPercent(400) // the garbage of a schedule is small and short-lived
	os.Exit(m.Run())
}

func env(name string, otherwise uint64) uint64 {
	n, err := strconv.ParseUint(os.Getenv(name), 10, 64)
	if err != nil {
		return otherwise
	}
	return n
}

func TestSimulation(t *testing.T) {
	o := engine.Options{World: World, Start: env("START", 1), Seeds: env("SEEDS", 600/slowdown)}
	if seed := env("SEED", 0); seed != 0 {
		lines, f := engine.Replay(t, seed, o)
		t.Logf("seed %d\n%s", seed, strings.Join(lines, "\n"))
		if f != nil {
			t.Fatal(f)
		}
		return
	}
	began := time.Now()
	rep := engine.Run(t, o)
	took := time.Since(began)
	t.Logf("%d schedules in %v (%.0f a second): %+v", rep.Schedules, took.Round(time.Millisecond),
		float64(rep.Schedules)/took.Seconds(), rep.Counts)
	if f := rep.Failure; f != nil {
		t.Fatalf("%s\n%v\nReplay it with: make sim DIALECT=aelos SEED=%d", strings.Join(f.Trace, "\n"), f, f.Seed)
	}
}

// A seed is a schedule: it runs in the same way again.
func TestASeedIsASchedule(t *testing.T) {
	if os.Getenv("SEED") != "" || os.Getenv("SEEDS") != "" {
		t.Skip("other schedules were asked for")
	}
	o := engine.Options{World: World}
	for seed := uint64(1); seed <= 40/slowdown; seed++ {
		first, counts := engine.Fingerprint(t, seed, o, false)
		again, countsAgain := engine.Fingerprint(t, seed, o, true)
		if first != again || counts != countsAgain {
			t.Errorf("seed %d: runs differ: %x %+v, then %x %+v", seed, first, counts, again, countsAgain)
		}
	}
}
