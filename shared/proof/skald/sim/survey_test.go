package sim

import (
	"fmt"
	"regexp"
	"sort"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

var detail = regexp.MustCompile(`\bt\d+ |\bj\d+|\bc\d+\([a-z0-9]+\)|\bm\d+\([^)]*\)|(agent|phone)\d[a-z]?|\d+`)

// survey does not stop at the first failure but counts their kinds, each with its
// shortest schedule. SURVEY=1 has TestSimulation do that.
func survey(t *testing.T, o Options) {
	t.Helper()
	type kind struct {
		n    int
		best *Failure
	}
	kinds := map[string]*kind{}
	var mu sync.Mutex
	var next atomic.Uint64
	var wg sync.WaitGroup
	for range 2 {
		wg.Go(func() {
			for {
				n := next.Add(1) - 1
				if n >= o.Seeds {
					return
				}
				s := one(t, o.Start+n, &o, nil)
				if f := s.failure; f != nil {
					key := s.plan.mode.String() + ": " + f.Property + ": " + detail.ReplaceAllString(f.Detail, "_")
					mu.Lock()
					k := kinds[key]
					if k == nil {
						k = &kind{}
						kinds[key] = k
					}
					k.n++
					if k.best == nil || f.Step < k.best.Step {
						k.best = f
					}
					mu.Unlock()
				}
			}
		})
	}
	wg.Wait()
	var lines []string
	for key, k := range kinds {
		lines = append(lines, fmt.Sprintf("%5d x seed %d (step %d): %s\n        %s", k.n, k.best.Seed, k.best.Step, key, k.best.Detail))
	}
	sort.Sort(sort.Reverse(sort.StringSlice(lines)))
	if len(lines) > 0 {
		t.Errorf("of %d schedules:\n%s", o.Seeds, strings.Join(lines, "\n"))
	}
}
