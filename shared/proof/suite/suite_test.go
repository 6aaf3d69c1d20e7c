package suite

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
)

// front is a target of which nothing matters but what it can do.
type front struct {
	pings, pushes bool
	settings      int
	omits         Omissions
}

type stage struct{ front }

func tell(*testing.T, *stage) {}

var (
	needPings  = Need("pings", func(f front) bool { return f.pings })
	needPushes = Need("pushes", func(f front) bool { return f.pushes })
)

var table = []Story[front, int, *stage]{
	{Name: "Plain", Tell: tell}, {Name: "Pinged", Tell: tell, Needs: needPings},
	{Name: "Pushed", Tell: tell, Needs: needPushes}, {Name: "PushedAgain", Tell: tell, Needs: needPushes},
}

// What is left out has to be what the binding says, to the story.
func TestOmissions(t *testing.T) {
	twice := append(table[:len(table):len(table)], table[0])
	cases := []struct {
		name       string
		stories    []Story[front, int, *stage]
		front      front
		o          Omissions
		runs, left string
		wrong      string // a pattern
	}{
		{"everything", table, front{pings: true, pushes: true}, Omissions{}, "Plain Pinged Pushed PushedAgain", "", ""},
		{"less", table, front{pings: true}, Omissions{Lacks: []string{"PushedAgain", "Pushed"}},
			"Plain Pinged", "for lack of pushes: Pushed, PushedAgain", ""},
		{"less and skipped", table, front{pings: true}, Omissions{Lacks: []string{"PushedAgain", "Pushed"}, Skips: map[string]string{"Plain": "slow"}},
			"Pinged", "as slow: Plain; for lack of pushes: Pushed, PushedAgain", ""},
		{"one of two is not named", table, front{pings: true}, Omissions{Lacks: []string{"Pushed"}}, "", "", "^PushedAgain would not run.*pushes$"},
		{"named in vain", table, front{pings: true, pushes: true}, Omissions{Lacks: []string{"Pushed"}}, "", "", "^Pushed is named, but"},
		{"named and skipped in vain", table, front{pings: true, pushes: true},
			Omissions{Lacks: []string{"Pushed"}, Skips: map[string]string{"Pushed": "slow"}}, "", "", "^Pushed is named, but"},
		{"named twice", table, front{pushes: true}, Omissions{Lacks: []string{"Pinged", "Pinged"}}, "", "", "^Pinged is named twice$"},
		{"not there", table, front{pings: true, pushes: true}, Omissions{Lacks: []string{"Renamed"}}, "", "", "^Renamed is named, and is no story$"},
		{"skipped and not there", table, front{pings: true, pushes: true}, Omissions{Skips: map[string]string{"Renamed": "slow"}},
			"", "", "^Renamed is skipped, and is no story$"},
		{"skipped for the lack", table, front{pushes: true}, Omissions{Skips: map[string]string{"Pinged": "slow"}}, "", "",
			"^Pinged would not run(.|\n)*^Pinged is skipped, though"},
		{"two of a name", twice, front{pings: true, pushes: true}, Omissions{}, "", "", `^"Plain" is no story with a name of its own$`},
		{"untold", []Story[front, int, *stage]{{Name: "Empty"}}, front{}, Omissions{}, "", "", `^"Empty" is no story`},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			chosen, left, err := choose(c.stories, c.front, c.o)
			var names []string
			for _, s := range chosen {
				names = append(names, s.Name)
			}
			if got := strings.Join(names, " "); got != c.runs || left != c.left {
				t.Errorf("%q run, left out %q", got, left)
			}
			if (err != nil) != (c.wrong != "") || err != nil && !regexp.MustCompile("(?m)"+c.wrong).MatchString(err.Error()) {
				t.Errorf("it says %v", err)
			}
		})
	}
}

// Stories share a relay, or have one of their own settings; each is entered once.
func TestRelays(t *testing.T) {
	var mu sync.Mutex
	var entered, told []string
	note := func(list *[]string, format string, args ...any) {
		mu.Lock()
		defer mu.Unlock()
		*list = append(*list, fmt.Sprintf(format, args...))
	}
	name := func(t *testing.T) string { return filepath.Base(t.Name()) }
	own := 7
	story := func(t *testing.T, r *stage) { note(&told, "%s %d", name(t), r.settings) }
	t.Run("suite", func(t *testing.T) {
		Suite[front, int, *stage]{
			Stories: []Story[front, int, *stage]{
				{Name: "A", Tell: story, Alone: true}, {Name: "B", Tell: story, Alone: true, Own: &own},
				{Name: "C", Tell: story, Alone: true, Needs: needPings},
			},
			Shared: 3,
			Enter:  func(t *testing.T, f front) *stage { note(&entered, "%s", name(t)); return &stage{f} },
			Omits:  func(f front) Omissions { return f.omits },
		}.Run(t, func(_ *testing.T, settings int) front {
			return front{settings: settings, omits: Omissions{Lacks: []string{"C"}}}
		})
	})
	if got := fmt.Sprint(entered, told); got != "[suite B] [A 3 B 7]" {
		t.Error(got)
	}
}

// badRun is the environment variable by which this binary plays a run that must fail.
const badRun = "SUITE_TEST_BAD_RUN"

// TestBadRun is what TestRunsThatFail runs.
func TestBadRun(t *testing.T) {
	kind := os.Getenv(badRun)
	stories := []Story[front, int, *stage]{{Name: "Good", Tell: tell}}
	switch kind {
	case "":
		return
	case "skips itself":
		stories = append(stories, Story[front, int, *stage]{Name: "Bad", Tell: func(t *testing.T, _ *stage) { t.SkipNow() }})
	case "cannot run":
		stories = append(stories, Story[front, int, *stage]{Name: "Bad", Tell: tell, Needs: needPings})
	}
	Suite[front, int, *stage]{
		Stories: stories,
		Enter:   func(_ *testing.T, f front) *stage { return &stage{f} },
		Omits:   func(f front) Omissions { return f.omits },
	}.Run(t, func(*testing.T, int) front { return front{} })
}

// A story that does not run, and that nobody has named, fails the run.
func TestRunsThatFail(t *testing.T) {
	for kind, says := range map[string]string{
		"good": "", "skips itself": "a story skips itself", "cannot run": "Bad would not run, and is not named: the target lacks pings",
	} {
		cmd := exec.Command(os.Args[0], "-test.run=^TestBadRun$", "-test.count=1")
		cmd.Env = append(os.Environ(), badRun+"="+kind)
		out, err := cmd.CombinedOutput()
		if (err != nil) != (says != "") || !strings.Contains(string(out), says) {
			t.Errorf("%s: %v\n%s", kind, err, out)
		}
	}
}

// The suites have no other way to leave anything out, not in the middle of a story
// either: no part of it would be missed.
func TestSuitesDoNotSkip(t *testing.T) {
	files, err := filepath.Glob("../*/conformance/*.go")
	if err != nil || len(files) < 30 {
		t.Fatalf("found %d files of suites, %v", len(files), err)
	}
	skip := regexp.MustCompile(`\.Skip(f|Now)?\(`)
	for _, name := range files {
		source, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if found := skip.FindIndex(source); found != nil {
			t.Errorf("%s:%d: a test skips", name, 1+strings.Count(string(source[:found[0]]), "\n"))
		}
	}
}
