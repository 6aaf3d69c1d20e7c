package aelos

import (
	"os"
	"testing"

	"blindpost/shared/sim/engine"
)

// TestSurvey lists the failures of many schedules by their property: for whoever looks
// for the ones that are worth a look. SURVEY=n says how many.
func TestSurvey(t *testing.T) {
	if os.Getenv("SURVEY") == "" {
		t.Skip("nobody has asked for it")
	}
	rep := engine.Run(t, engine.Options{World: World, Start: env("START", 1), Seeds: env("SURVEY", 0), All: true})
	by := map[string]int{}
	for _, f := range rep.Failures {
		if by[f.Property]++; by[f.Property] <= 6 {
			t.Log(f)
		}
	}
	t.Logf("%d schedules, %d failures: %v, %+v", rep.Schedules, len(rep.Failures), by, rep.Counts)
}
