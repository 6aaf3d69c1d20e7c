package costrun

import (
	"encoding/json"
	"flag"
	"os"
	"testing"
	"time"

	"go.uber.org/goleak"

	"blindpost/shared/proof/cost"
)

var write = flag.String("write", "", "write the counts of this run to a file")

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// The counts that package cost keeps are what a day takes. If this fails because
// the relay takes more or less than before, `make cost-keep` keeps the new counts.
func TestCounts(t *testing.T) {
	idle := Day(t, 0, maxAge)
	one := Day(t, 1, maxAge)
	got := cost.Counts{
		Date: time.Now().UTC().Format(time.DateOnly), Day: day(), Assumed: assumed(),
		Idle: idle, Household: one.Minus(idle),
	}
	if t.Failed() {
		return
	}
	if *write != "" {
		data, err := json.MarshalIndent(got, "", "  ")
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(*write, append(data, '\n'), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	kept, err := cost.Embedded()
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range cost.Drift(kept, got, 0.1, 5) {
		t.Errorf("kept and counted now: %s", d)
	}
}

// What two households take is what one takes, twice, but for starting processes:
// those are shared. So a bill for many households is too high rather than too low.
func TestHouseholdsAddUp(t *testing.T) {
	idle := Day(t, 0, maxAge)
	one := Day(t, 1, maxAge).Minus(idle)
	two := Day(t, 2, maxAge).Minus(idle)
	for name, f := range one.Functions {
		g := two.Functions[name]
		// At most one more process: jobs of two households may be due at the same moment.
		if g.Cold > 2*f.Cold+1 || g.Milliseconds > 2.1*f.Milliseconds {
			t.Errorf("%s takes %v for one and %v for two", name, f, g)
		}
		f.Cold, f.Milliseconds = 0, 0
		g.Cold, g.Milliseconds = 0, 0
		one.Functions[name], two.Functions[name] = f, g
	}
	for _, d := range cost.Drift(cost.Counts{Household: two}, cost.Counts{Household: one.Plus(one)}, 0.1, 10) {
		t.Errorf("two, and one twice: %s", d)
	}
}

// A connection that API Gateway ends more often costs more: were it to end those that
// only ping for ten minutes, an agent would connect 144 times a day.
func TestReconnects(t *testing.T) {
	few, many := Day(t, 1, maxAge), Day(t, 1, 10*time.Minute)
	if d := many.API.Connects - few.API.Connects; d < 120 {
		t.Errorf("only %.0f connects more", d)
	}
	prices, err := cost.ListPrices()
	if err != nil {
		t.Fatal(err)
	}
	var usd [2]float64
	for i, u := range []cost.Use{few, many} {
		b, err := cost.NewBill(cost.Counts{Household: u}, prices, 1)
		if err != nil {
			t.Fatal(err)
		}
		usd[i] = b.Total
	}
	// What it costs stands in docs/operations.md.
	if d := usd[1] - usd[0]; d < 0.01 || d > 0.15 {
		t.Errorf("that costs %.3f USD a month", d)
	} else {
		t.Logf("144 connects a day instead of 12 cost %.3f USD a month more", d)
	}
}
