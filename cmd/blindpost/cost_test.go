package main

import (
	"bytes"
	"context"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"blindpost/shared/proof/cost"
)

func runCostArgs(args ...string) (status int, stdout, stderr string) {
	var out, errs bytes.Buffer
	status = run(context.Background(), env{stdout: &out, stderr: &errs}, append([]string{"cost"}, args...))
	return status, out.String(), errs.String()
}

func TestCostJSON(t *testing.T) {
	status, out, errs := runCostArgs("--json")
	if status != 0 || errs != "" {
		t.Fatalf("status %d: %s", status, errs)
	}
	var got struct {
		Monthly  map[string]float64 `json:"monthly_usd"`
		Watching float64            `json:"alarms_and_dashboard_usd"`
		Counted  string             `json:"counts_date"`
		Prices   string             `json:"prices_date"`
		Bills    []cost.Bill        `json:"bills"`
	}
	if err := json.Unmarshal([]byte(out), &got); err != nil {
		t.Fatal(err)
	}
	if len(got.Monthly) != 3 || got.Counted == "" || got.Prices == "" || got.Watching <= 0 {
		t.Errorf("got %+v", got)
	}
	for i, n := range []string{"1", "1000", "1000000"} {
		b := got.Bills[i]
		if sum := cost.Sum(b.Lines); math.Abs(got.Monthly[n]-sum) > 1e-6*sum || sum <= 0 {
			t.Errorf("%s households: %v, and the lines are %v", n, got.Monthly[n], sum)
		}
	}
}

func TestCostTable(t *testing.T) {
	status, out, errs := runCostArgs("--households", "1, 25,7000")
	if status != 0 || errs != "" {
		t.Fatalf("status %d: %s", status, errs)
	}
	counts, err := cost.Embedded()
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{counts.Date, "households", "25", "7,000", "in all", "each", "SQS, polling of jobs", "CloudWatch dashboard", counts.Day[0]} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is not in\n%s", want, out)
		}
	}
}

// Counts of another run are priced instead of those that came with the binary.
func TestCostOfOtherCounts(t *testing.T) {
	file := filepath.Join(t.TempDir(), "counts.json")
	if err := os.WriteFile(file, []byte(`{"date":"2030-01-02","household_day":{"table":{"write_units":1000000}}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	status, out, errs := runCostArgs("--json", "--counts", file, "--households", "10")
	if status != 0 {
		t.Fatalf("status %d: %s", status, errs)
	}
	var got costObject
	if err := json.Unmarshal([]byte(out), &got); err != nil {
		t.Fatal(err)
	}
	if want := 0.585 + 10*365.0/12*0.625; math.Abs(got.Monthly["10"]-want) > 1e-6 || got.Counted != "2030-01-02" {
		t.Errorf("%v of %s, want %v", got.Monthly, got.Counted, want)
	}
}

func TestCostUsedWrongly(t *testing.T) {
	none := filepath.Join(t.TempDir(), "none.json")
	for _, tt := range []struct {
		args   string
		status int
		want   string
	}{
		{"--help", 0, ""},
		{"--households 0", 2, "must be a number from 1"},
		{"--households 1,many", 2, `"many" must be a number`},
		{"--households 99999999999", 2, "must be a number from 1"},
		{"--other", 2, "other"},
		{"extra", 2, "unexpected argument"},
		{"--counts " + none, 1, "none.json"},
	} {
		status, _, errs := runCostArgs(strings.Fields(tt.args)...)
		if status != tt.status || !strings.Contains(errs, tt.want) {
			t.Errorf("%s: status %d, %s", tt.args, status, errs)
		}
	}
}
