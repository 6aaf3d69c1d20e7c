//go:build cdk

package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"blindpost/shared/dialect/agentknock/attest"
	declared "blindpost/shared/settings"
)

// The roots of attestations are some kilobytes, more than a function's environment
// holds, and no secret: they are deployed as a file beside the program of the one
// function that reads them.
const (
	rootsName = "attestation-roots.pem"
	taskRoot  = "/var/task" // where Lambda unpacks a function
)

// readAttestation reads the demand, and the roots from a file on this machine.
func (s *settings) readAttestation() (err error) {
	if s.attestation, err = attest.ParseDemand(declared.KnockAttestation.Of(s.values)); err != nil {
		return s.values.Wrong(declared.KnockAttestation, "%w", err)
	}
	name := declared.KnockRoots.Of(s.values)
	if name == "" {
		return nil
	}
	s.attestationRoots, err = os.ReadFile(name)
	if err == nil {
		_, err = attest.ParseRoots(s.attestationRoots)
	}
	if err != nil {
		return s.values.Wrong(declared.KnockRoots, "it must be a file with root certificates: %w", err)
	}
	return nil
}

// attestationFile is the file of the roots for functions/connect, "" without roots.
func (s *settings) attestationFile() string {
	if s.attestationRoots == nil {
		return ""
	}
	return taskRoot + "/" + rootsName
}

// checkAttestation checks what the functions cannot know, see checkFunctions.
func (s *settings) checkAttestation(c *complaints) {
	if s.attestation != attest.Off && !s.edge && s.allFronts() == nil {
		c.add("blindpost:agentknock-attestation needs blindpost:edge, blindpost:binary-front or blindpost:fronts: without any there is no address where a device could claim its id")
	}
}

// bundleAttestationRoots puts the roots beside the program of functions/connect, or
// takes away those of an earlier run.
func (s *settings) bundleAttestationRoots(dir string) error {
	name := filepath.Join(dir, rootsName)
	if s.attestationRoots == nil {
		if err := os.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("failed to remove the roots of an earlier run: %w", err)
		}
		return nil
	}
	// Lambda runs a function as another user, who must be able to read the file.
	if err := os.WriteFile(name, s.attestationRoots, 0o644); err != nil {
		return fmt.Errorf("failed to write the roots: %w", err)
	}
	if err := os.Chmod(name, 0o644); err != nil {
		return fmt.Errorf("failed to write the roots: %w", err)
	}
	return nil
}
