package main

import (
	"bytes"
	"errors"
	"flag"
	"regexp"
	"strings"
	"testing"

	"blindpost/shared/settings"
)

// The short help is for two screens, the long one has everything.
func TestHelp(t *testing.T) {
	helps := map[bool]string{}
	for _, args := range [][]string{{"--mailbox-cap=5", "--help"}, {"--help-all"}} {
		var out bytes.Buffer
		if _, err := ParseSettings(args, &out); !errors.Is(err, flag.ErrHelp) {
			t.Fatalf("error is %v", err)
		}
		helps[args[0] == "--help-all"] = out.String()
		for _, line := range strings.Split(out.String(), "\n") {
			if len(line) > 100 && !strings.HasPrefix(line, "Front of") {
				t.Errorf("%d columns: %s", len(line), line)
			}
		}
	}
	if n := strings.Count(helps[false], "\n"); n > 60 {
		t.Errorf("the short help has %d lines", n)
	}
	for _, s := range settings.All(settings.Binary) {
		name := regexp.MustCompile(`(?m)^  --` + s.Name + `( |$)`)
		if !name.MatchString(helps[true]) || name.MatchString(helps[false]) == s.Group.More {
			t.Errorf("%s is in the wrong help", s.Name)
		}
	}
	for _, want := range []string{
		"--max-frame BYTES", "(default 64KiB)", "(default 512KiB)", "(default 4MiB)", "(default 30s)", "(default 2m)", "(default 7d)",
		"(default 200)", "(default :8443)", "(default blindpost-data)", "(default Action required)", "BLINDPOST_LOG_LEVEL", "--data-dir FOLDER",
	} {
		if !strings.Contains(helps[true], want) {
			t.Errorf("help lacks %q", want)
		}
	}
	if t.Failed() {
		t.Log(helps[true])
	}
}
