// Package tabletest is the conformance suite of package table: whatever passes
// it can stand under the relay. It assumes nothing beyond the contract, so it
// runs against an embedded file as well as against a service.
//
// It has four parts: one case for each sentence of the contract, a property
// test that runs random histories against a model, tests with many goroutines,
// and tests of who owns the values.
package tabletest

import (
	"context"
	"flag"
	"fmt"
	"strconv"
	"sync"
	"testing"
	"time"

	"blindpost/shared/table"
)

// Open makes an empty table (or one whose content does not matter, see
// [PartitionPrefix]) that takes the time from now. It closes it with t.Cleanup.
type Open func(t *testing.T, now func() time.Time) table.Table

// Option adjusts a run of the suite.
type Option func(*suite)

// Checks sets how many random histories the property test runs. A -rapid.checks
// on the command line wins; without either it is rapid's default of 100.
func Checks(n int) Option { return func(s *suite) { s.checks = n } }

// PartitionPrefix is put in front of every partition key. Give a run of its own
// to a table that keeps what earlier runs wrote.
func PartitionPrefix(prefix string) Option { return func(s *suite) { s.prefix = prefix } }

// Reopen makes a restart one of the steps of the property test: reopen closes
// the table and opens its storage again, with the same clock.
func Reopen(reopen func(t *testing.T, tbl table.Table) table.Table) Option {
	return func(s *suite) { s.reopen = reopen }
}

// Run runs the suite. The table is opened once; the parts keep out of each
// other's way by using partitions of their own.
func Run(t *testing.T, open func(t *testing.T, now func() time.Time) table.Table, options ...Option) {
	s := &suite{clock: newClock()}
	for _, option := range options {
		option(s)
	}
	s.tbl = open(t, s.clock.Now)

	s.run(t, "Items", itemCases)
	s.run(t, "Update", updateCases)
	s.run(t, "Conditions", conditionCases)
	s.run(t, "Query", queryCases)
	s.run(t, "Transact", transactCases)
	s.run(t, "Expiry", expiryCases)
	s.run(t, "Limits", limitCases)
	s.run(t, "Ownership", ownershipCases)
	s.run(t, "Concurrency", concurrencyCases)
	t.Run("Property", func(t *testing.T) {
		setRapidChecks(t, s.checks)
		s.property(t)
	})
}

// suite is one run.
type suite struct {
	tbl    table.Table
	clock  *clock
	checks int
	prefix string
	reopen func(t *testing.T, tbl table.Table) table.Table

	mu         sync.Mutex
	partitions int
}

// freshPartition returns a partition key that nobody has used.
func (s *suite) freshPartition() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.partitions++
	return fmt.Sprintf("%sp%d", s.prefix, s.partitions)
}

// testCase is a story about one partition.
type testCase struct {
	name string
	tell func(f *fixture)
}

func (s *suite) run(t *testing.T, name string, cases []testCase) {
	t.Run(name, func(t *testing.T) {
		for _, c := range cases {
			t.Run(c.name, func(t *testing.T) {
				c.tell(&fixture{T: t, tbl: s.tbl, clock: s.clock, partition: s.freshPartition(), suite: s})
			})
		}
	})
}

// clock is the time of the table under test. It moves when a test says so.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

// newClock starts in the future, so that a storage service that removes expired
// items by its own clock never sees one, and between two seconds.
func newClock() *clock {
	return &clock{now: time.Date(2040, 1, 2, 3, 4, 5, 250_000_000, time.UTC)}
}

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) Advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// AdvanceTo moves to a moment, never back.
func (c *clock) AdvanceTo(t time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if t.After(c.now) {
		c.now = t
	}
}

// setRapidChecks sets rapid's flag for the length of the test. Rapid has no
// other way.
func setRapidChecks(t *testing.T, n int) {
	const name = "rapid.checks"
	given := false
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == name })
	if n < 1 || given {
		return
	}
	before := flag.Lookup(name).Value.String()
	set := func(value string) {
		// Through the value itself: flag.Set would mark the flag as given.
		if err := flag.Lookup(name).Value.Set(value); err != nil {
			t.Fatalf("failed to set the number of checks: %v", err)
		}
	}
	set(strconv.Itoa(n))
	t.Cleanup(func() { set(before) })
}

func background() context.Context { return context.Background() }
