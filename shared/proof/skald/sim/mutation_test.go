package sim

import (
	"os"
	"testing"
	"time"
)

// mutationBudget is how many schedules may pass before a mutation is found.
const mutationBudget = 3000

func TestMutations(t *testing.T) {
	only := os.Getenv("MUTATION")
	for _, m := range Mutations() {
		if only != "" && only != m.Name {
			continue
		}
		t.Run(m.Name, func(t *testing.T) {
			began := time.Now()
			rep := Run(t, Options{Start: 1, Seeds: mutationBudget, Store: Mem(), Mutation: &m})
			if rep.Failure == nil {
				t.Fatalf("not found in %d schedules: %s", rep.Schedules, m.What)
			}
			t.Logf("%4d schedules, %v: %v", rep.Schedules, time.Since(began).Round(time.Millisecond), rep.Failure)
			if only != "" {
				for _, l := range rep.Failure.Trace {
					t.Log(l)
				}
			}
		})
	}
}
