package cost

import (
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"blindpost/shared/settings"
)

// What the bill takes for granted about the stack is how the stack is built.
func TestStackIsAsItIsBuilt(t *testing.T) {
	numbers := func(file, pattern string) []float64 {
		t.Helper()
		text, err := os.ReadFile("../../../infra/" + file)
		if err != nil {
			t.Fatal(err)
		}
		m := regexp.MustCompile(pattern).FindSubmatch(text)
		if m == nil {
			t.Fatalf("infra/%s has nothing that looks like %s", file, pattern)
		}
		var out []float64
		for _, s := range m[1:] {
			n, err := strconv.ParseFloat(string(s), 64)
			if err != nil {
				t.Fatal(err)
			}
			out = append(out, n)
		}
		return out
	}
	for name, mb := range memoryMB {
		if n := numbers("functions.go", `"`+name+`": +\{(\d+), \d+\}`); n[0] != mb {
			t.Errorf("functions/%s has %v MB, not %v", name, n[0], mb)
		}
	}
	defaults := settings.Defaults()
	if got := settings.Alarms.Help; settings.Alarms.Of(defaults) != "few" || !strings.Contains(got, fmt.Sprintf(" %d metrics", alarmMetrics)) {
		t.Errorf("by default the alarms do not look at %v metrics: %s", alarmMetrics, got)
	}
	if got := settings.LogRetention.Of(defaults); got != strconv.Itoa(logDays) {
		t.Errorf("logs are kept for %v days, not %v", got, logDays)
	}
	if n := numbers("functions.go", `Schedule_Rate\(awscdk\.Duration_Minutes\(jsii\.Number\((\d+)\)`); n[0] != 1 {
		t.Errorf("the clock calls every %v minutes, in the run every 1", n[0])
	}
	for _, on := range []settings.Key[bool]{settings.PointInTimeRecovery, settings.AccessLog, settings.Dashboard} {
		if !on.Of(defaults) {
			t.Errorf("%s is not on by default, and the bill says so", on.Name)
		}
	}
}
