package main

import (
	"fmt"
	"io"
	"regexp"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestAelosDemo(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	status, out, _ := runDemoTest(t, func(s *demoSettings) { s.dialect = "aelos" })
	if status != 0 || strings.Contains(out, "✗") {
		t.Fatalf("the demo ended with %d:\n%s", status, out)
	}
	if said := fmt.Sprintf("demo: %d checks passed", strings.Count(out, "✓")); lastLine(out) != said {
		t.Errorf("the last line is %q, but by its marks it is %q", lastLine(out), said)
	}
	for _, chapter := range []string{
		"A boat that nobody watches", "Somebody watches", "The anchor watch", "A guest", "A boat that reconnects",
		"A boat that leaves", "Nobody watches any more", "What the relay knows",
	} {
		if !strings.Contains(out, "\n"+chapter+"\n") {
			t.Errorf("there is no chapter %q", chapter)
		}
	}
}

// A demo that cannot fail shows nothing: here the relay is broken in turn, and the
// demo has to say so.
func TestAelosDemoFindsFaults(t *testing.T) {
	for _, c := range []struct {
		name  string
		fault func(*demoSettings)
		claim string
	}{
		{
			"a relay that believes in old tokens",
			func(s *demoSettings) { s.limits.Aelos.Leeway = 2 * time.Hour },
			"with an expired or a forged token it lets nobody in",
		},
		{
			"a relay with room for one viewer",
			func(s *demoSettings) { s.limits.Aelos.MaxViewers = 1 },
			"Ben sees the instruments too",
		},
		{
			"a relay that takes no commands",
			func(s *demoSettings) { s.limits.Aelos.Commands = 1 },
			"she asks for something else, and the boat refuses",
		},
		{
			"a relay that logs what was said",
			func(s *demoSettings) { s.tap = func(log io.Writer) { fmt.Fprintln(log, aelosPosition) } },
			"readings, commands and answers is there",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			status, out, _ := runDemoTest(t, func(s *demoSettings) {
				s.dialect, s.patience = "aelos", 2*time.Second
				c.fault(s)
			})
			if status != 1 || !regexp.MustCompile(`^demo: [1-9]\d* of \d+ checks? failed$`).MatchString(lastLine(out)) {
				t.Errorf("it ended with %d and %q", status, lastLine(out))
			}
			if _, summary, _ := strings.Cut(out, "What failed:"); !strings.Contains(summary, c.claim) {
				t.Errorf("it does not name %q:\n%s", c.claim, out)
			}
		})
	}
}

// A demo that ends in the middle leaves nothing running.
func TestAelosDemoEndsInTheMiddle(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	status, out, _ := runDemoTest(t, func(s *demoSettings) {
		s.dialect, s.patience = "aelos", 2*time.Second
		s.limits.Relay.ConnectionsPerIP = 4 // the refusals take two, boat and Ana two
	})
	if status != 1 {
		t.Errorf("it ended with %d:\n%s", status, out)
	}
}
