package cost

import (
	"os"
	"regexp"
	"strconv"
	"testing"
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
	if n := numbers("README.md", `\| .alarms. \| .few. \| .few.: \d+ alarms on the (\d+) metrics`); n[0] != alarmMetrics {
		t.Errorf("the alarms look at %v metrics, not %v", n[0], alarmMetrics)
	}
	if n := numbers("README.md", `\| .log-retention-days. \| .(\d+). \|`); n[0] != logDays {
		t.Errorf("logs are kept for %v days, not %v", n[0], logDays)
	}
	if n := numbers("functions.go", `Schedule_Rate\(awscdk\.Duration_Minutes\(jsii\.Number\((\d+)\)`); n[0] != 1 {
		t.Errorf("the clock calls every %v minutes, in the run every 1", n[0])
	}
	for _, key := range []string{"point-in-time-recovery", "access-log", "dashboard"} {
		if text, err := os.ReadFile("../../../infra/README.md"); err != nil || !regexp.MustCompile(`\| .`+key+`. \| .true. \|`).Match(text) {
			t.Errorf("%s is not on by default, and the bill says so (%v)", key, err)
		}
	}
}
