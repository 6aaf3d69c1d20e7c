//go:build cdk

package main

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"blindpost/shared/dialect/agentknock/attest"
)

// Only functions/connect serves claims, and is told.
func TestAttestationIsToldToConnect(t *testing.T) {
	for _, name := range functionNames {
		told := slices.ContainsFunc(variables(t, synth(t, "everything", everything).template, name), func(v string) bool {
			return strings.HasPrefix(v, "AGENTKNOCK_ATTESTATION")
		})
		if told != (name == "connect") {
			t.Errorf("%s is told of attestations: %v", name, told)
		}
	}
}

// The roots lie where functions/connect is told that they are: beside its program. What
// an earlier deployment has left there goes.
func TestAttestationRootsAreBundled(t *testing.T) {
	s, err := readContext(map[string]any{
		"blindpost:edge": true, "blindpost:agentknock-attestation": "check", "blindpost:agentknock-attestation-roots": "testdata/attestation-roots.pem",
	})
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	told := s.told("connect", samples)["agentknock-attestation-roots"]
	if path.Dir(told) != "/var/task" {
		t.Errorf("the function is told %q", told)
	}
	name := filepath.Join(dir, path.Base(told))
	for range 2 {
		if err := s.bundleAttestationRoots(dir); err != nil {
			t.Fatal(err)
		}
		info, err := os.Stat(name)
		if err != nil || info.Mode().Perm() != 0o644 {
			t.Fatalf("%v, %v", info, err)
		}
		if b, err := os.ReadFile(name); err != nil || !bytes.Equal(b, s.attestationRoots) {
			t.Errorf("%d bytes, %v", len(b), err)
		}
		if _, err := attest.ReadRoots(name); err != nil {
			t.Error(err)
		}
	}
	if s, err = readContext(nil); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := s.bundleAttestationRoots(dir); err != nil {
			t.Fatal(err)
		}
		if _, err := os.Stat(name); !os.IsNotExist(err) {
			t.Errorf("the roots are still there: %v", err)
		}
	}
	if err := s.bundleAttestationRoots(filepath.Join(dir, "none")); err != nil {
		t.Error(err)
	}
	s.attestationRoots = []byte{1}
	if err := s.bundleAttestationRoots(filepath.Join(dir, "none")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no folder: %v", err)
	}
}
