package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestDemoAgentknock(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	status, out, folder := runDemoTest(t, func(s *demoSettings) { s.dialect = "agentknock" })
	if status != 0 || strings.Contains(out, "✗") {
		t.Fatalf("the demo ended with %d:\n%s", status, out)
	}
	if said := fmt.Sprintf("demo: %d checks passed", strings.Count(out, "✓")); lastLine(out) != said {
		t.Errorf("the last line is %q, but by its marks it is %q", lastLine(out), said)
	}
	for _, chapter := range []string{
		"A relay", "A phone", "Pairing", "A sleeping phone", "A bad network", "A relay that is restarted", "An agent that is let go", "What the relay knows",
	} {
		if !strings.Contains(out, "\n"+chapter+"\n") {
			t.Errorf("there is no chapter %q", chapter)
		}
	}
	if !strings.Contains(out, `"type":"wake"`) {
		t.Error("the wake is not shown")
	}
	if left, _ := os.ReadDir(folder); len(left) > 0 {
		t.Errorf("it leaves %s behind", left[0].Name())
	}
}

// Here the relay is broken in turn, and the demo has to say so.
func TestDemoAgentknockFindsFaults(t *testing.T) {
	for _, c := range []struct {
		name  string
		fault func(*demoSettings)
		claim string
	}{
		{
			"a relay that logs what it carries",
			func(s *demoSettings) { s.tap = func(log io.Writer) { fmt.Fprintln(log, askDelete) } },
			"texts is there",
		},
		{
			"a relay that takes one connection",
			func(s *demoSettings) { s.limits.Relay.ConnectionsPerIP = 1 },
			"nobody else can claim it",
		},
		{
			"a relay that takes one exchange a minute",
			func(s *demoSettings) { s.limits.Agentknock.DeviceExchangesPerMinute = 1 },
			"the relay takes the request",
		},
		{
			"a relay that forgets what is open",
			func(s *demoSettings) { s.limits.Agentknock.ExchangeTTL = time.Millisecond },
			"the agent reads",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			status, out, _ := runDemoTest(t, func(s *demoSettings) {
				s.dialect, s.patience = "agentknock", 2*time.Second
				c.fault(s)
			})
			failed := regexp.MustCompile(`^demo: (\d+) of (\d+) checks? failed$`).FindStringSubmatch(lastLine(out))
			if status != 1 || failed == nil {
				t.Fatalf("it ended with %d:\n%s", status, out)
			}
			if _, summary, _ := strings.Cut(out, "What failed:"); !strings.Contains(summary, c.claim) {
				t.Errorf("it does not name %q:\n%s", c.claim, out)
			}
		})
	}
}

func TestSealIsNotBroken(t *testing.T) {
	box, err := newSealer()
	if err != nil {
		t.Fatal(err)
	}
	other, err := newSealer()
	if err != nil {
		t.Fatal(err)
	}
	payload := box.seal("hello")
	if bytes.Contains(payload, []byte("hello")) {
		t.Error("it is not sealed at all")
	}
	if text, err := box.open(payload); text != "hello" || err != nil {
		t.Errorf("%q, %v", text, err)
	}
	for _, bad := range []string{string(other.seal("hello")), "null", "{}", `{"nonce":"AAAA","sealed":"AAAA"}`, "7", "x"} {
		if text, err := box.open([]byte(bad)); err == nil {
			t.Errorf("%s opens to %q", bad, text)
		}
	}
}
