package attest_test

import (
	"bytes"
	"encoding/pem"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"blindpost/shared/dialect/agentknock/attest"
	"blindpost/shared/proof/attesttest"
)

func TestRootsThatWillNotDo(t *testing.T) {
	one := attesttest.NewMaker(t, now).PEM()
	var many []byte
	for range 33 {
		many = append(many, attesttest.NewMaker(t, now).PEM()...)
	}
	for name, tt := range map[string]struct {
		file []byte
		want string // "" is fine
	}{
		"one":            {one, ""},
		"the same often": {bytes.Repeat(one, 40), ""},
		"with text":      {append([]byte("# the root of the devices\n"), one...), ""},
		"nothing":        {nil, "there is no certificate"},
		"only text":      {[]byte("https://example.org/root"), "there is no certificate"},
		"JSON":           {[]byte(`["` + strings.ReplaceAll(string(one), "\n", `\n`) + `"]`), "there is no certificate"},
		"cut":            {append(bytes.Clone(one), one[:len(one)-40]...), "is not whole"},
		"a key":          {append(bytes.Clone(one), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: []byte{1}})...), "number 2 is no certificate"},
		"damaged":        {pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: []byte{0x30, 3, 1}}), "failed to read root 1"},
		"too many":       {many, "more than 32"},
		"too large":      {append(bytes.Repeat([]byte("\n"), 1<<20), one...), "more than 1048576 bytes"},
	} {
		_, err := attest.ParseRoots(tt.file)
		if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %q", name, err, tt.want)
		}
	}
}

func TestPolicies(t *testing.T) {
	dir := t.TempDir()
	good, bad := filepath.Join(dir, "roots.pem"), filepath.Join(dir, "empty.pem")
	for name, content := range map[string][]byte{good: attesttest.NewMaker(t, now).PEM(), bad: nil} {
		if err := os.WriteFile(name, content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, tt := range []struct {
		demand, file string
		checks, good bool
	}{
		{"off", "", true, true},
		{"off", good, false, true},
		{"check", "", false, false},
		{"require", "", false, false},
		{"check", good, true, true},
		{"require", good, true, true},
		{"check", bad, true, false},
		{"require", filepath.Join(dir, "none.pem"), true, false},
	} {
		d, err := attest.ParseDemand(tt.demand)
		if err != nil || d.String() != tt.demand {
			t.Errorf("%q is read as %s, %v", tt.demand, d, err)
		}
		if err := attest.CheckPolicy(d, tt.file); (err == nil) != tt.checks {
			t.Errorf("%s with %q: %v", d, tt.file, err)
		}
		p, err := attest.ReadPolicy(d, tt.file)
		if (err == nil) != tt.good || err == nil && (p.Demand != d || (p.Roots != nil) != (d != attest.Off)) {
			t.Errorf("%s with %q: %+v, %v", d, tt.file, p, err)
		}
	}
	for _, s := range []string{"", "on", "Check", "require "} {
		if d, err := attest.ParseDemand(s); err == nil {
			t.Errorf("%q is taken for %s", s, d)
		}
	}
}
