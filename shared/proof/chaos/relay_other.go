//go:build !linux

package chaos

import "os/exec"

// dieWithUs cannot be done on this system; clean-up kills, unless it is killed
// itself.
func dieWithUs(*exec.Cmd) {}
