package main

import (
	"fmt"
)

// demoReport tells the story of a demo and counts its checks.
type demoReport struct {
	screen *screen
	checks int
	failed []string
}

// chapter begins a part of the story.
func (r *demoReport) chapter(title string, story ...string) {
	r.screen.print("\n%s", r.screen.styled(styleBold, title))
	for _, paragraph := range story {
		r.tell("%s", paragraph)
	}
}

// demoColumns is how wide the text is at most.
const demoColumns = 78

// tell says something that is not checked.
func (r *demoReport) tell(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	for _, l := range wrap(text, min(demoColumns, r.screen.width)-2) {
		r.screen.print("  %s", l)
	}
}

// check states what must hold, and whether it does. It returns err, so that a
// chapter can end where going on makes no sense.
func (r *demoReport) check(err error, format string, args ...any) error {
	claim := fmt.Sprintf(format, args...)
	r.checks++
	mark := r.screen.styled(styleGreen, "✓")
	if err != nil {
		mark = r.screen.styled(styleRed, "✗")
		claim += ": " + foreign(err.Error())
		r.failed = append(r.failed, claim)
	}
	for i, l := range wrap(claim, min(demoColumns, r.screen.width)-4) {
		if i == 0 {
			r.screen.print("  %s %s", mark, l)
		} else {
			r.screen.print("    %s", l)
		}
	}
	return err
}

// finish prints the result and returns the exit status. Scripts can read the last line.
func (r *demoReport) finish() int {
	if len(r.failed) == 0 {
		r.screen.print("%s", r.screen.styled(styleGreen, fmt.Sprintf("demo: %s passed", count(r.checks, "check"))))
		return 0
	}
	r.screen.print("\nWhat failed:")
	for _, claim := range r.failed {
		r.screen.print("  ✗ %s", claim)
	}
	r.screen.print("%s", r.screen.styled(styleRed, fmt.Sprintf("demo: %d of %s failed", len(r.failed), count(r.checks, "check"))))
	return 1
}
