//go:build !linux

package main

import (
	"os/exec"

	"blindpost/shared/proof/bench"
)

// Where there is no /proc, memory is not measured.
func processUsage(int) (bench.Usage, bool) { return bench.Usage{}, false }

// The child ends with the context, but not if this process is killed.
func dieWithParent(*exec.Cmd) {}

func inMemory(string) bool { return false }
