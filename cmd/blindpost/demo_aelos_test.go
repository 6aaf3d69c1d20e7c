package main

import (
	"fmt"
	"io"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestAelosDemo(t *testing.T) {
	demoPasses(t, "aelos", "A boat without viewers", "A viewer", "The anchor watch", "A guest", "A boat that reconnects", "A boat that leaves", "The last viewer leaves", "What the relay knows")
}

func TestAelosDemoFindsFaults(t *testing.T) {
	demoFinds(t, "aelos", 2*time.Second, []demoFault{
		{
			"a relay that believes in old tokens",
			func(s *demoSettings) { s.limits.Aelos.Leeway = 2 * time.Hour },
			[]string{"with an expired or a forged token it lets nobody in"},
		},
		{
			"a relay with room for one viewer",
			func(s *demoSettings) { s.limits.Aelos.MaxViewers = 1 },
			[]string{"Ben sees the instruments too"},
		},
		{
			"a relay that takes no commands",
			func(s *demoSettings) { s.limits.Aelos.Commands = 1 },
			[]string{"she asks for something else, and the boat refuses"},
		},
		{
			"a relay that logs what was said",
			func(s *demoSettings) { s.tap = func(log io.Writer) { fmt.Fprintln(log, aelosPosition) } },
			[]string{"readings, commands and answers is there"},
		},
	})
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
