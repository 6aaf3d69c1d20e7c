package main

import (
	"bytes"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// runDemoTest plays a demo, with its files in a folder of its own.
func runDemoTest(t *testing.T, change func(*demoSettings)) (status int, out, folder string) {
	t.Helper()
	folder = t.TempDir()
	t.Setenv("TMPDIR", folder)
	settings := defaultDemo()
	change(&settings)
	var b bytes.Buffer
	status = playDemo(t.Context(), env{stdout: &b, stderr: &b}, settings)
	return status, b.String(), folder
}

func lastLine(out string) string {
	lines := strings.Split(strings.TrimRight(out, "\n"), "\n")
	return lines[len(lines)-1]
}

// demoPasses plays a demo, expects these chapters and no failure, and returns its output.
func demoPasses(t *testing.T, dialect string, chapters ...string) (out string) {
	t.Helper()
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	status, out, folder := runDemoTest(t, func(s *demoSettings) { s.dialect = dialect })
	if status != 0 || strings.Contains(out, "✗") {
		t.Fatalf("the demo ended with %d:\n%s", status, out)
	}
	checks := strings.Count(out, "✓")
	if said := fmt.Sprintf("demo: %d checks passed", checks); checks == 0 || lastLine(out) != said {
		t.Errorf("the last line is %q, but by its marks it is %q", lastLine(out), said)
	}
	for _, chapter := range chapters {
		if !strings.Contains(out, "\n"+chapter+"\n") {
			t.Errorf("there is no chapter %q", chapter)
		}
	}
	if left, _ := os.ReadDir(folder); len(left) > 0 {
		t.Errorf("it leaves %s behind", left[0].Name())
	}
	return out
}

// demoFault breaks the relay of a demo, and names the checks that must then fail.
type demoFault struct {
	name   string
	fault  func(*demoSettings)
	claims []string
}

// demoFinds plays a demo once for each fault, in which something that has to happen
// gets patience. A demo that cannot fail shows nothing.
func demoFinds(t *testing.T, dialect string, patience time.Duration, faults []demoFault) {
	t.Helper()
	for _, c := range faults {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel() // it mostly waits
			settings := defaultDemo()
			settings.dialect, settings.patience = dialect, patience
			c.fault(&settings)
			var b bytes.Buffer
			status := playDemo(t.Context(), env{stdout: &b, stderr: &b}, settings)
			out := b.String()
			if status != 1 || !regexp.MustCompile(`^demo: [1-9]\d* of \d+ checks? failed$`).MatchString(lastLine(out)) {
				t.Errorf("it ended with %d and %q", status, lastLine(out))
			}
			_, summary, _ := strings.Cut(out, "What failed:")
			for _, claim := range c.claims {
				if !strings.Contains(summary, claim) {
					t.Errorf("it does not name %q:\n%s", claim, out)
				}
			}
		})
	}
}
