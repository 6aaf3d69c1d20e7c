package local_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"blindpost/shared/queue"
	"blindpost/shared/queue/local"
)

// plan is one job of a model run. Times are since the start.
type plan struct {
	sent  time.Duration
	at    time.Duration // -1: no At
	group string
	fails int // attempts that fail before one succeeds
	takes time.Duration
}

// due is when the contract says that the job becomes due.
func (p plan) due() time.Duration { return max(p.sent, p.at) }

type attempt struct {
	job, number int
	start, end  time.Duration
	beside      int // jobs under way at the start, this one included
}

// model is what a run of some plans left behind.
type model struct {
	plans    []plan // in sending order
	workers  int
	tries    int
	attempts []attempt // in the order in which they ended
	dead     uint64
}

func backoff(attempt int) time.Duration { return time.Duration(attempt*attempt) * time.Second }

// TestModel sends random jobs and holds what happened against the contract.
func TestModel(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		seconds := func(most int) *rapid.Generator[time.Duration] {
			return rapid.Map(rapid.IntRange(0, most), func(n int) time.Duration { return time.Duration(n) * time.Second })
		}
		m := model{
			workers: rapid.IntRange(1, 5).Draw(rt, "workers"),
			tries:   rapid.IntRange(1, 4).Draw(rt, "tries"),
		}
		m.plans = rapid.SliceOfN(rapid.Custom(func(rt *rapid.T) plan {
			p := plan{
				sent:  seconds(10).Draw(rt, "sent"),
				at:    seconds(20).Draw(rt, "at"),
				group: rapid.SampledFrom([]string{"", "a", "b", "c"}).Draw(rt, "group"),
				fails: max(0, rapid.IntRange(-4, 5).Draw(rt, "fails")),
				takes: seconds(3).Draw(rt, "takes"),
			}
			if rapid.Bool().Draw(rt, "now") {
				p.at = -1
			}
			return p
		}), 1, 40).Draw(rt, "jobs")
		slices.SortStableFunc(m.plans, func(a, b plan) int { return cmp.Compare(a.sent, b.sent) })
		synctest.Test(t, m.run)
		for _, err := range m.check() {
			rt.Error(err)
		}
	})
}

func (m *model) run(t *testing.T) {
	start := time.Now()
	var mu sync.Mutex
	running := 0
	q := local.New(local.Options{
		Workers: m.workers, MaxAttempts: m.tries, Backoff: backoff,
		Handler: func(_ context.Context, j queue.Job) error {
			a := attempt{job: int(j.Body[0]), number: j.Attempt, start: time.Since(start)}
			p := m.plans[a.job]
			mu.Lock()
			running++
			a.beside = running
			mu.Unlock()
			time.Sleep(p.takes)
			mu.Lock()
			defer mu.Unlock()
			running--
			a.end = time.Since(start)
			m.attempts = append(m.attempts, a)
			if j.Attempt <= p.fails {
				return errors.New("planned")
			}
			return nil
		},
	})
	for i, p := range m.plans {
		time.Sleep(p.sent - time.Since(start))
		j := queue.Job{Kind: "k", Group: p.group, Body: []byte{byte(i)}}
		if p.at >= 0 {
			j.At = start.Add(p.at)
		}
		mustSend(t, q, j)
	}
	time.Sleep(time.Hour)
	m.dead = q.Stats().Dead
	wantClose(t, q)
}

// check returns what the contract forbids.
func (m *model) check() (errs []error) {
	bad := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	byJob := map[int][]attempt{}
	for _, a := range m.attempts {
		byJob[a.job] = append(byJob[a.job], a)
		if a.beside > m.workers {
			bad("%d jobs at once with %d workers", a.beside, m.workers)
		}
	}
	var dead uint64
	groups := map[string][]int{}
	for i, p := range m.plans {
		// This queue runs a job exactly as often as it must.
		as := byJob[i]
		want := min(p.fails+1, m.tries)
		if p.fails >= m.tries {
			dead++
		}
		if len(as) != want {
			bad("job %d %+v: %d attempts, want %d", i, p, len(as), want)
			continue
		}
		if as[0].start < p.due() {
			bad("job %d %+v ran at %v", i, p, as[0].start)
		}
		for n, a := range as {
			if a.number != n+1 {
				bad("job %d: attempt %d says it is number %d", i, n+1, a.number)
			}
			if n > 0 && a.start < as[n-1].end+backoff(n) {
				bad("job %d: attempt %d began %v after the one before", i, n+1, a.start-as[n-1].end)
			}
		}
		groups[p.group] = append(groups[p.group], i)
	}
	if dead != m.dead {
		bad("%d jobs put aside, want %d", m.dead, dead)
	}
	if len(errs) > 0 {
		return errs
	}
	for g, jobs := range groups {
		if g == "" {
			continue
		}
		slices.SortStableFunc(jobs, func(a, b int) int { return cmp.Compare(m.plans[a].due(), m.plans[b].due()) })
		var free time.Duration
		for n, i := range jobs {
			as := byJob[i]
			if as[0].start < free {
				bad("group %s: job %d began at %v, before job %d had ended at %v", g, i, as[0].start, jobs[n-1], free)
			}
			free = as[len(as)-1].end
			// With a worker for everybody nothing may be late either.
			if n == 0 && m.workers >= 4 && len(groups[""]) == 0 && as[0].start > m.plans[i].due() {
				bad("group %s: job %d was due at %v and ran at %v", g, i, m.plans[i].due(), as[0].start)
			}
		}
	}
	return errs
}
