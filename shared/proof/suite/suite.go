// Package suite runs the stories of a dialect's conformance suite against a relay of
// which nothing is known but what its target tells. It knows no dialect.
//
// It promises that no story is left out in silence. A story does not run for one of
// two reasons only: it needs what the target has not ([Story].Needs), or whoever runs
// the suite does not want it ([Omissions].Skips, with the reason). Those of the first
// kind have to be exactly the ones that the binding lists ([Omissions].Lacks), or the
// run fails before it begins: so a front that loses an ability, and a story that
// comes to need more, are noticed, and a list that has grown old is as well. What is
// left out is no subtest, but one line of the log. A story that skips itself has
// failed.
package suite

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
)

// Story is one test. T is the target as the binding describes it, S are settings of a
// relay, and R is the relay as the stories see it.
type Story[T, S, R any] struct {
	Name string
	Tell func(t *testing.T, r R)
	// Own are the settings of a relay for this story alone; nil shares one.
	Own *S
	// Needs returns what the target lacks for this story, or "".
	Needs func(T) string
	// Alone keeps it from running beside others.
	Alone bool
}

// Omissions is what a binding leaves out of the suite.
type Omissions struct {
	// Lacks names the stories that need what the target has not. It is checked.
	Lacks []string
	// Skips names further stories that are not to run, with the reason.
	Skips map[string]string
}

// Suite is the table of contents, and how to enter a relay.
type Suite[T, S, R any] struct {
	Stories []Story[T, S, R]
	// Shared are the settings of the relay that all stories share which have none of
	// their own.
	Shared S
	// Enter makes a relay of a target, and has its log searched when t is over.
	Enter func(t *testing.T, target T) R
	// Omits returns what the binding leaves out.
	Omits func(T) Omissions
}

// Run runs the suite. It opens a relay for the stories that share one, and more of
// them, one for each story, where settings have to differ or the relay has to be
// stopped. open starts a relay with empty data and stops it with t.Cleanup.
func (s Suite[T, S, R]) Run(t *testing.T, open func(t *testing.T, settings S) T) {
	t.Helper()
	noSkip(t)
	target := open(t, s.Shared)
	shared := s.Enter(t, target)
	chosen, left, err := choose(s.Stories, target, s.Omits(target))
	if err != nil {
		t.Fatalf("the stories that are left out are not those that the binding names:\n%v", err)
	}
	if left != "" {
		t.Logf("%d stories run; left out %s", len(chosen), left)
	}
	for _, story := range chosen {
		t.Run(story.Name, func(t *testing.T) {
			if !story.Alone {
				t.Parallel()
			}
			noSkip(t)
			r := shared
			if story.Own != nil {
				r = s.Enter(t, open(t, *story.Own))
			}
			story.Tell(t, r)
		})
	}
}

// noSkip makes a test that skips itself fail.
func noSkip(t *testing.T) {
	t.Cleanup(func() {
		if t.Skipped() {
			t.Error("a story skips itself: what it needs has to be declared")
		}
	})
}

// choose returns the stories that run and says what is left out, or in what the
// binding is wrong.
func choose[T, S, R any](stories []Story[T, S, R], target T, o Omissions) (chosen []Story[T, S, R], left string, err error) {
	var wrong []string
	known := make(map[string]bool)
	because := make(map[string][]string) // names of stories under the reason
	unseen := make(map[string]bool)
	for _, name := range o.Lacks {
		if unseen[name] {
			wrong = append(wrong, name+" is named twice")
		}
		unseen[name] = true
	}
	for _, s := range stories {
		if s.Name == "" || s.Tell == nil || known[s.Name] {
			wrong = append(wrong, fmt.Sprintf("%q is no story with a name of its own", s.Name))
		}
		known[s.Name] = true
		lack := ""
		if s.Needs != nil {
			lack = s.Needs(target)
		}
		why, skipped := o.Skips[s.Name]
		switch {
		case lack != "" && !unseen[s.Name]:
			wrong = append(wrong, fmt.Sprintf("%s would not run, and is not named: the target lacks %s", s.Name, lack))
		case lack != "":
			because["for lack of "+lack] = append(because["for lack of "+lack], s.Name)
		case unseen[s.Name]:
			wrong = append(wrong, s.Name+" is named, but the target has all that it needs")
		case skipped:
			because["as "+why] = append(because["as "+why], s.Name)
		default:
			chosen = append(chosen, s)
		}
		if lack != "" && skipped {
			wrong = append(wrong, s.Name+" is skipped, though it cannot run")
		}
		delete(unseen, s.Name)
	}
	for _, name := range slices.Sorted(maps.Keys(unseen)) {
		wrong = append(wrong, name+" is named, and is no story")
	}
	for _, name := range slices.Sorted(maps.Keys(o.Skips)) {
		if !known[name] {
			wrong = append(wrong, name+" is skipped, and is no story")
		}
	}
	if len(wrong) > 0 {
		return nil, "", fmt.Errorf("%s", strings.Join(wrong, "\n"))
	}
	var parts []string
	for _, why := range slices.Sorted(maps.Keys(because)) {
		parts = append(parts, why+": "+strings.Join(because[why], ", "))
	}
	return chosen, strings.Join(parts, "; "), nil
}

// Need is a [Story].Needs: what the target must have, and whether it has.
func Need[T any](what string, has func(T) bool) func(T) string {
	return func(target T) string {
		if has(target) {
			return ""
		}
		return what
	}
}
