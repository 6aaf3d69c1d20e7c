package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"blindpost/shared/dialect/agentknock"
	"blindpost/shared/dialect/agentknock/attest"
	"blindpost/shared/proof/attesttest"
)

// The roots are read at the start: a relay that could not tell a good attestation does
// not start.
func TestAttestationRoots(t *testing.T) {
	good := attesttest.NewMaker(t, time.Now()).PEM()
	for name, tt := range map[string]struct {
		demand  string
		content []byte // nil: no such file
		want    string // in the error, "" for none
	}{
		"check":      {"check", good, ""},
		"require":    {"require", good, ""},
		"no file":    {"require", nil, "no such file"},
		"empty":      {"check", []byte(" \n"), "there is no certificate"},
		"cut":        {"check", good[:len(good)-40], "there is no certificate"},
		"cut second": {"check", append(good[:len(good):len(good)], good[:60]...), "is not whole"},
	} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "roots.pem")
			if tt.content != nil {
				if err := os.WriteFile(file, tt.content, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			s, err := parse(t, "", "--agentknock-attestation="+tt.demand, "--agentknock-attestation-roots="+file)
			if err != nil {
				t.Fatal(err)
			}
			p, err := agentknock.AttestationFrom(s)
			switch {
			case tt.want != "":
				if err == nil || !strings.Contains(err.Error(), "--agentknock-attestation-roots ") || !strings.Contains(err.Error(), tt.want) {
					t.Errorf("error is %v", err)
				}
			case err != nil || p.Demand.String() != tt.demand || p.Demand == attest.Off || p.Roots == nil:
				t.Errorf("%+v, %v", p, err)
			}
		})
	}
	if p, err := agentknock.AttestationFrom(with(t)); err != nil || p != (attest.Policy{}) {
		t.Errorf("without any of it: %+v, %v", p, err)
	}
}
