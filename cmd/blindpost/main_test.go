package main

import (
	"bytes"
	"context"
	"strings"
	"testing"
)

func TestCommands(t *testing.T) {
	for _, tt := range []struct {
		args   string
		status int
		want   string
	}{
		{"help", 0, "Usage: blindpost COMMAND"},
		{"help help", 0, "Usage: blindpost COMMAND"},
		{"help serve", 0, "Usage: blindpost serve [flags]"},
		{"help doctor", 0, "Usage: blindpost doctor"},
		{"sevre", 2, "blindpost: sevre: there is no such command; the nearest is serve\n"},
		{"help sevre", 2, "blindpost: sevre: there is no such command; the nearest is serve\n"},
		{"x", 2, "blindpost: x: there is no such command\n"},
	} {
		var out bytes.Buffer
		status := run(context.Background(), env{stdout: &out, stderr: &out}, strings.Fields(tt.args))
		if status != tt.status || !strings.Contains(out.String(), tt.want) {
			t.Errorf("%s: status %d, %s", tt.args, status, &out)
		}
	}
}

// The other commands know the nearest flag as well.
func TestNearestFlag(t *testing.T) {
	_, err := parseCost([]string{"--househods=1"}, &bytes.Buffer{})
	if err == nil || !strings.Contains(err.Error(), "--househods: there is no such flag; the nearest is --households") {
		t.Errorf("error is %v", err)
	}
}
