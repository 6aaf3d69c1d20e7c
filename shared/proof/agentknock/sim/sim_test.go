package sim

import (
	"os"
	"runtime/debug"
	"testing"

	"blindpost/shared/proof/engine"
)

func TestMain(m *testing.M) {
	debug.SetGCPercent(400) // the garbage of a schedule is small and short-lived
	os.Exit(m.Run())
}

var suite = engine.Suite{World: World, Dialect: "agentknock", Seeds: 300, Again: 40, Kept: kept, Mutations: Mutations(), Budget: 300}

func TestSimulation(t *testing.T) { suite.Simulate(t) }

func TestKeptSeeds(t *testing.T) { suite.Keep(t) }

func TestASeedIsASchedule(t *testing.T) { suite.Repeat(t) }

func TestMutations(t *testing.T) { suite.Find(t) }
