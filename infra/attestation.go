//go:build cdk

package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"blindpost/shared/dialect/agentknock/attest"
)

// The roots of attestations are some kilobytes, more than a function's environment
// holds, and no secret: they are deployed as a file beside the program of the one
// function that reads them.
const (
	rootsName = "attestation-roots.pem"
	taskRoot  = "/var/task" // where Lambda unpacks a function
)

func readAttestation(s *settings, value string) (err error) {
	if s.attestation, err = attest.ParseDemand(value); err != nil {
		return errors.New("is none of off, check, require")
	}
	return nil
}

func readAttestationRoots(s *settings, value string) error {
	b, err := os.ReadFile(value)
	if err == nil {
		_, err = attest.ParseRoots(b)
	}
	if err != nil {
		return fmt.Errorf("is no file with roots: %w", err)
	}
	s.attestationRoots = b
	return nil
}

// attestationEnvironment is what functions/connect is told, nothing if there is nothing
// to demand.
func (s *settings) attestationEnvironment() map[string]string {
	env := map[string]string{}
	if s.attestation != attest.Off {
		env["BLINDPOST_AGENTKNOCK_ATTESTATION"] = s.attestation.String()
	}
	if s.attestationRoots != nil {
		env["BLINDPOST_AGENTKNOCK_ATTESTATION_ROOTS"] = taskRoot + "/" + rootsName
	}
	return env
}

// checkAttestation leaves the rest to the functions, see checkFunctions.
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
			return fmt.Errorf("failed to remove roots that are not wanted: %w", err)
		}
		return nil
	}
	// Lambda runs a function as another user than the one who deploys.
	if err := os.WriteFile(name, s.attestationRoots, 0o644); err != nil {
		return fmt.Errorf("failed to write the roots: %w", err)
	}
	if err := os.Chmod(name, 0o644); err != nil {
		return fmt.Errorf("failed to write the roots: %w", err)
	}
	return nil
}
