package sim

import (
	"context"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"testing"
	"time"

	"blindpost/shared/proof/engine"
	"blindpost/shared/table"
	"blindpost/shared/table/bolt"
)

// The schedules are new ones (see engine.FirstSeed), or come from the environment, where
// `make sim` sets them: SEED=n runs one and prints what happens in it, START and SEEDS run many,
// TABLE=bolt runs them over the database file, TABLE=dynamo over DynamoDB. SURVEY=1
// goes on after a failure and lists all kinds.

func TestMain(m *testing.M) {
	debug.SetGCPercent(400) // the garbage of a schedule is small and short-lived
	os.Exit(m.Run())
}

// boltStore is the database file of the single binary.
func boltStore() Store {
	return Store{
		Name:    "bolt",
		Durable: true,
		Open: func(dir string, now func() time.Time) (table.Table, func() error, error) {
			t, err := bolt.Open(filepath.Join(dir, "sim.db"), bolt.Options{Now: now})
			if err != nil {
				return nil, nil, err
			}
			return t, func() error { return t.Close(context.Background()) }, nil
		},
	}
}

// dynamoStore is there with the build tag aws; see dynamo_test.go.
var dynamoStore func(t *testing.T) Store

func chosenStore(t *testing.T) Store {
	switch name := os.Getenv("TABLE"); {
	case name == "bolt":
		return boltStore()
	case name == "dynamo" && dynamoStore != nil:
		return dynamoStore(t)
	case name == "" || name == "mem":
		return Mem()
	default:
		t.Fatalf("there is no table %q here (dynamo needs -tags aws)", name)
		return Store{}
	}
}

// wantAllHold runs schedules and shows the first that fails.
func wantAllHold(t *testing.T, o Options) {
	t.Helper()
	began := time.Now()
	rep := Run(t, o)
	took := time.Since(began)
	t.Logf("%d schedules over %s in %v (%.0f a second): %+v", rep.Schedules, o.Store.Name,
		took.Round(time.Millisecond), float64(rep.Schedules)/took.Seconds(), rep.Counts)
	if f := rep.Failure; f != nil {
		t.Fatalf("%s\n%v\nReplay it with: make sim SEED=%d", strings.Join(f.Trace, "\n"), f, f.Seed)
	}
}

func TestSimulation(t *testing.T) {
	o := Options{Seeds: engine.Env("SEEDS", 2000/slowdown), Store: chosenStore(t)}
	if seed := engine.Env("SEED", 0); seed != 0 {
		lines, f := Replay(t, seed, o)
		t.Logf("seed %d\n%s", seed, strings.Join(lines, "\n"))
		if f != nil {
			t.Fatal(f)
		}
		return
	}
	o.Start = engine.FirstSeed(t)
	if os.Getenv("SURVEY") != "" {
		survey(t, o)
		return
	}
	wantAllHold(t, o)
}

// They hold over the database file, which is closed and opened
// again at every crash of the process.
func TestSimulationOverBolt(t *testing.T) {
	wantAllHold(t, Options{Start: engine.FirstSeed(t), Seeds: 100 / slowdown, Store: boltStore()})
}

// A seed is a schedule: it runs in the same way again, also over another table. When the
// clock is set back, an expired item may come back or not, because each table removes it
// at a time of its own: those schedules are not compared over two tables.
func TestASeedIsASchedule(t *testing.T) {
	start := engine.FirstSeed(t)
	const over = 20 / slowdown
	compared := 0
	for seed := start; seed < start+60/slowdown; seed++ {
		first := one(t, seed, &Options{Store: Mem()}, nil)
		again := one(t, seed, &Options{Store: Mem()}, &trace{})
		if first.hash != again.hash || first.counts != again.counts {
			t.Errorf("seed %d: runs differ: %x %+v, then %x %+v", seed, first.hash, first.counts, again.hash, again.counts)
		}
		if compared == over || first.setBack {
			continue
		}
		compared++
		other := one(t, seed, &Options{Store: boltStore()}, nil)
		if first.hash != other.hash || first.counts != other.counts {
			t.Errorf("seed %d: over mem %x %+v, over bolt %x %+v", seed, first.hash, first.counts, other.hash, other.counts)
		}
	}
	if compared < over/2 {
		t.Errorf("only %d schedules were compared over two tables", compared)
	}
}
