package sqs_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"blindpost/shared/queue"
)

const (
	faultJobs = 60
	// faultsEach is how often a job fails at most. SQS counts a job as received
	// also when only one before it in its group was run, so of the five deliveries
	// of faultAttempts, as in the stack, four may be gone before a job runs at all.
	faultsEach    = 2
	faultAttempts = 5
)

// faults is a handler that fails at random, and what it has seen. Everything is
// decided by the seed and the job, not by who comes first.
type faults struct {
	t    *testing.T
	seed uint64

	mu      sync.Mutex
	due     map[string]time.Time
	failed  map[string]int
	ran     map[string]int
	order   map[string][]string // of a group: jobs by their first success
	running map[string]int      // of a group
}

func (f *faults) run(_ context.Context, j queue.Job) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if early := time.Until(f.due[j.Kind]); early > 0 {
		f.t.Errorf("seed %d: %s ran %v too early", f.seed, j.Kind, early)
	}
	if j.Group != "" && f.running[j.Group] > 0 {
		f.t.Errorf("seed %d: %s ran beside another job of %s", f.seed, j.Kind, j.Group)
	}
	f.running[j.Group]++
	f.mu.Unlock()
	time.Sleep(time.Millisecond)
	f.mu.Lock()
	f.running[j.Group]--
	if f.failed[j.Kind] < f.faultsOf(j) {
		f.failed[j.Kind]++
		return errors.New("failed on purpose")
	}
	if f.ran[j.Kind]++; f.ran[j.Kind] == 1 {
		f.order[j.Group] = append(f.order[j.Group], j.Kind)
	}
	return nil
}

// faultsOf is how often a job fails: most never, a few as often as they may.
func (f *faults) faultsOf(j queue.Job) int {
	return max(0, rand.New(rand.NewPCG(f.seed, uint64(j.Body[0]))).IntN(2*faultsEach+1)-faultsEach)
}

// A job that was accepted runs at least once and never before its time, and those
// of a group in order, whatever SQS repeats and delays, and although jobs fail: none
// is put aside because those before it have failed.
func TestJobsRunWhateverSQSDoes(t *testing.T) {
	for seed := range uint64(500) {
		synctest.Test(t, func(t *testing.T) { jobsRun(t, seed) })
	}
}

func jobsRun(t *testing.T, seed uint64) {
	f := &faults{
		t: t, seed: seed, due: map[string]time.Time{}, failed: map[string]int{}, ran: map[string]int{},
		order: map[string][]string{}, running: map[string]int{},
	}
	s := open(t, settings{seed: seed, maxAttempts: faultAttempts, repeat: 0.3, late: 3 * time.Second, handler: f.run})
	rng := rand.New(rand.NewPCG(seed, 1000))
	want := map[string][]string{}
	for i := range faultJobs {
		j := queue.Job{Kind: fmt.Sprintf("job%02d", i), Body: []byte{byte(i)}}
		if i%3 != 0 {
			j.Group = fmt.Sprint("group", i%3)
			want[j.Group] = append(want[j.Group], j.Kind)
		} else if i%2 == 0 {
			j.At = time.Now().Add(time.Duration(rng.IntN(3000)) * time.Second)
		}
		f.mu.Lock()
		f.due[j.Kind] = j.At
		f.mu.Unlock()
		if err := s.Send(t.Context(), j); err != nil {
			t.Fatal(err)
		}
	}
	time.Sleep(2 * time.Hour)
	f.mu.Lock()
	defer f.mu.Unlock()
	if dead := append(s.server.Dead(s.standard), s.server.Dead(s.fifo)...); len(f.ran) != faultJobs || len(dead) > 0 {
		t.Errorf("seed %d: %d of %d jobs ran; dead: %v", seed, len(f.ran), faultJobs, dead)
	}
	for group, kinds := range want {
		if !slices.Equal(f.order[group], kinds) {
			t.Errorf("seed %d: order of %s is %v", seed, group, f.order[group])
		}
	}
}
