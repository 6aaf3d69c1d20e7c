package aelos

import (
	"os"
	"testing"
	"time"

	"blindpost/shared/sim/engine"
)

// mutationBudget is how many schedules may pass before a mutation is found.
const mutationBudget = 1000

func TestMutations(t *testing.T) {
	if slowdown > 1 {
		t.Skip("what the simulation finds does not depend on the race detector")
	}
	only := os.Getenv("MUTATION")
	for _, m := range Mutations() {
		if only != "" && only != m.Name {
			continue
		}
		t.Run(m.Name, func(t *testing.T) {
			began := time.Now()
			rep := engine.Run(t, engine.Options{World: World, Start: 1, Seeds: mutationBudget, Mutation: &m})
			if rep.Failure == nil {
				t.Fatalf("not found in %d schedules: %s", rep.Schedules, m.What)
			}
			t.Logf("%4d schedules, %v: %v", rep.Schedules, time.Since(began).Round(time.Millisecond), rep.Failure)
		})
	}
}
