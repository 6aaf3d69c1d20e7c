package main

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"
)

func TestDemoAgentknock(t *testing.T) {
	out := demoPasses(t, "agentknock", "A relay", "A phone", "Pairing", "A sleeping phone", "A bad network", "A relay that is restarted", "An agent that is revoked", "What the relay knows")
	if !strings.Contains(out, `"type":"wake"`) {
		t.Error("the wake is not shown")
	}
}

func TestDemoAgentknockFindsFaults(t *testing.T) {
	demoFinds(t, "agentknock", 2*time.Second, []demoFault{
		{
			"a relay that logs what it carries",
			func(s *demoSettings) { s.tap = func(log io.Writer) { fmt.Fprintln(log, askDelete) } },
			[]string{"texts is there"},
		},
		{
			"a relay that takes one connection",
			func(s *demoSettings) { s.limits.Relay.ConnectionsPerIP = 1 },
			[]string{"no other phone can claim it"},
		},
		{
			"a relay that takes one exchange a minute",
			func(s *demoSettings) { s.limits.Agentknock.DeviceExchangesPerMinute = 1 },
			[]string{"the relay takes the request"},
		},
		{
			"a relay that forgets what is open",
			func(s *demoSettings) { s.limits.Agentknock.ExchangeTTL = time.Millisecond },
			[]string{"the agent reads"},
		},
	})
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
