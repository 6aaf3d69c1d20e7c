package main

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"io"
	"net"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
	"pgregory.net/rapid"
)

func TestDemo(t *testing.T) {
	demoPasses(t, "skald", "Pairing", "Messages", "Who is online", "A sleeping phone", "A phone in a lift", "A lost phone", "What the relay knows")
}

func TestDemoFindsFaults(t *testing.T) {
	demoFinds(t, "skald", defaultDemo().patience, []demoFault{
		{
			"a mailbox for three",
			func(s *demoSettings) { s.limits.Relay.MailboxCap = 3; s.patience = 2 * time.Second },
			[]string{"five messages to Ben wait in his mailbox", "the five messages come"},
		},
		{
			"a relay that logs what it carries",
			func(s *demoSettings) { s.tap = func(log io.Writer) { fmt.Fprintln(log, waiting[2]) } },
			[]string{"none of the 14 texts is there"},
		},
		{
			"a relay that takes one connection",
			func(s *demoSettings) { s.limits.Relay.ConnectionsPerIP = 1 },
			[]string{"Ana's phone scans the code"},
		},
	})
}

func TestDemoKeepsItsFolder(t *testing.T) {
	status, out, folder := runDemoTest(t, func(s *demoSettings) { s.keep, s.verbose = true, true })
	if status != 0 {
		t.Fatalf("the demo ended with %d:\n%s", status, out)
	}
	kept, err := filepath.Glob(filepath.Join(folder, "*", "*"))
	if err != nil || len(kept) < 2 {
		t.Fatalf("kept are %v, %v", kept, err)
	}
	if !strings.Contains(out, filepath.Dir(kept[0])) {
		t.Error("it does not say where")
	}
	if !strings.Contains(out, "relay: time=") {
		t.Error("it does not show the relay's log")
	}
}

func TestDemoIsInterrupted(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var out bytes.Buffer
	if status := runDemo(ctx, env{stdout: &out, stderr: &out}, nil); status != 1 {
		t.Errorf("it ended with %d", status)
	}
	if lastLine(out.String()) != "demo: interrupted" {
		t.Errorf("it said %q", out.String())
	}
}

func TestDemoFlags(t *testing.T) {
	for _, c := range []struct {
		args   []string
		status int
		says   string
	}{
		{[]string{"--help"}, 0, "--dialect"},
		{[]string{"--dialect", "morse"}, 2, `no demo of dialect "morse"`},
		{[]string{"--nonsense"}, 2, "nonsense"},
		{[]string{"more"}, 2, "unexpected argument"},
	} {
		var out bytes.Buffer
		if status := runDemo(t.Context(), env{stdout: &out, stderr: &out}, c.args); status != c.status || !strings.Contains(out.String(), c.says) {
			t.Errorf("%v ended with %d and said %q", c.args, status, out.String())
		}
	}
}

func TestSearchFindsWhatIsThere(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		bytesOf := func(name string, most int) []byte {
			return rapid.SliceOfN(rapid.Byte(), 0, most).Draw(t, name)
		}
		what := rapid.SliceOfN(rapid.Byte(), 6, 40).Draw(t, "what")
		before, after := bytesOf("before", 9), bytesOf("after", 9)
		whole := append(append(append([]byte(nil), before...), what...), after...)
		for name, haystack := range map[string][]byte{
			"as it is":   whole,
			"hex":        []byte(hex.EncodeToString(whole)),
			"base64":     []byte(base64.StdEncoding.EncodeToString(whole)),
			"base64 URL": []byte(base64.RawURLEncoding.EncodeToString(whole)),
		} {
			if !holds(haystack, what) {
				t.Fatalf("%x is not found in %s", what, name)
			}
		}
	})
}

func TestSearchFindsNothingElse(t *testing.T) {
	haystack := []byte("three: somebody rang at the bell")
	if holds(haystack, []byte("three: somebody rang at the door")) || holds(haystack, nil) {
		t.Error("it finds what is not there")
	}
}

// A network that vanishes closes nothing, and lets new connections through.
func TestNetworkVanishes(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	relay, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer relay.Close()
	n, err := newNetwork(relay.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	connect := func() (phone, far net.Conn) {
		phone, err := n.dial(t.Context(), "", "")
		if err != nil {
			t.Fatal(err)
		}
		far, err = relay.Accept()
		if err != nil {
			t.Fatal(err)
		}
		return phone, far
	}
	arrives := func(from, to net.Conn) {
		t.Helper()
		if _, err := from.Write([]byte("x")); err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadFull(to, make([]byte, 1)); err != nil {
			t.Fatal(err)
		}
	}
	phone, far := connect()
	arrives(phone, far)
	arrives(far, phone)
	n.vanish()
	if _, err := phone.Write([]byte("lost")); err != nil {
		t.Errorf("the phone notices at once: %v", err)
	}
	_ = phone.Close()
	phone2, far2 := connect()
	arrives(phone2, far2)
	// By now the first connection would have been closed, or its bytes have arrived.
	if err := far.SetReadDeadline(time.Now().Add(50 * time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	if _, err := far.Read(make([]byte, 1)); err == nil || !err.(net.Error).Timeout() {
		t.Errorf("the relay notices: %v", err)
	}
	if err := n.close(); err != nil {
		t.Error(err)
	}
	for _, c := range []net.Conn{far, phone2, far2} {
		_ = c.Close()
	}
}
