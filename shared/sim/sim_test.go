package sim

import (
	"os"
	"strconv"
	"strings"
	"testing"
)

func env(name string, otherwise uint64) uint64 {
	n, err := strconv.ParseUint(os.Getenv(name), 10, 64)
	if err != nil {
		return otherwise
	}
	return n
}

func TestSimulation(t *testing.T) {
	o := Options{Start: env("START", 1), Seeds: env("SEEDS", 2000), Store: Mem()}
	if seed := env("SEED", 0); seed != 0 {
		lines, f := Print(t, seed, o)
		t.Logf("%s", strings.Join(lines, "\n"))
		if f != nil {
			t.Fatal(f)
		}
		return
	}
	rep := Run(t, o)
	t.Logf("%d schedules, %+v", rep.Schedules, rep.Counts)
	if f := rep.Failure; f != nil {
		t.Fatalf("%v\n%s\n%s", f, f.Plan, strings.Join(f.Trace, "\n"))
	}
}
